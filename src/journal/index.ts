/**
 * What this machine has run: intents before they are sent, ids, statuses, outputs, files. Many processes write at
 * once. What `intend` and `accept` wrote is on the disk when they return; so is everything else, at the same price.
 *
 * Limits: it knows the runs that were created here, and none that others made with the same key. It never holds the
 * key, and of pictures sent as data: URLs only what identifies them.
 */
import { openOrSetAside, setAside } from '../host/corruption.js'
import type { OpenDatabase, Row } from '../host/database.js'
import {
  accept,
  buryTheDead,
  type Doubt,
  doubt,
  type Forgotten,
  forget,
  type Intent,
  insert,
  type Place,
  retract,
} from './creates.js'
import { identityOf } from './identity.js'
import { FIND, fileOfRow, type JournalFile, type JournalRun, runOfRow } from './journal-run.js'
import { type ListFilter, listRuns } from './list-runs.js'
import { JOURNAL_MIGRATIONS } from './migrations.js'
import { keepFiles, miss, type Sight, see } from './status-updates.js'
import { MOST_RUNS, type Usual, usualOf } from './typical-duration.js'

export interface Journal {
  /** Directly before the bytes are sent. */
  intend(intent: Intent): Place
  /** It was certainly not accepted. */
  retract(place: Place): void
  /** False where there is no such row (any more). */
  accept(place: Place, id: string, status?: string): boolean
  doubt(place: Place, doubt: Doubt): boolean
  see(address: string, sight: Sight): void
  /** A look said that there is no such run. It may be the wrong key, so the row stays as it is. */
  miss(address: string, id: string, doubt: Doubt): void
  keepFiles(address: string, id: string, files: readonly JournalFile[]): void
  find(address: string, id: string): JournalRun | undefined
  findByKey(key: string): JournalRun | undefined
  filesOf(run: JournalRun): readonly JournalFile[]
  /** The run created last. */
  last(address: string): JournalRun | undefined
  /** Oldest first; at every address when none is given. */
  unfinished(address?: string): readonly JournalRun[]
  /** The same. */
  unconfirmed(address?: string): readonly JournalRun[]
  /** Newest first. */
  list(filter: ListFilter): readonly JournalRun[]
  /** Succeeded runs of the same request, newest first. */
  reusable(address: string, model: string, meaning: unknown, most: number): readonly JournalRun[]
  /** The newest run of the same request that has an id, created at that instant or later. */
  lastOf(address: string, identity: string, sinceMs: number): JournalRun | undefined
  /** By key, or by the id of a run of that address where a look has said that there is no such run. */
  forget(name: string, address?: string): Forgotten
  usual(address: string, model: string): Usual | undefined
  /** How long the latest runs of a model took, in milliseconds, as far as that was seen. */
  took(address: string, model: string): readonly number[]
  /** `ok`, or what SQLite finds wrong. */
  integrity(): string
  /** False when its file was removed, or set aside by a neighbour: what is written here is found by nobody. */
  isCurrent(): boolean
  /** Closes it, gives its file another name, and its name to a new one; not when a neighbour did that already. */
  setAside(): void
  close(): void
}

export interface JournalOptions {
  readonly path: string
  /** Wall clock, milliseconds. */
  now(): number
  /** The file was damaged, has this name now, and a new one was begun. */
  onSetAside(name: string): void
}

/** A neighbour that writes is waited for that long. */
const BUSY_MS = 10_000

/** Throws `NewerFormat`, or the database's error; every call throws the database's errors. */
export function openJournal({ path, now, onSetAside }: JournalOptions): Journal {
  const file = { path, migrations: JOURNAL_MIGRATIONS, busyTimeoutMs: BUSY_MS }
  const db = openOrSetAside(file, onSetAside)
  const one = (row: Row | undefined) => (row === undefined ? undefined : runOfRow(row))

  return {
    intend: (intent) => insert(db, intent, now()),
    retract: (place) => retract(db, place),
    accept: (place, id, status = 'accepted') => accept(db, place, id, status),
    doubt: (place, doubted) => doubt(db, place, doubted),
    see: (address, sight) => see(db, address, sight, now()),
    miss: (address, id, doubted) => miss(db, address, id, doubted),
    keepFiles: (address, id, files) => keepFiles(db, address, id, files, now()),
    find: (address, id) => one(db.get(FIND, address, id)),
    findByKey: (key) => one(db.get('SELECT * FROM runs WHERE key = ?', key)),
    filesOf: ({ row }) => db.all('SELECT * FROM files WHERE row = ? ORDER BY file', row).map(fileOfRow),
    last(address) {
      buryTheDead(db)
      return one(db.get('SELECT * FROM runs WHERE address = ? ORDER BY row DESC LIMIT 1', address))
    },
    unfinished: (address) =>
      db
        .all(
          `SELECT * FROM runs INDEXED BY runs_going WHERE phase = 'going' AND address = coalesce(?, address)
           ORDER BY row`,
          address ?? null,
        )
        .map(runOfRow),
    unconfirmed(address) {
      buryTheDead(db)
      const all = db
        .all(`SELECT * FROM runs INDEXED BY runs_unconfirmed WHERE phase = 'unconfirmed' ORDER BY row`)
        .map(runOfRow)
      return address === undefined ? all : all.filter((run) => run.address === address)
    },
    list(filter) {
      buryTheDead(db)
      return listRuns(db, filter)
    },
    reusable: (address, model, meaning, most) =>
      db
        .all(
          `SELECT * FROM runs WHERE phase = 'succeeded' AND identity = ? AND address = ?
           ORDER BY row DESC LIMIT ?`,
          identityOf(model, meaning),
          address,
          most,
        )
        .map(runOfRow),
    forget(name, address) {
      buryTheDead(db)
      return forget(db, name, address)
    },
    lastOf: (address, identity, sinceMs) =>
      one(
        db.get(
          `SELECT * FROM runs INDEXED BY runs_by_identity
           WHERE identity = ? AND address = ? AND id IS NOT NULL AND created_at >= ? ORDER BY row DESC LIMIT 1`,
          identity,
          address,
          sinceMs,
        ),
      ),
    usual: (address, model) => usualOf(tookOf(db, address, model)),
    took: (address, model) => tookOf(db, address, model),
    integrity: () =>
      db
        .all('PRAGMA integrity_check')
        .map(({ integrity_check }) => String(integrity_check))
        .join('; '),
    isCurrent: () => db.isCurrent(),
    setAside() {
      db.close()
      setAside(file, db.inode, onSetAside)
    },
    close: () => db.close(),
  }
}

const tookOf = (db: OpenDatabase, address: string, model: string): readonly number[] =>
  db
    .all(
      'SELECT took_ms FROM runs WHERE took_ms IS NOT NULL AND address = ? AND model = ? ORDER BY row DESC LIMIT ?',
      address,
      model,
      MOST_RUNS,
    )
    .map(({ took_ms }) => Number(took_ms))

export type { Doubt, Forgotten, Intent, Place } from './creates.js'
export type { JournalFile, JournalRun } from './journal-run.js'
export type { ListFilter } from './list-runs.js'
export type { Sight } from './status-updates.js'
export type { Usual } from './typical-duration.js'
