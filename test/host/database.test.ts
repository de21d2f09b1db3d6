import { once } from 'node:events'
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  NewerFormat,
  type OpenDatabase,
  openDatabase,
  openOrQuarantine,
  sqliteUri,
} from '../../src/host/database.js'
import { temporaryFolder } from '../support/index.js'

const FIRST = 'CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL)'
const SECOND = "ALTER TABLE notes ADD COLUMN kind TEXT NOT NULL DEFAULT 'plain'"

const newPath = (): string => join(temporaryFolder(), 'deep', 'er', 'a.db')

function open(path: string, migrations: readonly string[] = [FIRST], busyTimeoutMs = 2_000): OpenDatabase {
  const database = openDatabase({ path, migrations, busyTimeoutMs })
  onTestFinished(() => database.close())
  return database
}

const add = (database: OpenDatabase, text: string) =>
  database.run('INSERT INTO notes (text) VALUES (?)', text).changes
const texts = (database: OpenDatabase) =>
  database.all('SELECT text FROM notes ORDER BY id').map(({ text }) => text)
const bytesOf = (path: string) => (existsSync(path) ? readFileSync(path).toString('base64') : undefined)

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)

describe('a database', () => {
  it('keeps its files (0600) and its folder (0700) private', () => {
    const path = newPath()
    add(open(path), 'a')
    expect([path, `${path}-wal`, `${path}-shm`].map(modeOf)).toEqual(['600', '600', '600'])
    expect(modeOf(dirname(path))).toBe('700')
  })

  it('has everything in the main file once it is closed, so that nothing is lost with the log', () => {
    const path = newPath()
    const database = openDatabase({ path, migrations: [FIRST] })
    add(database, 'a')
    database.close()
    const copy = `${path}.copy`
    copyFileSync(path, copy)
    expect(texts(open(copy))).toEqual(['a'])
  })

  it('gives back the whole of a text with NUL, with the symbol for it', () => {
    const database = open(newPath())
    add(database, 'abc\0def')
    expect(texts(database)).toEqual(['abc\u2400def'])
    expect(database.get('SELECT id FROM notes WHERE text = ?', 'abc\0def')).toMatchObject({ id: 1 })
  })

  it('migrates its rows to the next format, which the version before refuses and leaves as it is', () => {
    const path = newPath()
    const first = openDatabase({ path, migrations: [FIRST] })
    add(first, 'a')
    first.close()
    openDatabase({ path, migrations: [FIRST, SECOND] }).close()
    expect(() => openDatabase({ path, migrations: [FIRST] })).toThrow(NewerFormat)
    expect(() => openDatabase({ path, migrations: [FIRST] })).toThrow('format 2')
    const second = open(path, [FIRST, SECOND])
    expect(second.get('SELECT text, kind FROM notes')).toMatchObject({ text: 'a', kind: 'plain' })
  })

  it('creates the file under another name first, also after that has failed', () => {
    const path = newPath()
    const broken = ['THIS IS NO SQL']
    expect(() => openDatabase({ path, migrations: broken })).toThrow()
    expect(existsSync(path)).toBe(false)
    open(path)
    expect(readdirSync(dirname(path)).filter((name) => name.includes('.new'))).toEqual([])
  })
})

it.each([
  ['removed', (path: string) => rmSync(path)],
  [
    'replaced',
    (path: string) => {
      copyFileSync(path, `${path}.copy`)
      renameSync(`${path}.copy`, path)
    },
  ],
])('a file that was %s is no longer current, and takes no write', (_, change) => {
  const path = newPath()
  const database = open(path)
  expect(database.isCurrent()).toBe(true)
  add(database, 'a')
  change(path)
  expect(database.isCurrent()).toBe(false)
  const found = bytesOf(path)
  for (const work of [() => add(database, 'b'), () => database.transaction(() => {})])
    expect(work).toThrow(expect.objectContaining({ name: 'ReplacedFile', code: 'SQLITE_READONLY_DBMOVED' }))
  database.close()
  expect(bytesOf(path)).toEqual(found)
})

it('two that open the same file at the same time wait for each other', async () => {
  const path = newPath()
  const holder = open(path, [])
  const held = new Worker(
    `const { workerData, parentPort } = require('node:worker_threads'); const Database = require(workerData.libsql)
     const database = new Database(workerData.path); database.exec('BEGIN IMMEDIATE'); parentPort.postMessage('held')
     setTimeout(() => { database.exec('${FIRST}; PRAGMA user_version = 1; COMMIT'); database.close() }, 100)`,
    { eval: true, workerData: { path, libsql: createRequire(import.meta.url).resolve('libsql') } },
  )
  await once(held, 'message')
  expect(add(open(path), 'a')).toBe(1)
  expect(holder.get('PRAGMA user_version')?.user_version).toBe(1)
  await held.terminate()
})

it('a transaction on a full disk fails with that error, though SQLite has ended it itself', () => {
  const database = open(newPath())
  database.get('PRAGMA max_page_count = 2')
  expect(() => add(database, 'x'.repeat(100_000))).toThrow(expect.objectContaining({ code: 'SQLITE_FULL' }))
  expect(() => database.transaction(() => add(database, 'x'.repeat(100_000)))).toThrow(/disk is full/)
  expect(texts(database)).toEqual([])
  expect(add(database, 'a')).toBe(1)
})

it('a transaction rolls back when its work throws, and the next one succeeds', () => {
  const database = open(newPath())
  const error = new Error('no')
  const failing = () => {
    add(database, 'a')
    throw error
  }
  expect(() => database.transaction(failing)).toThrow(error)
  expect(texts(database)).toEqual([])
  database.transaction(() => add(database, 'b'))
  expect(texts(database)).toEqual(['b'])
})

it('a transaction fails and changes nothing when it gets no lock in time', () => {
  const path = newPath()
  const one = open(path)
  const other = open(path, [FIRST], 20)
  one.transaction(() => expect(() => other.transaction(() => add(other, 'b'))).toThrow(/busy|locked/i))
  expect(texts(one)).toEqual([])
})

it.each<[string, (database: OpenDatabase) => unknown]>([
  ['run', (database) => add(database, 'refused')],
  ['get', (database) => database.get(`INSERT INTO notes (text) VALUES ('refused') RETURNING id`)],
  ['all', (database) => database.all(`UPDATE notes SET text = 'refused' RETURNING id`)],
])(
  'a write by %s that was refused the lock leaves nothing behind: later ones are there for everybody',
  (_, refused) => {
    const path = newPath()
    const [one, two] = [open(path, [FIRST], 20), open(path, [FIRST], 20)]
    two.transaction(() => {
      add(two, 'first')
      expect(() => refused(one)).toThrow(/locked/)
    })
    add(one, 'second')
    expect(texts(two)).toEqual(['first', 'second'])
    add(two, 'third')
    expect(texts(one)).toEqual(['first', 'second', 'third'])
  },
)

it.each<[string, (path: string) => void, log?: string]>([
  ['overwritten', (path) => writeFileSync(path, 'not a database at all', { flag: 'r+' }), 'its log'],
  ['emptied', (path) => truncateSync(path), 'its log'],
  ['cut within a page', (path) => truncateSync(path, statSync(path).size - 1_000)],
  ['cut between two pages', (path) => truncateSync(path, statSync(path).size - 4_096)],
])('a file that was %s is renamed with its log, and replaced by a new one', (_, damage, log) => {
  const path = newPath()
  const first = open(path)
  add(first, 'x'.repeat(20_000))
  first.close()
  damage(path)
  if (log !== undefined) writeFileSync(`${path}-wal`, log)
  const files = (of: string) => ['', '-wal'].map((ending) => bytesOf(of + ending))
  const damaged = files(path)
  const renamed: string[] = []
  const database = openOrQuarantine({ path, migrations: [FIRST] }, (to) => void renamed.push(to))
  onTestFinished(() => database.close())
  expect([add(database, 'a'), database.isCurrent()]).toEqual([1, true])
  expect(renamed).toHaveLength(1)
  expect(files(renamed[0] ?? '')).toEqual(damaged)
})

it.each([
  ['C:\\data\\a b.db', 'file:///C:/data/a%20b.db?mode=ro'],
  ['\\\\server\\share\\a.db', 'file:////server/share/a.db?mode=ro'],
])('%s has an address that SQLite accepts', (path, uri) => {
  expect(sqliteUri(path, 'ro', true)).toBe(uri)
})
