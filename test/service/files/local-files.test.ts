import { chmodSync, mkdirSync, readdirSync, renameSync, rmdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { StorageUnavailable } from '../../../src/service/files/contract.js'
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
    advance: (ms: number) => clock.jump(ms),
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

test('a file that a crash left half written is listed, so that it can be removed', async () => {
  const { files, folder } = open()
  writeFileSync(join(folder, 'a1b2.0123456789ab.tmp'), 'half')
  const keys: string[] = []
  for await (const key of files.listOlder(-1e15)) keys.push(key)
  expect(keys).toEqual(['a1b2.0123456789ab.tmp'])
})

test('folders are not listed', async () => {
  const { files, folder } = open()
  mkdirSync(join(folder, 'token', 'folder'), { recursive: true })
  mkdirSync(join(folder, 'empty'))
  for (const name of ['a1b2', 'token/b.png']) await files.put(name, { bytes: Buffer.from('x') })
  const keys: string[] = []
  for await (const key of files.listOlder(-1e15)) keys.push(key)
  expect(keys.sort()).toEqual(['a1b2', 'token/b.png'])
})

// Root reads every folder.
test.skipIf(process.getuid?.() === 0)(
  'reports a folder that cannot be read after listing all others',
  async () => {
    const { files, folder } = open()
    for (const name of ['a/a.png', 'm/m.png', 'z/z.png']) await files.put(name, { bytes: Buffer.from('x') })
    chmodSync(join(folder, 'm'), 0)
    const keys: string[] = []
    const list = async () => {
      for await (const key of files.listOlder(-1e15)) keys.push(key)
    }
    await expect(list()).rejects.toThrow(StorageUnavailable)
    chmodSync(join(folder, 'm'), 0o700)
    expect(keys.sort()).toEqual(['a/a.png', 'z/z.png'])
  },
)

test('a name that the file system refuses is an error of the file, not of the storage', async () => {
  const { files } = open()
  const key = `token/${'ä'.repeat(200)}.png`
  await expect(files.put(key, { bytes: Buffer.from('a') })).rejects.toMatchObject({ code: 'ENAMETOOLONG' })
  expect(await files.find(key)).toBeUndefined()
})

test('a file in place of the folder is not listed as an empty folder', async () => {
  const { files, folder } = open()
  rmdirSync(folder)
  writeFileSync(folder, '')
  const put = () => files.put('a', { bytes: Buffer.from('a') })
  for (const work of [() => files.find('a'), () => files.remove('a'), put])
    await expect(work()).rejects.toThrow(StorageUnavailable)
})
