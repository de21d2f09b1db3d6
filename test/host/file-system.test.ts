import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { exists, nameProblem } from '../../src/host/file-system.js'
import { temporaryFolder } from '../support/index.js'

it.each([
  ['q?.png', 'file names on Windows cannot contain "?"'],
  ['out/a:b.png', 'file names on Windows cannot contain ":"'],
  ['a\u0007.png', 'file names on Windows cannot contain control characters'],
  ['aux.png', 'Windows reserves the name "aux.png" for a device'],
  ['C:\\out\\NUL', 'Windows reserves the name "NUL" for a device'],
  ['out./fox.png', 'file names on Windows cannot end with a dot or a space'],
  ['fox.png ', 'file names on Windows cannot end with a dot or a space'],
  [`${'x'.repeat(256)}`, 'the name is too long'],
])('on Windows the file name %j is refused: %s', (path, reason) => {
  expect(nameProblem(path, 'win32')).toBe(reason)
})

it.each([
  'fox.png',
  'D:\\é x\\fox.png',
  '\\\\server\\share\\fox.png',
  '\\\\?\\C:\\out\\fox.png',
  '..\\out/./fox.png',
  'auxiliary.png',
  'x'.repeat(255),
])('on Windows the file name %j is accepted', (path) => {
  expect(nameProblem(path, 'win32')).toBeUndefined()
})

it('the file system of a folder accepts a name with the characters that Windows refuses', () => {
  const folder = temporaryFolder()
  expect(nameProblem(join(folder, 'not/yet/a:b?*"<>|.png'))).toBeUndefined()
  expect(nameProblem('a:b?.png')).toBeUndefined()
})

it('the file system of a folder refuses a name that is too long, in each folder of the path, also of one that does not exist', () => {
  const [folder, long] = [temporaryFolder(), 'x'.repeat(256)]
  for (const path of [join(folder, long), join(folder, 'not/yet', long), join(folder, long, 'fox.png')])
    expect(nameProblem(path)).toBe('the name is too long')
  expect(nameProblem(join(folder, 'x'.repeat(255)))).toBeUndefined()
})

it('the file system of a folder tells whether it opens a file under another spelling of its name', () => {
  const folder = temporaryFolder()
  writeFileSync(join(folder, 'Fox.png'), '')
  mkdirSync(join(folder, 'hen.png'))
  expect(exists(join(folder, 'Fox.png'))).toBe(true)
  expect(exists(join(folder, 'none.png'))).toBe(false)
  expect(exists(join(folder, 'Fox.png/below'))).toBe(false)
})
