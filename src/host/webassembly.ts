/**
 * WebAssembly for short processes. undici's parser is WebAssembly, and the process cannot end before V8's optimizing compiler has
 * finished with it: that takes longer than all else that `rushes status` does.
 */
import { setFlagsFromString } from 'node:v8'

/** Leaves WebAssembly to V8's fast compiler, for this whole process: for the command line, never for the library. */
export const skipWasmOptimization = (): void => setFlagsFromString('--liftoff-only')
