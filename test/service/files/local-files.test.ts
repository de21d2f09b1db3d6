import { mkdirSync, readdirSync, renameSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createLocalFiles } from '../../../src/service/files/local-files.js'
import { filesContract } from '../../contract/files.js'
import { createManualClock } from '../../support/clock.js'
import { temporaryFolder } from '../../support/temporary-folder.js'

function open() {
  const root = temporaryFolder()
  const [folder, work] = [join(root, 'outputs'), join(root, 'work')]
  for (const each of [folder, work]) mkdirSync(each)
  const clock = createManualClock()
  return {
    files: createLocalFiles(folder, clock),
    folder,
    work,
    takeAway() {
      renameSync(folder, `${folder}.away`)
      return () => renameSync(`${folder}.away`, folder)
    },
  }
}

filesContract(open)

test('files and folders are private, and a folder is removed with its last file', async () => {
  const { files, folder } = open()
  await files.put('token/a.png', { bytes: Buffer.from('a') })
  expect(statSync(join(folder, 'token')).mode & 0o777).toBe(0o700)
  expect(statSync(join(folder, 'token', 'a.png')).mode & 0o777).toBe(0o600)
  await files.remove('token/a.png')
  expect(readdirSync(folder)).toEqual([])
})

test('a name that the file system refuses is an error of the file, not of the storage', async () => {
  const { files } = open()
  const key = `token/${'ä'.repeat(200)}.png`
  await expect(files.put(key, { bytes: Buffer.from('a') })).rejects.toMatchObject({ code: 'ENAMETOOLONG' })
  expect(await files.find(key)).toBeUndefined()
})

test('the files of a run are removed together, and links in its folder are not followed', async () => {
  const { files, folder } = open()
  for (const name of ['run_1/inputs/a1', 'run_1/x/b.png', 'run_2/x/b.png'])
    await files.put(name, { bytes: Buffer.from('x') })
  symlinkSync(join(folder, 'run_2'), join(folder, 'run_1', 'link'))
  await files.removeBelow('run_1')
  await files.removeBelow('run_1')
  expect(readdirSync(folder, { recursive: true }).sort()).toEqual(['run_2', 'run_2/x', 'run_2/x/b.png'])
})
