/** One batch at a time on a manifest, among real processes. */
import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, expect, it } from 'vitest'
import { claimBatch } from '../../src/batch/lock/claim.js'
import { claimPathOf } from '../../src/batch/lock/lock.js'
import { EXIT } from '../../src/errors.js'
import { built } from '../support/built.js'
import { startNode } from '../support/index.js'
import { folderWith } from './folder.js'

let program: string
beforeAll(async () => {
  program = await built(new URL('./claimer.ts', import.meta.url))
})

/** A process that claims and stays. */
async function startClaimer(lockPath: string) {
  const child = startNode([program, lockPath])
  const [, says] = await child.prints('stdout', /(.+)\n/)
  return {
    says,
    async kill() {
      child.kill('SIGKILL')
      await child.ended
    },
  }
}

const createLock = () => join(folderWith(), 'shots.lock.json')

it('the claim admits one batch of this process and of others at a time, and leaves nothing behind', async () => {
  const lockPath = createLock()
  const claim = claimBatch(lockPath)
  expect(() => claimBatch(lockPath)).toThrow(/Another batch/)
  expect((await startClaimer(lockPath)).says).toBe('held')
  claim.release()
  expect(readdirSync(join(lockPath, '..'))).toEqual([])
  const other = await startClaimer(lockPath)
  expect(other.says).toBe('claimed')
  expect(() => claimBatch(lockPath)).toThrow(/Another batch/)
  await other.kill()
  claimBatch(lockPath).release()
})

it('the claim holds through a link to its folder', () => {
  const lockPath = createLock()
  const link = join(folderWith(), 'link')
  symlinkSync(join(lockPath, '..'), link)
  const claim = claimBatch(lockPath)
  expect(() => claimBatch(join(link, 'shots.lock.json'))).toThrow(/Another batch/)
  claim.release()
})

it('the claim is held by one of several processes that claim together', async () => {
  const lockPath = createLock()
  const claimers = await Promise.all(Array.from({ length: 4 }, () => startClaimer(lockPath)))
  expect(claimers.filter(({ says }) => says === 'claimed')).toHaveLength(1)
})

it.each(['mine', ''.padEnd(4096, 'SQLite format 3\0')])(
  'the claim refuses a file with content, and keeps it',
  (content) => {
    const lockPath = createLock()
    const path = claimPathOf(lockPath)
    writeFileSync(path, content)
    expect(() => claimBatch(lockPath)).toThrow(
      expect.objectContaining({
        exitCode: EXIT.usage,
        hint: expect.stringContaining('Move the file away'),
      }),
    )
    expect(readFileSync(path, 'utf8')).toBe(content)
  },
)

it('the claim refuses a named pipe without opening it', () => {
  const lockPath = createLock()
  execFileSync('mkfifo', [claimPathOf(lockPath)])
  expect(() => claimBatch(lockPath)).toThrow(
    expect.objectContaining({
      exitCode: EXIT.usage,
      message: expect.stringContaining(
        `${claimPathOf(lockPath)} is not a claim file: it is not a regular file.`,
      ),
    }),
  )
})

it('the claim cannot be had where the folder is gone', () => {
  expect(() => claimBatch(join(folderWith(), 'gone', 'shots.lock.json'))).toThrow(/ENOENT/)
})
