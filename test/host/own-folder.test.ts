/** Folders that other programs touch. Everything here is in folders that the tests made. */
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { makeOwnFolder, makeOwnFolderAt, removeFolder } from '../../src/host/own-folder.js'
import { temporaryFolder } from '../support/index.js'

const ownFolder = () => makeOwnFolder(temporaryFolder(), 'own-')

/** A folder outside, with a file that must stay. */
function outside(): string {
  const path = join(temporaryFolder(), 'outside')
  mkdirSync(path)
  writeFileSync(join(path, 'sentinel'), 'x')
  return path
}

test('a folder is private, and its removal removes all that is in it and follows no link', async () => {
  const [folder, other] = [await ownFolder(), outside()]
  expect(statSync(folder.path).mode & 0o777).toBe(0o700)
  mkdirSync(join(folder.path, 'a/b'), { recursive: true })
  for (const name of ['.one', 'a/b/two']) writeFileSync(join(folder.path, name), 'x')
  for (const name of ['link', 'a/link']) symlinkSync(other, join(folder.path, name))
  expect([...(await folder.names())].sort()).toEqual(['.one', 'a', 'link'])
  await folder.remove()
  expect(existsSync(folder.path)).toBe(false)
  expect(readdirSync(other)).toEqual(['sentinel'])
  await makeOwnFolderAt(folder.path)
  await expect(makeOwnFolderAt(folder.path)).rejects.toThrow('EEXIST')
  await removeFolder(folder.path)
  await removeFolder(folder.path)
})

const makeOther = (path: string): void => {
  mkdirSync(path)
  writeFileSync(join(path, 'results'), 'x')
}

test.each<[string, (path: string, other: string) => void]>([
  ['a link', (path, other) => symlinkSync(other, path)],
  ['a file', (path) => writeFileSync(path, 'x')],
  ['another folder', makeOther],
])('nothing is read or removed with %s in place of the folder', async (found, replace) => {
  const [folder, other] = [await ownFolder(), outside()]
  writeFileSync(join(folder.path, 'one'), 'x')
  renameSync(folder.path, `${folder.path}-moved`)
  replace(folder.path, other)
  for (const act of [() => folder.check(), () => folder.names(), () => folder.remove()])
    await expect(act()).rejects.toMatchObject({ name: 'FolderReplaced', found, path: folder.path })
  if (found !== 'another folder')
    await expect(removeFolder(folder.path)).rejects.toMatchObject({ found, path: folder.path })
  expect(existsSync(folder.path)).toBe(true)
  expect(readdirSync(`${folder.path}-moved`)).toEqual(['one'])
  expect(readdirSync(other)).toEqual(['sentinel'])
})

test('a file with one name is made private, and opened', async () => {
  const folder = await ownFolder()
  writeFileSync(join(folder.path, 'out'), 'bytes', { mode: 0o444 })
  expect(await folder.takeFile('out')).toBe(5)
  expect(statSync(join(folder.path, 'out')).mode).toBe(0o100600)
  const file = await folder.openFile('out')
  expect(await file.readFile('utf8')).toBe('bytes')
  await file.close()
  await expect(folder.openFile('../out')).rejects.toThrow('Not a file name.')
})

test('a file with a further name is copied, and the other name keeps its file', async () => {
  const folder = await ownFolder()
  const [path, elsewhere] = [join(folder.path, 'out'), join(dirname(folder.path), 'elsewhere')]
  writeFileSync(elsewhere, 'bytes', { mode: 0o640 })
  linkSync(elsewhere, path)
  expect(await folder.takeFile('out')).toBe(5)
  expect(statSync(elsewhere)).toMatchObject({ mode: 0o100640, nlink: 1 })
  expect(statSync(path)).toMatchObject({ mode: 0o100600, nlink: 1 })
  writeFileSync(elsewhere, 'other')
  expect(readFileSync(path, 'utf8')).toBe('bytes')
})

test('a link, a folder or a pipe is no file', async () => {
  const [folder, other] = [await ownFolder(), outside()]
  symlinkSync(join(other, 'sentinel'), join(folder.path, 'link'))
  mkdirSync(join(folder.path, 'sub'))
  execFileSync('mkfifo', [join(folder.path, 'pipe')])
  for (const name of ['link', 'sub', 'pipe']) {
    expect(await folder.takeFile(name)).toBeUndefined()
    await expect(folder.openFile(name)).rejects.toThrow(`${name} is not a file.`)
  }
})
