/** Runs in each test file. */
import { afterAll, inject, vi } from 'vitest'
import { cleanUpFile } from './after-file.js'

afterAll(cleanUpFile)
// `unstubEnvs` does so before each test: the next file of this process begins outside of one.
afterAll(() => void vi.unstubAllEnvs())

if (inject('postgresUrl') !== undefined) await import('./count-queries.js')
