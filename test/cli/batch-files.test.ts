/** `rushes batch` beside files that are not its own: it moves, replaces and removes only files whose sha256 the lock file knows. */
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { link } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { ownerOfParts } from '../../src/batch/lock/lock.js'
import type { FileSystem } from '../../src/host/file-system.js'
import { createFamily, SHEET, sha256 } from '../support/family.js'

const MOVED = { ...SHEET, output: 'img/sheet.png' }
const textOf = (path: string) => readFileSync(path, 'utf8')

/** A batch whose row is made, and then gets another output. */
async function moving() {
  const family = await createFamily([SHEET])
  await family.run()
  family.created()
  family.write([MOVED])
  return family
}

it('the old path of a moved row keeps a new file that the user put there', async () => {
  const { run, path, lock } = await moving()
  mkdirSync(path('img'))
  renameSync(path('sheet.png'), path('img/sheet.png'))
  writeFileSync(path('sheet.png'), 'mine')
  expect((await run()).code).toBe(0)
  expect([lock().sheet.file, textOf(path('sheet.png'))]).toEqual(['img/sheet.png', 'mine'])
})

it('the old path of a moved row keeps a file outside the folder that an edited lock file names, also with the same bytes', async () => {
  const { run, path, folder, editLock } = await moving()
  mkdirSync(path('img'))
  renameSync(path('sheet.png'), path('img/sheet.png'))
  const outside = join(folder, '..', 'outside.png')
  writeFileSync(outside, readFileSync(path('img/sheet.png')))
  editLock((runs) => {
    runs.sheet = { ...runs.sheet, file: '../outside.png' }
  })
  expect((await run()).code).toBe(0)
  expect(existsSync(outside)).toBe(true)
})

/** Writes the file directly before the first link of a move is made. */
const editing = (path: string): FileSystem => ({
  link(from, to) {
    if (/\.move$/.test(to)) writeFileSync(path, 'mine')
    return link(from, to)
  },
})

it.each([
  ['at the new path', 'img/sheet.png'],
  ['at the old path', 'sheet.png'],
])('a file that changes while rows are moved %s is kept, and nothing is sent', async (_, name) => {
  const { run, path, created } = await moving()
  mkdirSync(path('img'))
  const made = sha256(path('sheet.png'))
  const { code, stderr } = await run([], { fileSystem: editing(path(name)) })
  expect([code, created()]).toEqual([12, []])
  expect(stderr).toContain('Nothing was sent')
  expect(textOf(path(name))).toBe('mine')
  if (name !== 'sheet.png') expect(sha256(path('sheet.png'))).toBe(made)
})

it('the files that another manifest of the folder is moving stay', async () => {
  const { run, path } = await moving()
  mkdirSync(path('img'))
  const staged = '.hen.png.0123456789abcdef.move'
  for (const each of [staged, `img/${staged}`]) writeFileSync(path(each), 'of another batch')
  expect((await run()).code).toBe(0)
  expect([existsSync(path(staged)), existsSync(path(`img/${staged}`))]).toEqual([true, true])
})

it.each([[[]], [['--overwrite']]])(
  'the file of a row that --only leaves out stays, with %j',
  async (words) => {
    const outputs = (fox: string, hen: string) => [
      { name: 'fox', prompt: 'a fox', output: fox },
      { name: 'hen', prompt: 'a hen', output: hen },
    ]
    const { run, path, created, write } = await createFamily(outputs('a.png', 'b.png'))
    await run()
    created()
    const before = ['a.png', 'b.png'].map((name) => sha256(path(name)))
    write(outputs('b.png', 'a.png'))
    const { code, stderr } = await run(['--only', 'fox', ...words])
    expect([code, created()]).toEqual([2, []])
    expect(stderr).toContain('b.png (fox, line 1): the file of "hen", which --only leaves out')
    expect(stderr).not.toContain('--overwrite')
    expect(['a.png', 'b.png'].map((name) => sha256(path(name)))).toEqual(before)
  },
)

it('a file that a killed batch was moving stays while --only leaves its row out', async () => {
  const outputs = (fox: string, hen: string) => [
    { name: 'fox', prompt: 'a fox', output: fox },
    { name: 'hen', prompt: 'a hen', output: hen },
    SHEET,
  ]
  const { run, path, created, write, lockPath } = await createFamily(outputs('a.png', 'b.png'))
  await run()
  created()
  const [fox, hen] = ['a.png', 'b.png'].map((name) => sha256(path(name)))
  write(outputs('b.png', 'a.png'))
  // Both are linked beside their new names, and only the file of fox has its name.
  const owner = ownerOfParts(JSON.parse(textOf(lockPath)).batch, lockPath)
  const linked = path(`.a.png.${owner}${hen?.slice(0, 8)}.move`)
  renameSync(path('b.png'), linked)
  copyFileSync(path('a.png'), path('b.png'))
  expect((await run('--only sheet')).code).toBe(0)
  expect(sha256(linked)).toBe(hen)
  expect([(await run()).code, created()]).toEqual([0, []])
  expect([sha256(path('b.png')), sha256(path('a.png'))]).toEqual([fox, hen])
})
