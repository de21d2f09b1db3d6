import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createLocalFiles } from '../../../src/service/files/local-files.js'
import { filesContract } from '../../contract/files.js'
import { createManualClock } from '../../support/clock.js'
import { temporaryFolder } from '../../support/service.js'

function open() {
  const root = temporaryFolder()
  const [folder, work] = [join(root, 'outputs'), join(root, 'work')]
  for (const each of [folder, work]) mkdirSync(each)
  const clock = createManualClock()
  return {
    files: createLocalFiles(folder, clock),
    folder,
    work,
    advance: (ms: number) => clock.jump(ms),
  }
}

filesContract(open)

test('files and folders are private, and a folder goes with its last file', async () => {
  const { files, folder } = open()
  await files.put('token/a.png', { bytes: Buffer.from('a') })
  expect(statSync(join(folder, 'token')).mode & 0o777).toBe(0o700)
  expect(statSync(join(folder, 'token', 'a.png')).mode & 0o777).toBe(0o600)
  await files.remove('token/a.png')
  expect(readdirSync(folder)).toEqual([])
})

test('what a crash left half written is listed with the others, so that it is removed', async () => {
  const { files, folder } = open()
  writeFileSync(join(folder, 'a1b2.0123456789ab.tmp'), 'half')
  const keys: string[] = []
  for await (const key of files.listOlder(-1e15)) keys.push(key)
  expect(keys).toEqual(['a1b2.0123456789ab.tmp'])
})
