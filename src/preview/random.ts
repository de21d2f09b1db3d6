// Seeded random numbers: the same seed draws the same picture.
import { createHash } from 'node:crypto'

/** Returns a number from 0 (inclusive) to 1 (exclusive). */
export type Random = () => number

/** Uses mulberry32, seeded with a hash of the text: small, and the same on every platform. */
export function randomFrom(seed: string): Random {
  let state = createHash('sha256').update(seed).digest().readInt32LE()
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
