/** Setup of each test file. */
import { afterAll, inject, vi } from 'vitest'
import { cleanUpFile } from './after-file.js'
import './equal-bytes.js'

afterAll(cleanUpFile)
// `unstubEnvs` resets the environment only before each test, and the code of the next file runs before its first test.
afterAll(() => void vi.unstubAllEnvs())

if (inject('postgresUrl') !== undefined) await import('./count-queries.js')
