import {
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createLocalFiles } from '../../../src/service/files/local-files.js'
import { filesContract } from '../../contract/files.js'
import { temporaryFolder } from '../../support/index.js'

function open() {
  const root = temporaryFolder()
  const [folder, work] = [join(root, 'outputs'), join(root, 'work')]
  for (const each of [folder, work]) mkdirSync(each)
  return {
    files: createLocalFiles(folder),
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

test('the files of a run are removed together, and links in or instead of its folder are not followed', async () => {
  const { files, folder } = open()
  for (const name of ['run_1/inputs/a1', 'run_1/x/b.png', 'run_2/x/b.png'])
    await files.put(name, { bytes: Buffer.from('x') })
  symlinkSync(join(folder, 'run_2'), join(folder, 'run_1', 'link'))
  symlinkSync(join(folder, 'run_2'), join(folder, 'run_3'))
  for (const run of ['run_1', 'run_1', 'run_3']) await files.removeBelow(run)
  expect(readdirSync(folder, { recursive: true }).sort()).toEqual(['run_2', 'run_2/x', 'run_2/x/b.png'])
})

test('a link in place of an output does not count as the file, even if it is as long', async () => {
  const { files, folder } = open()
  writeFileSync(join(folder, 'other'), 'not ours')
  mkdirSync(join(folder, 'run_1'))
  symlinkSync('../other', join(folder, 'run_1', 'a.png'))
  const bytes = Buffer.from('12345678')
  expect(bytes.byteLength).toBe(lstatSync(join(folder, 'run_1', 'a.png')).size)
  expect(await files.find('run_1/a.png')).toBeUndefined()
  await files.put('run_1/a.png', { bytes })
  expect(readFileSync(join(folder, 'run_1', 'a.png'), 'utf8')).toBe('12345678')
  expect(readFileSync(join(folder, 'other'), 'utf8')).toBe('not ours')
})
