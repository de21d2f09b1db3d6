import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, readdirSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { text } from 'node:stream/consumers'
import Database from 'libsql'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { inspectDatabase } from '../../src/host/corruption.js'
import { openDatabase } from '../../src/host/database.js'
import { RepeatedRequest } from '../../src/journal/creates.js'
import { identityOf } from '../../src/journal/identity.js'
import { type Intent, type IntentRow, type Journal, openJournal } from '../../src/journal/index.js'
import { JOURNAL_MIGRATIONS } from '../../src/journal/journal-run.js'
import { createOwnRows } from '../../src/journal/saved-rows.js'
import type { RunState } from '../../src/protocol/run-state.js'
import { built } from '../support/built.js'
import { containers } from '../support/containers.js'
import { finishedState } from '../support/journal.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const ADDRESS = 'https://a.example'
const INTENT: Intent = {
  address: ADDRESS,
  profile: 'default',
  kind: 'image',
  model: 'acme/still-1',
  input: { prompt: 'a fox' },
}

const GARBAGE = 'no database at all, and long enough'.repeat(300)

const idsIn = (journal: Journal) => journal.list({}).map(({ id }) => id)

function createTestJournal(path = join(temporaryFolder(), 'state', 'journal.db')) {
  const setAside: string[] = []
  let nowMs = Date.UTC(2026, 0, 1)
  const journal = openJournal({ path, now: () => nowMs, onQuarantine: (name) => setAside.push(name) })
  onTestFinished(() => journal.close())
  return {
    journal,
    path,
    setAside,
    advance: (ms: number) => {
      nowMs += ms
    },
  }
}

const LOST = { code: 'submission_unknown', message: 'lost' }

const FILE = { path: '/a/fox.png', bytes: 1, sha256: 'a', url: 'https://x', content_type: 'image/png' }

/** Records a state that the service has answered. */
function see(
  journal: Journal,
  id: string,
  phase: RunState['phase'],
  more: Partial<RunState> & { elapsedMs?: number; tookMs?: number | undefined } = {},
  address = ADDRESS,
): void {
  const { elapsedMs, tookMs, ...rest } = more
  const status = phase === 'running' ? 'processing' : phase
  const unknown = { failure: undefined, createdAt: undefined, finishedAt: undefined, service: {} }
  const state = { ...unknown, id, status, phase, urls: [], ...rest }
  journal.recordStatus(address, { state, elapsedMs, tookMs })
}

/** A run with its id. */
function accepted(journal: Journal, id: string, more: Partial<Intent> = {}): IntentRow {
  const place = journal.intend({ ...INTENT, ...more })
  journal.accept(place, id)
  return place
}

it('keeps the newest rows of a long session for a new file, those that still change longest', () => {
  const { journal, path } = createTestJournal()
  const ids = ['running', ...Array.from({ length: 20 }, (_, at) => `r${at}`)]
  const rows = ids.map((id) => accepted(journal, id).row)
  for (const id of ids.slice(1)) see(journal, id, 'succeeded')
  const db = openDatabase({ path, migrations: JOURNAL_MIGRATIONS, journalMode: 'TRUNCATE' })
  onTestFinished(() => db.close())
  const own = createOwnRows(db, 10)
  for (const row of rows) own.remember(row)
  expect(own.saved().runs.map(({ run }) => run.id)).toEqual(['running', ...ids.slice(-9)])
})

describe('a create of a process of which nothing is proven', () => {
  it('counts as lost after five minutes without an answer, not before', () => {
    const { journal, path, advance } = createTestJournal()
    const place = journal.intend(INTENT)
    const database = new Database(path)
    // Of an earlier version. The process id is free here.
    database.prepare("UPDATE runs SET pid = 4194305, started_at = '1@0badf00d'").run()
    database.close()
    advance(299_000)
    expect(journal.list({})).toMatchObject([{ phase: 'sending' }])
    advance(1_000)
    expect(journal.list({})).toMatchObject([{ phase: 'unconfirmed' }])
    // Its answer came after all.
    journal.accept(place, 'r1')
    expect(journal.list({})).toMatchObject([{ id: 'r1', phase: 'running' }])
    const refused = journal.intend({ ...INTENT, model: 'acme/refused' })
    journal.markUnconfirmed(refused, LOST)
    journal.retract(refused)
    expect(idsIn(journal)).toEqual(['r1'])
  })
})

describe('a create with a request id', () => {
  const named = { ...INTENT, requestId: 'token' }
  const createOf = (journal: Journal, token = 'token') => journal.createOf(ADDRESS, token)

  it('counts as unsent from its preparation until its intent is written', () => {
    const { journal } = createTestJournal()
    expect(createOf(journal)).toBeUndefined()
    journal.prepare(ADDRESS, ['token', 'other'])
    expect(createOf(journal)).toEqual({ state: 'unsent' })
    const place = journal.intend(named)
    expect(createOf(journal)).toMatchObject({ state: 'sent', run: { phase: 'sending', key: place.key } })
    journal.accept(place, 'r1')
    expect(createOf(journal)).toMatchObject({ state: 'sent', run: { id: 'r1' } })
    expect(createOf(journal, 'other')).toEqual({ state: 'unsent' })
    expect(journal.createOf('local', 'other')).toBeUndefined()
  })

  it('counts as unsent again each time that it was certainly not accepted', () => {
    const { journal } = createTestJournal()
    journal.prepare(ADDRESS, ['token'])
    for (const _ of [1, 2]) {
      journal.retract(journal.intend(named))
      expect(createOf(journal)).toEqual({ state: 'unsent' })
    }
    journal.retract(journal.intend({ ...INTENT, requestId: 'never prepared' }))
    expect(createOf(journal, 'never prepared')).toBeUndefined()
  })

  it('whose record another process has taken is not sent by the one that prepared it', () => {
    const { journal } = createTestJournal()
    journal.prepare(ADDRESS, ['token'])
    expect(journal.unprepare(ADDRESS, 'token')).toBe(true)
    expect(journal.unprepare(ADDRESS, 'token')).toBe(false)
    expect(() => journal.intend({ ...named, isPrepared: true })).toThrow(/taken over/)
    expect(journal.list({})).toEqual([])
    journal.prepare(ADDRESS, ['token'])
    journal.intend({ ...named, isPrepared: true })
    expect(createOf(journal)).toMatchObject({ state: 'sent' })
  })

  it('is forgotten a year after its preparation', () => {
    const { journal, advance } = createTestJournal()
    journal.prepare(ADDRESS, ['other'])
    advance(366 * 24 * 3_600_000)
    expect(createOf(journal, 'other')).toEqual({ state: 'unsent' })
    journal.prepare(ADDRESS, [])
    expect(createOf(journal, 'other')).toBeUndefined()
  })

  it('stays sent when it is prepared again or its row is forgotten', () => {
    const { journal } = createTestJournal()
    journal.prepare(ADDRESS, ['token'])
    journal.accept(journal.intend(named), 'r1')
    journal.prepare(ADDRESS, ['token'])
    expect(createOf(journal)).toMatchObject({ state: 'sent', run: { id: 'r1' } })
    journal.remove(journal.list({}))
    expect(createOf(journal)).toBeUndefined()
  })

  it('is known to every process, also after a crash between the two writes', () => {
    const { journal, path } = createTestJournal()
    journal.prepare(ADDRESS, ['token'])
    expect(createOf(createTestJournal(path).journal)).toEqual({ state: 'unsent' })
    journal.intend(named)
    expect(createOf(createTestJournal(path).journal)?.state).toBe('sent')
  })

  it('is written to a new file when the old one was removed, sent or not', () => {
    const { journal } = createTestJournal()
    journal.prepare(ADDRESS, ['token', 'other'])
    journal.accept(journal.intend(named), 'r1')
    const { journal: next } = createTestJournal()
    next.restore(journal.ownRows())
    expect(createOf(next)).toMatchObject({ state: 'sent', run: { id: 'r1' } })
    expect(createOf(next, 'other')).toEqual({ state: 'unsent' })
  })
})

describe('the life of a row', () => {
  it('goes from the intent to the end', () => {
    const { journal, advance } = createTestJournal()
    const place = journal.intend(INTENT)
    expect(journal.last(ADDRESS)).toMatchObject({ phase: 'sending', status: 'sending', key: place.key })
    expect(journal.accept(place, 'r1', 'queued')).toBe(true)
    expect(journal.find(ADDRESS, 'r1')).toMatchObject({
      ...{ row: place.row, phase: 'running', status: 'queued', key: undefined },
    })
    see(journal, 'r1', 'running')
    expect(journal.find(ADDRESS, 'r1')).toMatchObject({ phase: 'running', status: 'processing' })
    advance(42_000)
    see(journal, 'r1', 'succeeded', { urls: ['https://x.example/1'] })
    expect(journal.find(ADDRESS, 'r1')).toMatchObject({
      phase: 'succeeded',
      urls: ['https://x.example/1'],
      elapsedMs: 42_000,
      finishedAtMs: Date.UTC(2026, 0, 1, 0, 0, 42),
    })
  })

  it('ends once: later looks bring fresh links and nothing else', () => {
    const { journal, advance } = createTestJournal()
    accepted(journal, 'r1')
    see(journal, 'r1', 'succeeded', { urls: ['https://x.example/1'], elapsedMs: 7 })
    advance(1_000)
    see(journal, 'r1', 'succeeded', { urls: ['https://x.example/2'], elapsedMs: 9 })
    see(journal, 'r1', 'failed', { failure: 'no' })
    see(journal, 'r1', 'running')
    expect(journal.find(ADDRESS, 'r1')).toMatchObject({
      ...{ phase: 'succeeded', elapsedMs: 7, urls: ['https://x.example/2'], error: undefined },
    })
  })

  it('goes on, and succeeds, after an end of unknown outcome whose job was adopted', () => {
    const { journal, advance } = createTestJournal()
    accepted(journal, 'r1')
    see(journal, 'r1', 'failed', { service: { error: { code: 'outcome_unknown' } }, failure: 'no answer' })
    expect(journal.find(ADDRESS, 'r1')).toMatchObject({
      ...{ phase: 'failed', error: { code: 'outcome_unknown', message: 'no answer' } },
    })
    advance(1_000)
    see(journal, 'r1', 'running')
    expect(journal.unfinished(ADDRESS)).toMatchObject([
      { id: 'r1', status: 'processing', error: undefined, finishedAtMs: undefined },
    ])
    advance(1_000)
    see(journal, 'r1', 'succeeded', { urls: ['https://x.example/1'] })
    expect(journal.find(ADDRESS, 'r1')).toMatchObject({
      ...{ phase: 'succeeded', elapsedMs: 2_000, urls: ['https://x.example/1'], error: undefined },
    })
  })

  it('succeeds after a failure, but does not go on', () => {
    const { journal } = createTestJournal()
    accepted(journal, 'r1')
    see(journal, 'r1', 'failed', { failure: 'no' })
    see(journal, 'r1', 'running')
    expect(journal.find(ADDRESS, 'r1')).toMatchObject({ phase: 'failed', error: { code: 'run_failed' } })
    see(journal, 'r1', 'succeeded', { urls: ['https://x.example/1'] })
    expect(journal.find(ADDRESS, 'r1')).toMatchObject({ phase: 'succeeded', error: undefined })
  })

  it('keeps why it failed', () => {
    const { journal } = createTestJournal()
    accepted(journal, 'r1')
    see(journal, 'r1', 'failed', { status: 'rejected', failure: 'unsafe' })
    expect(journal.find(ADDRESS, 'r1')).toMatchObject({
      phase: 'failed',
      status: 'rejected',
      error: { code: 'run_failed', message: 'unsafe' },
    })
  })

  it('keeps that it was not found until it is found again, also with the same status', () => {
    const { journal } = createTestJournal()
    accepted(journal, 'r1')
    see(journal, 'r1', 'running')
    const error = { code: 'run_not_found', message: 'no such run' }
    journal.recordNotFound(ADDRESS, 'r1', error)
    expect(journal.find(ADDRESS, 'r1')).toMatchObject({ phase: 'running', status: 'processing', error })
    see(journal, 'r1', 'running')
    expect(journal.find(ADDRESS, 'r1')).toMatchObject({ status: 'processing', error: undefined })
  })

  it('ends without a trace when it was certainly not accepted, and only then', () => {
    const { journal } = createTestJournal()
    journal.retract(journal.intend(INTENT))
    expect(journal.list({})).toEqual([])
    const place = accepted(journal, 'r1')
    journal.retract(place)
    expect(journal.find(ADDRESS, 'r1')).toBeDefined()
  })

  it('stays in doubt with what came back, and takes an id that comes after all', () => {
    const { journal } = createTestJournal()
    const place = journal.intend(INTENT)
    journal.markUnconfirmed(place, { ...LOST, answerStatus: 500, answer: 'x'.repeat(100_000) })
    expect(journal.unconfirmed(ADDRESS)).toMatchObject([
      { phase: 'unconfirmed', error: LOST, answer: { status: 500, text: 'x'.repeat(65_536) } },
    ])
    journal.accept(place, 'late')
    expect(journal.find(ADDRESS, 'late')).toMatchObject({ phase: 'running', key: undefined })
    expect(journal.accept(place, 'again')).toBe(false)
  })

  it('finds a row at its own address only, and the newest of two with one id', () => {
    const { journal } = createTestJournal()
    accepted(journal, 'r1', { input: { prompt: 'old' } })
    accepted(journal, 'r1', { input: { prompt: 'new' } })
    accepted(journal, 'r1', { address: 'local', input: { prompt: 'elsewhere' } })
    expect(journal.find(ADDRESS, 'r1')?.input).toEqual({ prompt: 'new' })
    expect(journal.last('local')?.input).toEqual({ prompt: 'elsewhere' })
    expect(journal.last('https://b.example')).toBeUndefined()
    expect(journal.unfinished(ADDRESS)).toHaveLength(2)
    expect(journal.unfinished()).toHaveLength(3)
  })

  it('has files, each path once', () => {
    const { journal } = createTestJournal()
    accepted(journal, 'r1')
    journal.recordFiles(ADDRESS, 'r1', [FILE, { ...FILE, path: '/a/fox-2.png' }])
    journal.recordFiles(ADDRESS, 'r1', [{ ...FILE, sha256: 'b' }])
    journal.recordFiles(ADDRESS, 'unknown', [FILE])
    const run = journal.find(ADDRESS, 'r1')
    expect(run && journal.filesOf(run).map(({ path, sha256 }) => [path, sha256])).toEqual([
      ['/a/fox.png', 'b'],
      ['/a/fox-2.png', 'a'],
    ])
  })

  it('has files in the order of its outputs, whichever download ended first', () => {
    const { journal } = createTestJournal()
    accepted(journal, 'r1')
    const [first, second] = ['https://a.example/1.png', 'https://a.example/2.png']
    journal.recordStatus(ADDRESS, { state: finishedState('r1', [first, second]) })
    const file = (path: string, url: string) => ({ ...FILE, path, url })
    journal.recordFiles(ADDRESS, 'r1', [
      file('/2.png', second),
      file('/1.png', first),
      file('/copy.png', first),
    ])
    journal.recordFiles(ADDRESS, 'r1', [file('/again.png', 'https://a.example/1.png?signed')])
    const run = journal.find(ADDRESS, 'r1')
    expect(run && journal.filesOf(run).map(({ path }) => path)).toEqual([
      '/1.png',
      '/copy.png',
      '/2.png',
      '/again.png',
    ])
  })

  it.each([
    ['are signed again', (number: number) => `https://a.example/${number}.png?X-Amz-Signature=fresh`],
    ['are other links', (number: number) => `https://b.example/file?id=${number}`],
    ['change places', (number: number) => `https://a.example/${4 - number}.png?X-Amz-Signature=first`],
  ])('keeps the order of its outputs when their links %s', (_, freshLink) => {
    const { journal } = createTestJournal()
    accepted(journal, 'r1')
    const firstLink = (number: number) => `https://a.example/${number}.png?X-Amz-Signature=first`
    journal.recordStatus(ADDRESS, { state: finishedState('r1', [1, 2, 3].map(firstLink)) })
    const record = (number: number, url: string) =>
      journal.recordFiles(ADDRESS, 'r1', [{ ...FILE, path: `/${number}.png`, url }])
    record(2, firstLink(2))
    record(3, firstLink(3))
    journal.recordStatus(ADDRESS, { state: finishedState('r1', [1, 2, 3].map(freshLink)) })
    record(1, freshLink(1))
    const run = journal.find(ADDRESS, 'r1')
    const files = run && journal.filesOf(run)
    expect(files?.map(({ path }) => path)).toEqual(['/1.png', '/2.png', '/3.png'])
    expect(files?.map(({ url }) => url)).toEqual([1, 2, 3].map(freshLink))
  })

  it('removes a row with its files, unless it has changed since it was read', () => {
    const { journal } = createTestJournal()
    const place = journal.intend(INTENT)
    journal.markUnconfirmed(place, LOST)
    const [unconfirmed] = journal.unconfirmed(ADDRESS)
    if (unconfirmed === undefined) throw new Error('no row')
    journal.accept(place, 'r1')
    const going = journal.find(ADDRESS, 'r1')
    expect(journal.remove([unconfirmed])).toEqual({
      removed: [],
      changed: [{ before: unconfirmed, now: going }],
    })
    if (going === undefined) throw new Error('no row')
    journal.recordNotFound(ADDRESS, 'r1', LOST)
    expect(journal.remove([going])).toMatchObject({ removed: [], changed: [{ before: going }] })
    const now = journal.list({})
    expect(journal.remove(now)).toEqual({ removed: now, changed: [] })
    expect(journal.remove(now)).toEqual({ removed: [], changed: [] })
    expect(journal.list({})).toEqual([])
  })

  it('finds an id at every address, the newest first', () => {
    const { journal } = createTestJournal()
    for (const address of [ADDRESS, 'local', 'https://z.example.com'])
      journal.accept(journal.intend({ ...INTENT, address }), 'same')
    journal.accept(journal.intend({ ...INTENT, address: 'local' }), 'other')
    expect(journal.findAtEveryAddress('same').map(({ address }) => address)).toEqual([
      'https://z.example.com',
      'local',
      ADDRESS,
    ])
    // Both use one statement of libsql in turn.
    for (const id of ['same', 'none', 'other', 'none']) {
      expect(journal.find('https://no.example.com', id)).toBeUndefined()
      for (const run of journal.findAtEveryAddress(id)) expect(run.id).toBe(id)
    }
    expect(journal.findAtEveryAddress('none')).toEqual([])
  })

  it('changes no row of another run that has its number in a new journal', () => {
    const { journal } = createTestJournal()
    const lost = createTestJournal().journal.intend(INTENT)
    const other = journal.intend({ ...INTENT, input: { prompt: 'another' } })
    expect(other.row).toBe(lost.row)
    journal.retract(lost)
    expect([journal.accept(lost, 'r1'), journal.markUnconfirmed(lost, LOST)]).toEqual([false, false])
    expect(journal.list({})).toMatchObject([{ id: undefined, phase: 'sending', key: other.key }])
  })

  it('has a key of its own, longer when the short ones are taken', () => {
    const { journal, path } = createTestJournal()
    const keys = Array.from({ length: 20 }, () => journal.intend(INTENT).key)
    expect(new Set(keys).size).toBe(20)
    expect(keys.every((key) => /^~[0-9a-f]{4,}$/.test(key))).toBe(true)
    const database = new Database(path)
    database.exec(`WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 65535)
      INSERT OR IGNORE INTO runs (key, address, profile, model, input, identity, phase, status, created_at)
      SELECT printf('~%04x', n), 'x', 'x', 'x', '{}', 'x', 'unconfirmed', 'unconfirmed', 0 FROM n`)
    database.close()
    expect(journal.intend(INTENT).key).toMatch(/^~[0-9a-f]{5,}$/)
  })
})

describe('a request id', () => {
  const NAMED: Intent = { ...INTENT, requestId: 'fox-1' }

  it('belongs to one row of an address until the create was certainly not accepted', () => {
    const { journal } = createTestJournal()
    const place = journal.intend(NAMED)
    expect(() => journal.intend(NAMED)).toThrow(RepeatedRequest)
    expect(journal.findByRequest(ADDRESS, 'fox-1')?.run.phase).toBe('sending')
    expect(journal.findByRequest('https://b.example', 'fox-1')).toBeUndefined()
    expect(() => journal.intend({ ...NAMED, address: 'https://b.example' })).not.toThrow()
    journal.retract(place)
    expect(journal.findByRequest(ADDRESS, 'fox-1')).toBeUndefined()
    const again = journal.intend(NAMED)
    journal.accept(again, 'r1')
    expect(() => journal.intend(NAMED)).toThrow('"fox-1" was sent before')
    expect(journal.findByRequest(ADDRESS, 'fox-1')).toMatchObject({
      run: { id: 'r1', requestId: 'fox-1' },
      identity: identityOf(NAMED.model, NAMED.input),
    })
  })

  it('is missing, not wrong, in a journal of an earlier format', () => {
    const path = join(temporaryFolder(), 'journal.db')
    const earlier = new Database(path)
    earlier.exec(JOURNAL_MIGRATIONS.slice(0, 2).join(';'))
    earlier.exec(`PRAGMA user_version = 2; INSERT INTO runs (id, address, profile, model, input, identity, phase, status, created_at)
      VALUES ('r1', '${ADDRESS}', 'default', 'acme/still-1', '{}', 'x', 'going', 'queued', 0)`)
    earlier.close()
    const { journal } = createTestJournal(path)
    expect(journal.list({})).toMatchObject([{ id: 'r1', requestId: undefined }])
    journal.intend(NAMED)
    expect(journal.findByRequest(ADDRESS, 'fox-1')?.run.phase).toBe('sending')
  })
})

it('has the durations of the latest runs of a model that were seen to their end', () => {
  const { journal } = createTestJournal()
  for (const [id, tookMs] of [
    ['a', 10_000],
    ['unseen', undefined],
    ['b', 20_000],
  ] as const) {
    accepted(journal, id)
    see(journal, id, 'succeeded', { tookMs })
  }
  expect(journal.durations(ADDRESS, 'acme/still-1')).toEqual([20_000, 10_000])
  expect(journal.durations('local', 'acme/still-1')).toEqual([])
})

describe('several processes', () => {
  let program: string
  beforeAll(async () => {
    program = await built(new URL('./writer.ts', import.meta.url))
  })

  /** How the files begin that were set aside. */
  const asideOf = (path: string): readonly string[] =>
    readdirSync(dirname(path))
      .filter((name) => /damaged-[^-]+-\d+$/.test(name))
      .map((name) => readFileSync(join(dirname(path), name), 'utf8').slice(0, 11))

  /** What it wrote to standard error, and its exit code. */
  async function runWriter(path: string, name: string, runs: number) {
    const words = [program, path, name, String(runs)]
    const writer = spawn(process.execPath, words, { stdio: ['ignore', 'ignore', 'pipe'] })
    const [stderr, [code]] = await Promise.all([text(writer.stderr), once(writer, 'exit')])
    return { code, stderr }
  }

  it.each<[string, (path: string) => void, readonly string[]]>([
    ['create it at the same time', () => {}, []],
    [
      'find it damaged at the same time, and set it aside once',
      (path) => writeFileSync(path, GARBAGE),
      ['no database'],
    ],
  ])('%s: all of them write, and nothing is lost', async (_, prepare, aside) => {
    const path = join(temporaryFolder(), 'journal.db')
    prepare(path)
    const ended = await Promise.all(['a', 'b', 'c', 'd'].map((name) => runWriter(path, name, 15)))
    expect(ended).toEqual(Array.from({ length: 4 }, () => ({ code: 0, stderr: '' })))
    expect(asideOf(path)).toEqual(aside)
    const { journal } = createTestJournal(path)
    expect(new Set(idsIn(journal)).size).toBe(60)
    expect(inspectDatabase(path).integrity).toBe('ok')
  })

  it('one of which sets it aside: the others see it, and their setting aside leaves the new one alone', () => {
    const { journal: first, path, setAside } = createTestJournal()
    const { journal: second, setAside: bySecond } = createTestJournal(path)
    accepted(first, 'early')
    first.quarantine()
    expect([first.isCurrent(), second.isCurrent()]).toEqual([false, false])
    const { journal: third } = createTestJournal(path)
    accepted(third, 'late')
    second.quarantine()
    expect([setAside.length, bySecond.length]).toEqual([1, 0])
    expect(third.isCurrent()).toBe(true)
    expect(idsIn(createTestJournal(path).journal)).toEqual(['late'])
    expect(idsIn(createTestJournal(setAside[0]).journal)).toEqual(['early'])
  })

  it.each(containers)(
    '%s: a create is unconfirmed when its process was killed, not before',
    async (_, words) => {
      const { journal, path, advance } = createTestJournal()
      const [command = '', ...rest] = [...words, process.execPath, program, path, 'killed', '1', 'stay']
      const child = spawn(command, rest, { stdio: ['ignore', 'pipe', 'inherit'] })
      onTestFinished(() => void child.kill('SIGKILL'))
      await once(child.stdout, 'data')
      advance(900_000)
      expect(journal.list({})).toMatchObject([{ phase: 'sending' }])
      child.kill('SIGKILL')
      await once(child.stdout, 'close')
      expect(journal.unconfirmed()).toMatchObject([
        { phase: 'unconfirmed', input: { prompt: 'killed 0' }, error: { code: 'submission_unknown' } },
      ])
    },
  )
})

describe('the file', () => {
  it.each<[string, (path: string) => void]>([
    ['holds something else', (path) => writeFileSync(path, GARBAGE)],
    ['was cut off', (path) => truncateSync(path, 3_000)],
    ['has lost its last 1,000 bytes', (path) => truncateSync(path, statSync(path).size - 1_000)],
    ['has lost its last pages', (path) => truncateSync(path, statSync(path).size - 8_192)],
    ['is empty', (path) => truncateSync(path, 0)],
    ['has one byte', (path) => writeFileSync(path, 'x')],
    ['is full of zeros', (path) => writeFileSync(path, Buffer.alloc(statSync(path).size))],
  ])('that %s is set aside whole, and a new one works', (_, damage) => {
    const { journal: first, path } = createTestJournal()
    accepted(first, 'r1')
    damage(path)
    const bytes = readFileSync(path)
    const { journal, setAside } = createTestJournal(path)
    expect(setAside).toHaveLength(1)
    expect(readFileSync(setAside[0] ?? '')).toEqual(bytes)
    accepted(journal, 'r2')
    expect(idsIn(journal)).toEqual(['r2'])
  })

  it('of a newer format is refused and left as it is', () => {
    const { path } = createTestJournal()
    const database = new Database(path)
    database.exec(`PRAGMA user_version = ${JOURNAL_MIGRATIONS.length + 1}`)
    database.close()
    expect(() => createTestJournal(path)).toThrow(/format/)
    expect(readdirSync(dirname(path)).some((name) => name.includes('damaged'))).toBe(false)
  })
})

describe('what was written', () => {
  const copyOf = (path: string): string => {
    const copy = `${path}.copy`
    copyFileSync(path, copy)
    return copy
  }

  it('writes to the one file at once, so that nothing is lost with a log', () => {
    const { journal, path } = createTestJournal()
    accepted(journal, 'r1')
    expect(readdirSync(dirname(path)).filter((name) => name.endsWith('-wal'))).toEqual([])
    expect(createTestJournal(copyOf(path)).journal.list({})).toMatchObject([{ id: 'r1' }])
  })

  it('by an earlier version into a write-ahead log is taken into the one file', () => {
    const { journal, path } = createTestJournal()
    journal.close()
    const earlier = new Database(path)
    earlier.exec(`PRAGMA journal_mode = WAL; INSERT INTO runs (id, address, profile, model, input, identity, phase, status, created_at)
      VALUES ('r1', '${ADDRESS}', 'default', 'acme/still-1', '{}', 'x', 'going', 'queued', 0)`)
    // While it is at work the file stays in that mode.
    const beside = createTestJournal(path).journal
    accepted(beside, 'r2')
    beside.close()
    earlier.close()
    const { journal: later, setAside } = createTestJournal(path)
    expect(idsIn(later)).toEqual(['r2', 'r1'])
    expect(createTestJournal(copyOf(path)).journal.list({})).toHaveLength(2)
    expect(setAside).toEqual([])
  })

  it('stays as it is beside the log of another database, which is set aside', () => {
    const { journal, path } = createTestJournal()
    accepted(journal, 'r1')
    journal.close()
    const other = join(temporaryFolder(), 'other.db')
    const database = new Database(other)
    onTestFinished(() => void database.close())
    database.exec('PRAGMA journal_mode = WAL; CREATE TABLE notes (text TEXT); INSERT INTO notes VALUES (1)')
    const log = readFileSync(`${other}-wal`)
    writeFileSync(`${path}-wal`, log)
    const { journal: again, setAside } = createTestJournal(path)
    expect(again.list({})).toMatchObject([{ id: 'r1' }])
    expect(inspectDatabase(path).integrity).toBe('ok')
    expect(setAside.map((name) => readFileSync(name))).toEqual([log])
  })

  it('can be written again into a new journal: rows with their numbers, keys and files, each once', () => {
    const { journal } = createTestJournal()
    const sending = journal.intend(INTENT)
    accepted(journal, 'r1', { requestId: 'fox-1' })
    journal.recordFiles(ADDRESS, 'r1', [FILE])
    const lost = journal.intend(INTENT)
    journal.markUnconfirmed(lost, LOST)
    journal.retract(journal.intend(INTENT))
    const { journal: next } = createTestJournal()
    next.restore(journal.ownRows())
    next.restore(journal.ownRows())
    expect(next.list({})).toEqual(journal.list({}))
    expect(next.findByRequest(ADDRESS, 'fox-1')?.run.id).toBe('r1')
    const run = next.find(ADDRESS, 'r1')
    expect(run && next.filesOf(run)).toMatchObject([{ path: '/a/fox.png' }])
    expect(next.accept(sending, 'r2')).toBe(true)
  })

  it('restores no row under another key while its create is being sent', () => {
    const { journal } = createTestJournal()
    const sending = journal.intend(INTENT)
    const { prepared, runs } = journal.ownRows()
    const { journal: next } = createTestJournal()
    // A row of another process that has the same key.
    next.restore({
      prepared,
      runs: runs.map(({ run }) => ({ run: { ...run, row: 7, phase: 'unconfirmed' }, files: [] })),
    })
    next.restore({ prepared, runs })
    expect(next.list({}).map(({ row, key }) => [row, key])).toEqual([[7, sending.key]])
    // Its command writes it again.
    expect(next.accept(sending, 'r2')).toBe(false)
  })

  it('restores its rows in a new journal that others have begun', () => {
    const { journal } = createTestJournal()
    const sending = journal.intend(INTENT)
    const lost = journal.intend(INTENT)
    journal.markUnconfirmed(lost, LOST)
    accepted(journal, 'r1')
    const { journal: next } = createTestJournal()
    for (const id of ['a', 'b', 'c']) accepted(next, id)
    next.restore(journal.ownRows())
    expect(next.list({}).map(({ id, key }) => id ?? key)).toEqual(['r1', lost.key, 'c', 'b', 'a'])
    // Its command writes it again.
    expect(next.accept(sending, 'r2')).toBe(false)
  })
})
