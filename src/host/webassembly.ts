import { setFlagsFromString } from 'node:v8'

/**
 * WebAssembly of this process is compiled once, simply, for the rest of its life. Code that is good enough for some answers
 * is there at once; better code takes as long as Node itself to be made, and the process cannot end before it is.
 */
export const compileOnce = (): void => setFlagsFromString('--liftoff-only')
