import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import Database from 'libsql'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { integrityOf } from '../../src/host/database.js'
import { type Intent, type IntentRow, Journal } from '../../src/journal/index.js'
import { JOURNAL_MIGRATIONS, listStatement } from '../../src/journal/rows.js'
import { identityOf } from '../../src/protocol/identity.js'
import type { RunState } from '../../src/protocol/run-state.js'
import { built } from '../support/built.js'
import { containers } from '../support/containers.js'
import { createPlace, finishedState, start, startNode, temporaryFolder } from '../support/index.js'
import { runState } from '../support/runs.js'

const ADDRESS = 'https://a.example'
const INTENT: Intent = {
  address: ADDRESS,
  profile: 'default',
  kind: 'image',
  model: 'acme/still-1',
  input: { prompt: 'a fox' },
}
const LOST = { code: 'submission_unknown', message: 'lost' }
const FILE = { path: '/a/fox.png', bytes: 1, sha256: 'a', url: 'https://x', content_type: 'image/png' }
const GARBAGE = 'no database at all, and long enough'.repeat(300)

const idsIn = (journal: Journal) => journal.list({}).map(({ id }) => id)

function createTestJournal(path = join(temporaryFolder(), 'state', 'journal.db')) {
  let nowMs = Date.UTC(2026, 0, 1)
  const journal = new Journal({
    folder: dirname(path),
    now: () => nowMs,
    warn: expect.unreachable,
  })
  onTestFinished(() => journal.close())
  const advance = (ms: number) => {
    nowMs += ms
  }
  return { journal, path, advance }
}

type Sight = Partial<RunState> & { readonly elapsedMs?: number }

const GOING: Sight = { status: 'processing', phase: 'running' }
const succeeded = (link: string, more: Sight = {}): Sight => ({
  status: 'succeeded',
  phase: 'succeeded',
  urls: [link],
  ...more,
})
const failed = (failure: string, more: Sight = {}): Sight => ({
  status: 'failed',
  phase: 'failed',
  failure,
  ...more,
})

/** Records a state of the run r1 that the service has answered. */
const see = (journal: Journal, { elapsedMs, ...state }: Sight): void =>
  journal.status(ADDRESS, { state: runState({ id: 'r1', ...state }), elapsedMs })

const intend = (journal: Journal, intent: Partial<Intent> = {}): IntentRow =>
  journal.intend('required', { ...INTENT, ...intent }) as IntentRow

/** A run with its id. */
function accepted(journal: Journal, id: string, more: Partial<Intent> = {}): IntentRow {
  const place = intend(journal, more)
  journal.accepted(place, { id })
  return place
}

describe('the life of a row', () => {
  it('of a process that has ended counts as lost', () => {
    const { journal, path } = createTestJournal()
    const place = intend(journal)
    expect(journal.list({})).toMatchObject([{ phase: 'sending' }])
    const database = new Database(path)
    database.prepare("UPDATE runs SET started_at = '0badf00d0badf00d'").run()
    database.close()
    expect(journal.list({})).toMatchObject([{ phase: 'unconfirmed' }])
    // Its answer came after all.
    journal.accepted(place, { id: 'r1' })
    expect(journal.list({})).toMatchObject([{ id: 'r1', phase: 'running' }])
    const refused = intend(journal, { model: 'acme/refused' })
    journal.markUnconfirmed(refused, LOST)
    journal.unsent(refused)
    expect(idsIn(journal)).toEqual(['r1'])
  })

  const UNKNOWN = failed('no answer', { service: { error: { code: 'outcome_unknown' } } })
  const CANCELED = failed('The refund is not decided yet.', { status: 'canceled' })

  it.each<[string, readonly Sight[], object]>([
    [
      'ends once: later looks bring fresh links and nothing else',
      [succeeded('1', { elapsedMs: 7 }), succeeded('2', { elapsedMs: 9 }), failed('no'), GOING],
      { phase: 'succeeded', elapsedMs: 7, finishedAtMs: 1_000, urls: ['2'], error: undefined },
    ],
    [
      'has its last failure, with the time of its end: a refund may be decided later',
      [CANCELED, failed('Its price was refunded.')],
      {
        status: 'failed',
        error: { message: 'Its price was refunded.' },
        finishedAtMs: 1_000,
        elapsedMs: 1_000,
      },
    ],
    [
      'does not go on after a failure',
      [failed('no'), GOING],
      { phase: 'failed', error: { code: 'run_failed' } },
    ],
    ['succeeds after a failure', [failed('no'), succeeded('1')], { phase: 'succeeded', error: undefined }],
    [
      'ends with an unknown outcome',
      [UNKNOWN],
      { phase: 'failed', error: { code: 'outcome_unknown', message: 'no answer' } },
    ],
    [
      'goes on after an end of unknown outcome whose job was adopted',
      [UNKNOWN, GOING],
      { phase: 'running', status: 'processing', error: undefined, finishedAtMs: undefined },
    ],
    [
      'succeeds after an end of unknown outcome whose job was adopted',
      [UNKNOWN, GOING, succeeded('1')],
      { phase: 'succeeded', elapsedMs: 3_000, urls: ['1'], error: undefined },
    ],
  ])('%s', (_, sights, expected) => {
    const { journal, advance } = createTestJournal()
    accepted(journal, 'r1')
    for (const sight of sights) {
      advance(1_000)
      see(journal, sight)
    }
    const { finishedAtMs, createdAtMs, ...run } = journal.find(ADDRESS, 'r1') ?? expect.unreachable()
    const sinceCreateMs = finishedAtMs === undefined ? undefined : finishedAtMs - createdAtMs
    expect({ ...run, finishedAtMs: sinceCreateMs }).toMatchObject(expected)
    expect(journal.unfinished(ADDRESS)).toHaveLength(run.phase === 'running' ? 1 : 0)
  })

  it('keeps that it was not found until it is found again, also with the same status', () => {
    const { journal } = createTestJournal()
    accepted(journal, 'r1')
    see(journal, GOING)
    const error = { code: 'run_not_found', message: 'no such run' }
    journal.notFound(ADDRESS, 'r1', error)
    expect(journal.find(ADDRESS, 'r1')).toMatchObject({ phase: 'running', status: 'processing', error })
    see(journal, GOING)
    expect(journal.find(ADDRESS, 'r1')).toMatchObject({ status: 'processing', error: undefined })
  })

  it('ends without a trace when it was certainly not accepted, and only then', () => {
    const { journal } = createTestJournal()
    journal.unsent(intend(journal))
    expect(journal.list({})).toEqual([])
    const place = accepted(journal, 'r1')
    journal.unsent(place)
    expect(journal.find(ADDRESS, 'r1')).toBeDefined()
  })

  it('stays in doubt with what came back, and takes an id that comes after all', () => {
    const { journal } = createTestJournal()
    const place = intend(journal)
    journal.markUnconfirmed(place, { ...LOST, answerStatus: 500, answer: 'x'.repeat(100_000) })
    expect(journal.unconfirmed(ADDRESS)).toMatchObject([
      { phase: 'unconfirmed', error: LOST, answer: { status: 500, text: 'x'.repeat(65_536) } },
    ])
    journal.accepted(place, { id: 'late' })
    expect(journal.find(ADDRESS, 'late')).toMatchObject({ phase: 'running', key: undefined })
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

  const filesIn = (journal: Journal) => journal.filesOf(journal.find(ADDRESS, 'r1') ?? expect.unreachable())

  it('has files, each path once', () => {
    const { journal } = createTestJournal()
    accepted(journal, 'r1')
    journal.files(ADDRESS, 'r1', [FILE, { ...FILE, path: '/a/fox-2.png' }])
    journal.files(ADDRESS, 'r1', [{ ...FILE, sha256: 'b' }])
    journal.files(ADDRESS, 'unknown', [FILE])
    expect(filesIn(journal)).toEqual([
      { ...FILE, sha256: 'b' },
      { ...FILE, path: '/a/fox-2.png' },
    ])
  })

  it('has files in the order of its outputs, whichever download ended first', () => {
    const { journal } = createTestJournal()
    accepted(journal, 'r1')
    const [first, second] = ['https://a.example/1.png', 'https://a.example/2.png']
    journal.status(ADDRESS, { state: finishedState('r1', [first, second]) })
    const record = (...files: (readonly [path: string, url: string])[]) =>
      journal.files(
        ADDRESS,
        'r1',
        files.map(([path, url]) => ({ ...FILE, path, url })),
      )
    record(['/2.png', second], ['/1.png', first], ['/copy.png', first])
    record(['/again.png', 'https://a.example/1.png?signed'])
    expect(filesIn(journal).map(({ path }) => path)).toEqual(['/1.png', '/copy.png', '/2.png', '/again.png'])
  })

  it.each([
    ['are signed again', (number: number) => `https://a.example/${number}.png?X-Amz-Signature=fresh`],
    ['are other links', (number: number) => `https://b.example/file?id=${number}`],
    ['change places', (number: number) => `https://a.example/${4 - number}.png?X-Amz-Signature=first`],
  ])('keeps the order of its outputs when their links %s', (_, freshLink) => {
    const { journal } = createTestJournal()
    accepted(journal, 'r1')
    const firstLink = (number: number) => `https://a.example/${number}.png?X-Amz-Signature=first`
    journal.status(ADDRESS, { state: finishedState('r1', [1, 2, 3].map(firstLink)) })
    const record = (number: number, url: string) =>
      journal.files(ADDRESS, 'r1', [{ ...FILE, path: `/${number}.png`, url }])
    record(2, firstLink(2))
    record(3, firstLink(3))
    journal.status(ADDRESS, { state: finishedState('r1', [1, 2, 3].map(freshLink)) })
    record(1, freshLink(1))
    const files = [1, 2, 3].map((number) => ({ ...FILE, path: `/${number}.png`, url: freshLink(number) }))
    expect(filesIn(journal)).toEqual(files)
  })

  it('removes a row with its files, unless it has changed since it was read', () => {
    const { journal } = createTestJournal()
    const place = intend(journal)
    journal.markUnconfirmed(place, LOST)
    const [unconfirmed] = journal.unconfirmed(ADDRESS)
    if (unconfirmed === undefined) throw new Error('no row')
    journal.accepted(place, { id: 'r1' })
    const going = journal.find(ADDRESS, 'r1')
    expect(journal.remove([unconfirmed])).toEqual({
      removed: [],
      changed: [{ before: unconfirmed, now: going }],
    })
    if (going === undefined) throw new Error('no row')
    journal.notFound(ADDRESS, 'r1', LOST)
    expect(journal.remove([going])).toMatchObject({ removed: [], changed: [{ before: going }] })
    const now = journal.list({})
    expect(journal.remove(now)).toEqual({ removed: now, changed: [] })
    expect(journal.remove(now)).toEqual({ removed: [], changed: [] })
    expect(journal.list({})).toEqual([])
  })

  it('finds an id at every address, the newest first', () => {
    const { journal } = createTestJournal()
    for (const address of [ADDRESS, 'local', 'https://z.example.com'])
      journal.accepted(intend(journal, { address }), { id: 'same' })
    journal.accepted(intend(journal, { address: 'local' }), { id: 'other' })
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
    const lost = intend(createTestJournal().journal)
    const other = intend(journal, { input: { prompt: 'another' } })
    expect(other.row).toBe(lost.row)
    journal.unsent(lost)
    journal.accepted(lost, { id: 'r1' })
    journal.markUnconfirmed(lost, LOST)
    expect(journal.list({})).toMatchObject([{ id: undefined, phase: 'sending', key: other.key }])
  })

  it('has a key of its own, longer when the short ones are taken', () => {
    const { journal, path } = createTestJournal()
    const keys = Array.from({ length: 20 }, () => intend(journal).key)
    expect(new Set(keys).size).toBe(20)
    expect(keys.every((key) => /^~[0-9a-f]{4,}$/.test(key))).toBe(true)
    const database = new Database(path)
    database.exec(`WITH RECURSIVE n (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM n WHERE n < 65535)
      INSERT OR IGNORE INTO runs (key, address, profile, model, input, identity, phase, status, created_at)
      SELECT printf('~%04x', n), 'x', 'x', 'x', '{}', 'x', 'unconfirmed', 'unconfirmed', 0 FROM n`)
    database.close()
    expect(intend(journal).key).toMatch(/^~[0-9a-f]{5,}$/)
  })
})

const NAMED = { requestId: 'fox-1' }

it('a request id belongs to one row of an address until the create was certainly not accepted', () => {
  const { journal } = createTestJournal()
  const place = intend(journal, NAMED)
  expect(() => intend(journal, NAMED)).toThrow('was sent before. Nothing was sent.')
  expect(journal.findByRequest(ADDRESS, 'fox-1')?.phase).toBe('sending')
  expect(journal.findByRequest('https://b.example', 'fox-1')).toBeUndefined()
  expect(() => intend(journal, { ...NAMED, address: 'https://b.example' })).not.toThrow()
  journal.unsent(place)
  expect(journal.findByRequest(ADDRESS, 'fox-1')).toBeUndefined()
  const again = intend(journal, NAMED)
  journal.accepted(again, { id: 'r1' })
  expect(() => intend(journal, NAMED)).toThrow('"fox-1" was sent before')
  expect(journal.findByRequest(ADDRESS, 'fox-1')).toMatchObject({
    id: 'r1',
    requestId: 'fox-1',
    identity: identityOf(INTENT.model, INTENT.input),
  })
})

it('a request id is missing, not wrong, in a journal of an earlier format', () => {
  const path = join(temporaryFolder(), 'journal.db')
  const earlier = new Database(path)
  earlier.exec(JOURNAL_MIGRATIONS.slice(0, 2).join(';'))
  earlier.exec(`PRAGMA user_version = 2; INSERT INTO runs (id, address, profile, model, input, identity, phase, status, created_at)
    VALUES ('r1', '${ADDRESS}', 'default', 'acme/still-1', '{}', 'x', 'going', 'queued', 0)`)
  earlier.close()
  const { journal } = createTestJournal(path)
  expect(journal.list({})).toMatchObject([{ id: 'r1', requestId: undefined }])
  intend(journal, NAMED)
  expect(journal.findByRequest(ADDRESS, 'fox-1')?.phase).toBe('sending')
})

it.each([
  {},
  { address: 'x' },
  { status: 'x' },
  { kind: 'x' },
  { model: 'x' },
  { sinceMs: 1 },
  { beforeMs: 1 },
  { address: 'x', kind: 'x', status: 'x', sinceMs: 1, beforeMs: 2 },
])('runs are listed by %j through an index, without a sort', (filter) => {
  const database = new Database(createTestJournal().path)
  const { sql, values } = listStatement({ ...filter, limit: 50 })
  const plan = JSON.stringify(database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(values.map(() => 'x')))
  database.close()
  expect(plan).toMatch(/USING INDEX runs_by_time/)
  expect(plan).not.toMatch(/TEMP B-TREE/)
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
    const writers = ['a', 'b', 'c', 'd'].map((name) => startNode([program, path, name, '15']))
    for (const { ended } of writers) expect(await ended).toMatchObject({ code: 0, stderr: '' })
    expect(asideOf(path)).toEqual(aside)
    const { journal } = createTestJournal(path)
    expect(new Set(idsIn(journal)).size).toBe(60)
    expect(integrityOf(path)).toBe('ok')
  })

  it.each(containers)(
    '%s: a create is unconfirmed when its process was killed, not before',
    async (_, words) => {
      const { journal, path, advance } = createTestJournal()
      const [command = '', ...rest] = [...words, process.execPath, program, path, 'killed', '1', 'stay']
      const child = start(createPlace(), rest, { command, stdin: 'ignore' })
      await child.prints('stdout', /intended/)
      advance(900_000)
      expect(journal.list({})).toMatchObject([{ phase: 'sending' }])
      child.kill('SIGKILL')
      await child.ended
      expect(journal.unconfirmed()).toMatchObject([
        { phase: 'unconfirmed', input: { prompt: 'killed 0' }, error: { code: 'submission_unknown' } },
      ])
    },
  )
})
