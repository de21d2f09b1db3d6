/**
 * Setup of each file of `npm test`: its command lines run in a temporary folder. A run without
 * `-o` would otherwise write into the repository. Fails the file if something was left there.
 */
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect } from 'vitest'

const repository = process.cwd()
const folder = mkdtempSync(join(tmpdir(), 'rushes-cwd-'))
process.chdir(folder)

afterAll(() => {
  process.chdir(repository)
  const left = readdirSync(folder)
  rmSync(folder, { recursive: true })
  expect(left, 'files that command lines without -o left').toEqual([])
})
