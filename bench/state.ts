/**
 * What the files of the state folder cost: `npm run bench -- state`. A grant of the shared limit, alone and beside seven
 * busy processes; the journal with a hundred runs and with a hundred thousand; all that a batch of 10,000 rows writes. Prints
 * Markdown tables.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import Database from 'libsql'
import { LockFile } from '../src/batch/lock/file.js'
import { newLock } from '../src/batch/lock/lock.js'
import { systemClock } from '../src/host/clock.js'
import { type IntentRow, Journal } from '../src/journal/index.js'
import { SharedWindow } from '../src/limiter/shared-window.js'
import { quantile, row } from './table.js'

interface Times {
  readonly median: number
  readonly p99: number
}

const timesOf = (ms: readonly number[]): Times => ({ median: quantile(ms, 0.5), p99: quantile(ms, 0.99) })

function measured(times: number, work: () => void): Times {
  const ms: number[] = []
  for (let time = 0; time < times; time++) {
    const started = performance.now()
    work()
    ms.push(performance.now() - started)
  }
  return timesOf(ms)
}

let calls = 0

/** The real ledger, on a clock that advances 600 ms for each grant, so that slots become free and nothing waits. */
function granting(file: string, times: number): Times {
  let nowMs = performance.now()
  const ledger = new SharedWindow({
    path: file,
    keyHash: `bench ${process.pid} ${calls++}`,
    clock: { ...systemClock, monotonic: () => nowMs },
  })
  const cost = measured(times, () => {
    nowMs += 600
    const taken = ledger.take(0)
    if (!('slot' in taken)) throw new Error('no slot was free')
    ledger.settle(taken.slot)
  })
  ledger.close()
  return cost
}

/** Seven of these want the file as often as eight polling processes at their fastest would: once in 500 ms each. */
async function beBusy(file: string, stop: string): Promise<void> {
  process.stdout.write('ready\n')
  while (!existsSync(stop)) {
    granting(file, 5)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

async function main(): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'rushes-state-'))
  try {
    await grants(join(folder, 'limits.db'), join(folder, 'stop'))
    journals(folder)
    await batch(folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

const ms = (value: number): string => value.toFixed(3)

async function grants(file: string, stop: string): Promise<void> {
  console.log('\nA slot of the limit, taken and settled:\n')
  row('processes', 'median ms', 'p99 ms')
  row('---', '--:', '--:')
  const alone = granting(file, 2_000)
  row('one', ms(alone.median), ms(alone.p99))
  const neighbours = Array.from({ length: 7 }, () =>
    spawn(process.execPath, [fileURLToPath(import.meta.url), 'neighbour', file, stop], {
      stdio: ['ignore', 'pipe', 'inherit'],
    }),
  )
  await Promise.all(neighbours.map(({ stdout }) => once(stdout, 'data')))
  const together = granting(file, 2_000)
  row('eight', ms(together.median), ms(together.p99))
  new Database(stop).close()
  await Promise.all(neighbours.map((each) => once(each, 'exit')))
}

const ADDRESS = 'https://api.example.com'

const openAt = (file: string, now = () => 0): Journal =>
  new Journal({ folder: dirname(file), now, warn() {} })

function filled(file: string, runs: number) {
  openAt(file).close()
  const database = new Database(file)
  database.exec(`
    WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ${runs})
    INSERT INTO runs (id, address, profile, kind, model, input, identity, phase, status, created_at, finished_at,
      elapsed_ms, urls)
    SELECT 'run_' || n, '${ADDRESS}', 'default', iif(n % 3, 'image', 'video'), iif(n % 3, 'acme/still-1', 'acme/cinema-1'),
      '{"prompt":"fox number ' || n || ' in fresh snow"}', hex(randomblob(32)), iif(n % 50, 'succeeded', 'failed'),
      iif(n % 50, 'succeeded', 'failed'), 1700000000000 + n * 1000, 1700000000000 + n * 1000 + 40000, 40000,
      '["https://cdn.example.com/' || n || '.png"]' FROM numbers;
    ANALYZE`)
  database.close()
  let now = 1_800_000_000_000
  return openAt(file, () => now++)
}

function journals(folder: string): void {
  const [few, many] = [100, 100_000]
  const small = filled(join(folder, 'small', 'journal.db'), few)
  const large = filled(join(folder, 'large', 'journal.db'), many)
  console.log('\nThe journal:\n')
  row('', `${few} runs, ms`, `${many.toLocaleString('en')} runs, ms`, 'ratio')
  row('---', '--:', '--:', '--:')
  const compare = (what: string, times: number, work: (journal: typeof small) => void): void => {
    // In turns, so that both meet the same noise.
    const a: number[] = []
    const b: number[] = []
    for (let turn = 0; turn < times; turn++) {
      a.push(measured(1, () => work(small)).median)
      b.push(measured(1, () => work(large)).median)
    }
    const [left, right] = [timesOf(a).median, timesOf(b).median]
    row(what, ms(left), ms(right), (right / left).toFixed(2))
  }
  compare('list, 50 newest', 300, (journal) => void journal.list({ limit: 50 }))
  compare('list --status failed', 300, (journal) => void journal.list({ status: 'failed', limit: 2 }))
  compare('list --kind video', 300, (journal) => void journal.list({ kind: 'video', limit: 30 }))
  compare('last', 300, (journal) => void journal.last(ADDRESS))
  compare('unfinished and unconfirmed', 300, (journal) => {
    journal.unfinished(ADDRESS)
    journal.unconfirmed(ADDRESS)
  })
  let number = 0
  compare('of a run: intent, id, two statuses, one file', 200, (journal) => {
    const id = `new_${number++}`
    const state = {
      id,
      urls: [],
      failure: undefined,
      createdAt: undefined,
      finishedAt: undefined,
      service: {},
    }
    const intent = { address: ADDRESS, profile: 'default', kind: 'image', model: 'acme/still-1' }
    const row = journal.intend('required', { ...intent, input: { prompt: id } }) as IntentRow
    journal.accepted(row, { id })
    journal.status(ADDRESS, { state: { ...state, status: 'processing', phase: 'running' } })
    const urls = ['https://cdn.example.com/x.png']
    journal.status(ADDRESS, {
      state: { ...state, urls, status: 'succeeded', phase: 'succeeded' },
      elapsedMs: 9,
    })
    const [url = ''] = urls
    journal.files(ADDRESS, id, [{ path: `/x/${id}`, bytes: 1, sha256: 'x', url, content_type: 'image/png' }])
  })
  small.close()
  large.close()
  const opening = (name: string) => () => openAt(join(folder, name)).close()
  const [left, right] = [
    measured(50, opening('small/journal.db')).median,
    measured(50, opening('large/journal.db')).median,
  ]
  row('open and close', ms(left), ms(right), (right / left).toFixed(2))
}

const ROWS = 10_000
/** Rows that end within one second, which share a write of the lock file. */
const ROWS_A_WRITE = 20

/** What a batch writes for its rows: the journal at each step, and the lock file at most once a second. */
async function batch(folder: string): Promise<void> {
  const path = join(folder, 'shots.lock.json')
  const journal = openAt(join(folder, 'batch', 'journal.db'), () => Date.now())
  const name = { id: 'batch', lockPath: path }
  const rows = Array.from({ length: ROWS }, (_, at) => `shot-${String(at).padStart(5, '0')}`)
  const lock = new LockFile({
    path,
    manifest: 'shots.yaml',
    lock: { ...newLock(), batch: name.id },
    rows: new Set(rows),
    // The alarms of the lock file are not needed: each write is asked for.
    clock: { ...systemClock, alarm: () => () => {} },
    keepsWorking: false,
    onWritten: (entries) => {
      const made = [...entries].flatMap(([entry, each]) => (each === undefined ? [] : { entry, ...each }))
      inJournal(() => journal.recorded(name, made))
    },
    onFailed(error) {
      throw error
    },
    onChanged() {},
  })
  let journalMs = 0
  function inJournal<Result>(work: () => Result): Result {
    const started = performance.now()
    const result = work()
    journalMs += performance.now() - started
    return result
  }
  const lockMs: number[] = []
  async function write(work: () => Promise<void>): Promise<void> {
    const started = performance.now()
    const before = journalMs
    await work()
    lockMs.push(performance.now() - started - (journalMs - before))
  }
  await write(() => lock.begin(journal.id))
  for (const [at, entry] of rows.entries()) {
    const id = `run_${entry}`
    const hash = 'a'.repeat(64)
    const urls = [`https://cdn.example.com/${id}.png`]
    const file = { url: urls[0] ?? '', sha256: hash, bytes: 1, content_type: 'image/png' }
    const state = { id, urls, failure: undefined, createdAt: undefined, finishedAt: undefined, service: {} }
    inJournal(() => {
      const intent = { address: ADDRESS, profile: 'default', kind: 'image', model: 'acme/still-1' }
      const input = { prompt: entry }
      const row = journal.intend('required', {
        ...intent,
        input,
        identity: hash,
        batch: name,
        entry,
      }) as IntentRow
      journal.accepted(row, { id })
      journal.status(ADDRESS, { state: { ...state, status: 'succeeded', phase: 'succeeded' }, elapsedMs: 9 })
      journal.files(ADDRESS, id, [{ path: `/x/${id}.png`, ...file }], row.row)
    })
    lock.change(entry, {
      ...file,
      hash,
      kind: 'image',
      model: 'acme/still-1',
      run: id,
      service: ADDRESS,
      made_at: new Date().toISOString(),
      file: `art/${entry}.png`,
    })
    if (at % ROWS_A_WRITE === ROWS_A_WRITE - 1) await write(() => lock.write())
  }
  await write(() => lock.end(true))
  journal.close()
  const seconds = (all: number) => (all / 1_000).toFixed(1)
  console.log(`\nWhat a batch of ${ROWS.toLocaleString('en')} rows writes:\n`)
  row('file', 'writes', 'all together, s', 'median, ms', 'last, ms')
  row('---', '--:', '--:', '--:', '--:')
  row('journal', 5 * ROWS, seconds(journalMs), ms(journalMs / 5 / ROWS), '')
  const sum = lockMs.reduce((all, each) => all + each, 0)
  row('lock file', lockMs.length, seconds(sum), ms(timesOf(lockMs).median), ms(lockMs.at(-1) ?? 0))
}

const [role, path = '', mark = ''] = process.argv.slice(2)
if (role === 'neighbour') await beBusy(path, mark)
else await main()
