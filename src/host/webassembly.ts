/**
 * WebAssembly of this process is compiled once, simply, for the rest of its life. Code that is good enough for some answers
 * is there at once; better code takes as long as Node itself to be made, and the process cannot end before it is.
 */
export const compileOnce = (): void => v8().setFlagsFromString('--liftoff-only')

/** Takes that back, with all that V8 takes it to imply. */
export const compileAsUsual = (): void =>
  v8().setFlagsFromString('--no-liftoff-only --wasm-tier-up --wasm-dynamic-tiering')

/** Loaded when it is asked for, since it brings streams with it. */
const v8 = () => process.getBuiltinModule('node:v8')
