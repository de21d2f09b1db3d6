/** Reads and changes the journal of a home, during or after a command. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import Database from 'libsql'
import { type Intent, type IntentRow, Journal, type JournalRun } from '../../src/journal/index.js'
import type { DownloadedFile } from '../../src/protocol/media.js'
import type { RunState } from '../../src/protocol/run-state.js'
import { readyDatabase } from './ready-database.js'
import { runState } from './runs.js'

/** Opens the journal, runs the function, and closes it. */
export function withJournal<Result>(
  home: string,
  work: (journal: Journal) => Result,
  folder = join(home, 'state'),
  // One day before the clock of the tests starts.
  at = '2025-12-31T00:00Z',
): Result {
  readyDatabase('journal', join(folder, 'journal.db'))
  const journal = new Journal({
    folder,
    now: () => Date.parse(at),
    warn(message) {
      throw new Error(message)
    },
  })
  try {
    return work(journal)
  } finally {
    journal.close()
  }
}

/** Makes every write to the runs of a journal fail, as on a full disk. Returns the function that ends this. */
export function fillJournal(path: string): () => void {
  const changes = ['INSERT', 'UPDATE', 'DELETE']
  const run = (sqlOf: (change: string) => string) => {
    const database = new Database(path)
    database.exec(changes.map(sqlOf).join(';'))
    database.close()
  }
  run(
    (change) =>
      `CREATE TRIGGER full_${change} BEFORE ${change} ON runs BEGIN SELECT RAISE(ABORT, 'disk is full'); END`,
  )
  return () => run((change) => `DROP TRIGGER full_${change}`)
}

/** Returns every row, newest first. */
export const rowsOf = (home: string): readonly JournalRun[] =>
  withJournal(home, (journal) => journal.list({}))

/** Returns all bytes of the state folder. */
export function stateBytes(home: string): Buffer {
  const folder = join(home, 'state')
  if (!existsSync(folder)) return Buffer.alloc(0)
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())
  return Buffer.concat(files.map(({ name }) => readFileSync(join(folder, name))))
}

/** A run that an earlier command created at the address of `SET`. Without an id, its create has an unknown outcome. */
export interface PastRun extends Partial<Intent> {
  readonly id?: string | undefined
  /** Of its outputs, if it has succeeded. */
  readonly urls?: readonly string[]
  /** Another end. */
  readonly state?: Partial<RunState>
  /** Its outputs on this machine. */
  readonly files?: readonly (Pick<DownloadedFile, 'path'> & Partial<DownloadedFile>)[]
  /** Of its create. */
  readonly at?: string
}

export function addRow(home: string, { id, urls, state, files, at, ...more }: PastRun): void {
  const intent = {
    address: 'http://127.0.0.1:1',
    profile: 'default',
    kind: 'image',
    model: 'acme/still-1',
    input: { prompt: 'a fox' },
    ...more,
  }
  const { address } = intent
  const unknown = { bytes: 1, sha256: 'x', url: 'x', content_type: 'image/png' }
  const made = files?.map((file) => ({ ...unknown, ...file }))
  const add = (journal: Journal) => {
    const row = journal.intend('required', intent)
    if (id === undefined) return journal.markUnconfirmed(row, { code: 'submission_unknown', message: 'lost' })
    journal.accepted(row as IntentRow, { id })
    if (urls ?? state) journal.status(address, { state: { ...finishedState(id, urls ?? []), ...state } })
    if (made !== undefined) journal.files(address, id, made)
  }
  withJournal(home, add, undefined, at)
}

export const finishedState = (id: string, urls: readonly string[]): RunState =>
  runState({ id, status: 'succeeded', phase: 'succeeded', urls })
