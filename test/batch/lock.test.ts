/** The lock file: its text, and what is kept when it is written. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { LockFile, lockFileOf, readLock } from '../../src/batch/lock/file.js'
import { type Lock, lockText, type Made, newLock, parseLock, publicUrl } from '../../src/batch/lock/lock.js'
import { RushesError } from '../../src/errors.js'
import { createManualClock } from '../support/index.js'
import { validatorOf } from '../support/schemas.js'
import { folderWith, madeOf } from './folder.js'

const schemaAccepts = validatorOf('lock')

const made = (digit: string) => madeOf(digit.repeat(64), { run: `run_${digit}` })

const { url, file, sha256, bytes, content_type } = made('2')
const SECOND = { url, file, sha256, bytes, content_type }

const lockOf = (entries: Readonly<Record<string, Made>>, more: Partial<Lock> = {}): Lock => ({
  ...newLock(),
  manifest: 'shots.yaml',
  batch: 'b1',
  entries: new Map(Object.entries(entries)),
  ...more,
})

describe('the text of a lock file', () => {
  it('sorts rows by name, with one field a line, and comes back as it was', () => {
    const lock = lockOf(
      { b: { ...made('b'), outputs: [SECOND] }, a: made('a'), '10': made('1') },
      { working: 'j1' },
    )
    const text = lockText(lock)
    expect(text).toMatch(
      /^\{\n {2}"version": 2,\n {2}"manifest": "shots.yaml",\n {2}"batch": "b1",\n {2}"working": "j1",\n/,
    )
    expect([...text.matchAll(/^ {4}"(\w+)": \{$/gm)].map(([, name]) => name)).toEqual(['10', 'a', 'b'])
    expect(schemaAccepts(JSON.parse(text)), JSON.stringify(schemaAccepts.errors)).toBe(true)
    const again = parseLock(text, 'x')
    expect(again).toMatchObject({ batch: 'b1', working: 'j1', manifest: 'shots.yaml' })
    expect(lockText(again)).toBe(text)
  })

  it('has names in the Unicode form NFC', () => {
    const name = 'café'.normalize('NFD')
    expect([...parseLock(lockText(lockOf({ [name]: made('a') })), 'x').entries.keys()]).toEqual([
      name.normalize('NFC'),
    ])
  })

  it.each([
    ['conflict markers', '{\n<<<<<<< HEAD\n', /not a JSON object/],
    ['a newer version', '{"version": 9, "runs": {}}', /newer version of rushes \(format 9/],
    ['no JSON', 'x', /not a JSON object/],
    ['other JSON', '{}', /not a lock file of rushes/],
    ['an earlier version', '{"version": 1, "runs": {}}', /not a lock file of rushes/],
    [
      'an entry without its hash',
      '{"version": 2, "runs": {"a": {"sha256": "x"}}}',
      /the entry "a" is not valid/,
    ],
  ])('with %s is a usage error', (_, text, message) => {
    expect(() => parseLock(text, 'x')).toThrow(message)
  })

  it('never ends in anything but a usage error', () => {
    fc.assert(
      fc.property(fc.json(), (runs) => {
        try {
          parseLock(`{"version": 2, "runs": {"a": ${runs}}}`, 'x')
        } catch (error) {
          expect(error).toBeInstanceOf(RushesError)
        }
      }),
    )
  })

  it('keeps no part of a link that lets anybody in', () => {
    expect(publicUrl('https://user:pass@cdn.example/a.png?token=x#y')).toBe('https://cdn.example/a.png')
  })
})

/** The lock file of a batch of the rows a and b. `said`: what the batch was told. */
function createFile(entries: Readonly<Record<string, Made>> = {}) {
  const path = join(folderWith(), 'shots.lock.json')
  const lock = lockOf(entries)
  const write = (changed: Lock) => writeFileSync(path, lockText(changed))
  if (Object.keys(entries).length > 0) write(lock)
  const clock = createManualClock()
  const said: string[] = []
  const file = new LockFile({
    path,
    manifest: 'shots.yaml',
    lock,
    rows: new Set(['a', 'b']),
    clock,
    keepsWorking: false,
    onWritten: (written) => void said.push(`written ${[...written.keys()]}`),
    onFailed: () => void said.push('failed'),
    onChanged: (names) => void said.push(`changed ${names}`),
  })
  return { path, clock, file, said, write, onDisk: () => parseLock(readFileSync(path, 'utf8'), path) }
}

describe('the lock file of a batch', () => {
  it('says before the first create which journal knows what is in flight, and no more at the end', async () => {
    const { file, onDisk, path } = createFile()
    // A batch that has moved files has written it before.
    await file.write()
    await file.begin('j1')
    expect(onDisk()).toMatchObject({ batch: 'b1', working: 'j1' })
    expect(statSync(path).mode & 0o777).toBe(0o666 & ~process.umask())
    await file.end(false)
    expect(onDisk().working).toBe('j1')
    await file.end(true)
    expect(onDisk().working).toBeUndefined()
  })

  it('has what was made within a second, in one write', async () => {
    const { file, clock, said, onDisk } = createFile()
    await file.begin('j1')
    file.set('a', made('a'))
    file.set('b', made('b'))
    await clock.advance(1_000)
    await file.end(false)
    expect(said.filter((each) => each !== 'written ')).toEqual(['written a,b'])
    expect([...onDisk().entries.keys()]).toEqual(['a', 'b'])
  })

  it('keeps what somebody else wrote for other rows, and says where a row of it was changed', async () => {
    const { file, said, onDisk, write } = createFile({ a: made('a'), z: made('1') })
    await file.begin('j1')
    const found = onDisk()
    write({ ...found, entries: new Map(found.entries).set('z', made('2')).set('b', made('3')) })
    file.set('a', made('4'))
    await file.end(false)
    expect(onDisk().entries.get('z')).toMatchObject({ run: 'run_2' })
    expect(onDisk().entries.get('a')).toMatchObject({ run: 'run_4' })
    expect(said).toContain('changed b')
  })

  it('is not written where nothing has changed', async () => {
    const { file, path } = createFile()
    await file.end(true)
    expect(existsSync(path)).toBe(false)
  })
})

it('a path that leads to a named pipe is a usage error, and nothing is opened', () => {
  const folder = folderWith()
  execFileSync('mkfifo', [join(folder, 'pipe')])
  symlinkSync('pipe', join(folder, 'link'))
  const refusal = (name: string) => () => readLock(join(folder, name), join(folder, 'shots.yaml'))
  expect(refusal('pipe')).toThrow(`${join(folder, 'pipe')} is not a lock file: it is not a regular file.`)
  expect(refusal('link')).toThrow('is not a regular file')
  expect(refusal('pipe')).toThrow(expect.objectContaining({ exitCode: 2 }))
})

it('the lock file of another manifest that is still there is refused; one of a renamed manifest is taken over', () => {
  const folder = folderWith({ 'shots.yaml': '', 'shots.csv': '' })
  const path = lockFileOf(join(folder, 'shots.yaml'))
  writeFileSync(path, lockText(lockOf({})))
  expect(() => readLock(path, join(folder, 'shots.csv'))).toThrow(/belongs to another manifest: shots.yaml/)
  writeFileSync(path, lockText(lockOf({}, { manifest: 'gone.yaml' })))
  expect(readLock(path, join(folder, 'shots.csv')).batch).toBe('b1')
})
