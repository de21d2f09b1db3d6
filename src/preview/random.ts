// Seeded random numbers: the same seed draws the same picture.

/** Returns a number from 0 (inclusive) to 1 (exclusive). */
export type Random = () => number

/** Uses mulberry32, seeded with the FNV-1a hash of the UTF-16 units: small, and the same on every platform. */
export function randomFrom(seed: string): Random {
  let state = 0x811c9dc5
  for (let index = 0; index < seed.length; index++)
    state = Math.imul(state ^ seed.charCodeAt(index), 0x01000193)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

export const between = (random: Random, low: number, high: number): number => low + (high - low) * random()

export const pick = <const Value>(random: Random, values: readonly Value[]): Value =>
  values[Math.floor(random() * values.length)] as Value
