/** Setup of each test file. */
import { afterAll, expect, inject, vi } from 'vitest'
import { cleanUpFile } from '../after-file.js'

afterAll(cleanUpFile)
// `unstubEnvs` resets the environment only before each test, and the code of the next file runs before its first test.
afterAll(() => void vi.unstubAllEnvs())

// Compares bytes at once: `toEqual` looks at each byte as a property, which takes a second for 300 kB.
expect.addEqualityTesters([
  (one, other) =>
    one instanceof Uint8Array && other instanceof Uint8Array && one.constructor === other.constructor
      ? Buffer.compare(one, other) === 0
      : undefined,
])

if (inject('postgresUrl') !== undefined) await import('./count-queries.js')
