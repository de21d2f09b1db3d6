import fc from 'fast-check'

const FIRST_HALF = 0xd800
const HALVES = 0x800

/**
 * Any character except lone surrogates, like `unit: 'binary'` of fast-check, which takes 0.8 s of CPU time to build.
 */
export const anyCharacter = fc
  .integer({ min: 0, max: 0x10ffff - HALVES })
  .map((number) => String.fromCodePoint(number < FIRST_HALF ? number : number + HALVES))
