import { mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { describeError, describeReason, isClosedPipe } from '../../src/host/system-error.js'
import { temporaryFolder } from '../support/index.js'

const thrownBy = (work: () => unknown): unknown => {
  try {
    work()
  } catch (error) {
    return error
  }
  return expect.unreachable('nothing was thrown')
}

const withCode = (code: string) => Object.assign(new Error(`${code}: what Node says, open 'a'`), { code })

it('an error of the system names the path of the error, or the name that the user typed', () => {
  const folder = temporaryFolder()
  const file = join(folder, 'file')
  writeFileSync(file, '')
  const missing = join(folder, 'nofile.png')
  const noFile = thrownBy(() => readFileSync(missing))
  expect(describeError(noFile)).toBe(`${missing}: no such file`)
  expect(describeError(noFile, 'nofile.png')).toBe('nofile.png: no such file')
  expect(describeReason(noFile)).toBe('no such file')
  // Node does not say which.
  const directory = thrownBy(() => readFileSync(folder))
  expect([describeError(directory), describeError(directory, folder)]).toEqual([
    'is a directory',
    `${folder} is a directory`,
  ])
  expect(describeError(thrownBy(() => openSync(file, 'wx')))).toBe(`${file}: the file exists`)
  expect(describeReason(thrownBy(() => mkdirSync(join(folder, 'a', 'b'))))).toBe(
    'the folder cannot be created',
  )
})

it.each([
  ['ENOSPC', 'no space left on the disk'],
  ['SQLITE_IOERR_WRITE', 'disk I/O error'],
  ['SQLITE_READONLY_DBMOVED', 'removed, replaced or overwritten while it was open'],
])('an error of the system with the code %s is described as: %s', (code, words) => {
  expect(describeReason(withCode(code))).toBe(words)
  expect(describeError(withCode(code), 'a')).toBe(`a: ${words}`)
})

it('an error of the system with an unknown code, and any other error, keeps its own words', () => {
  expect(describeReason(withCode('EWHAT'))).toBe("EWHAT: what Node says, open 'a'")
  expect(describeReason(new Error('no such table: runs'))).toBe('no such table: runs')
  expect(describeError(new Error('no such table: runs'), 'journal.db')).toBe(
    'journal.db: no such table: runs',
  )
  expect(describeReason('text')).toBe('text')
})

it.each([
  ['EPIPE', true],
  ['EOF', true],
  ['ENOSPC', false],
])('%s of standard output shows that its reader has gone: %s', (code, expected) => {
  expect(isClosedPipe(Object.assign(new Error(code), { code }))).toBe(expected)
})
