/** Compares bytes at once: `toEqual` looks at each byte as a property, which takes a second for 300 kB. */
import { expect } from 'vitest'

expect.addEqualityTesters([
  (one, other) =>
    one instanceof Uint8Array && other instanceof Uint8Array && one.constructor === other.constructor
      ? Buffer.compare(one, other) === 0
      : undefined,
])
