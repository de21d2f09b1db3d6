/**
 * The database as the store sees it. A statement is the same text on SQLite and PostgreSQL: `{word argument}` stands for what
 * their dialects write differently, and `:name` for the value of that name. Also how long a database that cannot be used is tried
 * again, and the error after that.
 */
import { messageOf } from '../../errors.js'
import { type Clock, systemClock } from '../../host/clock.js'
import type { Row } from '../../host/database.js'
import { retryErrors, stepOf } from '../../host/retry.js'
import { Refusal } from '../rules/refusal.js'

export type { Row }

/** The words `in` and `list` of a dialect take a list of texts. */
export type SqlValue = string | number | boolean | null | readonly string[]

/** Undefined is stored as null. */
export type Values = Readonly<Record<string, SqlValue | undefined>>

export interface Queries {
  all(sql: string, values?: Values): Promise<readonly Row[]>
  get(sql: string, values?: Values): Promise<Row | undefined>
  /** Returns the number of affected rows. */
  run(sql: string, values?: Values): Promise<number>
}

export interface Transaction extends Queries {
  /** Whether the response to the commit of an earlier attempt was lost. True only in `repeatable`. */
  readonly mayHaveCommitted: boolean
}

type Transact = <Result>(work: (tx: Transaction) => Promise<Result>) => Promise<Result>

/** A statement outside a transaction must be idempotent, because it is sent again after a lost connection. */
export interface Database extends Queries {
  /** Rejects after a lost response to the commit. */
  readonly transaction: Transact
  /** Repeats `work` after a lost response to the commit: it checks `mayHaveCommitted` or is idempotent. */
  readonly repeatable: Transact
  /** Runs `work` in a read-only transaction. All its reads see the same state. */
  snapshot<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result>
}

export interface Dialect {
  /** Sign before the number of a value. */
  readonly sign: '$' | '?'
  readonly words: {
    /** Milliseconds by the clock of the database, at this moment and not at the start of the transaction. */
    readonly now: string
    /** Locks the rows of a SELECT until the commit. SQLite has one writer at a time. */
    readonly lock: string
    /** Locks the rows of a SELECT, and skips rows that another transaction has locked. */
    readonly lock_free: string
    /** Keeps the rows of a SELECT from being removed until the commit. */
    readonly lock_shared: string
    /** Condition after a column: its text is in the list of the argument. */
    readonly in: string
    /** Table `list` of the list of the argument, with the column `value`. */
    readonly list: string
    /** Names the index of a table for SQLite's planner, which has no statistics. */
    readonly index: string
    /** Position of a text in another one, 0 for none. */
    readonly position: string
    /** Makes `lower` change only ASCII letters. */
    readonly ascii: string
  }
}

/** Returns a function that fills in the words of a dialect, and numbers the values. The argument of a word replaces its `?`. */
export function createCompiler({ sign, words }: Dialect) {
  const compiled = new Map<string, { readonly text: string; readonly names: readonly string[] }>()

  function compile(sql: string) {
    const names: string[] = []
    const filled = sql.replace(/\{([a-z_]+) ?([^}]*)\}/g, (_, word: keyof typeof words, argument: string) =>
      words[word].replace('?', argument),
    )
    // Not the `::` of a cast.
    const text = filled.replace(/(?<!:):([a-z]\w*)/gi, (_, name: string) => {
      if (!names.includes(name)) names.push(name)
      return `${sign}${names.indexOf(name) + 1}`
    })
    return { text, names }
  }

  return (sql: string, values: Values): { readonly text: string; readonly list: SqlValue[] } => {
    const { text, names } = compiled.get(sql) ?? compile(sql)
    compiled.set(sql, { text, names })
    const list = names.map((name) => {
      if (!Object.hasOwn(values, name)) throw new Error(`a statement needs the value ${name}`)
      return storable(values[name] ?? null)
    })
    return { text, list }
  }
}

/** Replaces NUL and halves of surrogate pairs, which the databases cannot store. */
function storable(value: SqlValue): SqlValue {
  if (typeof value === 'string') return value.toWellFormed().replaceAll('\0', '\u2400')
  return Array.isArray(value) ? value.map((text) => String(storable(text))) : value
}

type Statement = readonly [sql: string, values: Values]

/** An INSERT of a row. `after`: the end of the statement. `computed`: SQL of further columns, which sees the values by name. */
export function insert(
  table: string,
  row: Values,
  after = '',
  computed: Readonly<Record<string, string>> = {},
): Statement {
  const columns = [...Object.keys(row), ...Object.keys(computed)]
  const values = [...Object.keys(row).map((name) => `:${name}`), ...Object.values(computed)]
  return [`INSERT INTO ${table} (${columns}) VALUES (${values}) ${after}`, row]
}

/** An UPDATE of the row with this id. */
export const update = (table: string, id: string | number, row: Values): Statement => [
  `UPDATE ${table} SET ${Object.keys(row).map((name) => `${name} = :${name}`)} WHERE id = :id`,
  { ...row, id },
]

/**
 * The session of the user who asks for a change on the console. The change is refused if the session has ended by then,
 * although it was there when the request began.
 */
export interface SessionProof {
  /** SHA-256 of the session's token. */
  readonly session: string
  readonly nowMs: number
}

const SESSION = `
  SELECT users.id, users.account_id FROM tokens JOIN users ON users.id = tokens.user_id
  WHERE tokens.hash = :session AND tokens.kind = 'session' AND tokens.expires_at > :nowMs {lock_shared}`

/**
 * Returns the ids of the user and the account of the session, which then stays until the commit. Throws `Refusal` (401) if it
 * has ended or its user was removed. Undefined: the change has no session.
 */
export async function checkSession(
  tx: Transaction,
  by: SessionProof | undefined,
): Promise<{ readonly userId: number; readonly accountId: number } | undefined> {
  if (by === undefined) return undefined
  const row = await tx.get(SESSION, { ...by })
  if (row === undefined) throw new Refusal('not_signed_in')
  return { userId: Number(row.id), accountId: Number(row.account_id) }
}

const MAX_WAIT_MS = 5_000
/** Maximum wait when the service closes. Below the 3 s that the service waits for its responses. */
const MAX_CLOSING_WAIT_MS = 1_500
const PAUSES_MS = [10, 25, 50, 100, 200] as const

/** The database cannot be reached or cannot accept a change now. A retry may succeed later. */
export class DatabaseUnavailable extends Error {
  override readonly name = 'DatabaseUnavailable'
  readonly code = 'DATABASE_UNAVAILABLE'
  /** Whether the connection was lost during the commit, so that the change may have been made. */
  readonly isUnknown: boolean

  constructor(cause: unknown, { isUnknown = false } = {}) {
    const reason = messageOf(cause)
    super(isUnknown ? `${reason}; the change may have been made` : reason, { cause })
    this.isUnknown = isUnknown
  }
}

/** Tries operations again for 5 s, and for less when the service closes. */
export class DatabaseRetry {
  readonly #clock: Clock
  #stoppedMs: number | undefined

  constructor(clock: Clock = systemClock) {
    this.#clock = clock
  }

  /** Called when the service closes: shortens all waits. */
  stop(): void {
    this.#stoppedMs ??= this.#clock.monotonic()
  }

  /** Calls `work` again after an error, as long as `isTemporary` says so. */
  run<Value>(work: () => Promise<Value>, isTemporary: (error: unknown) => boolean): Promise<Value> {
    const clock = this.#clock
    const startedMs = clock.monotonic()
    return retryErrors(work, {
      pauseMs: (error, number) => {
        // Random: a lock without a queue is lost to a neighbour who always comes first.
        const pauseMs = Math.round(stepOf(PAUSES_MS, number) * (0.5 + Math.random()))
        const isInTime = clock.monotonic() + pauseMs < this.#deadlineMs(startedMs)
        return isTemporary(error) && isInTime ? pauseMs : undefined
      },
      clock,
    })
  }

  #deadlineMs(startedMs: number): number {
    const normalMs = startedMs + MAX_WAIT_MS
    if (this.#stoppedMs === undefined) return normalMs
    return Math.min(normalMs, Math.max(startedMs, this.#stoppedMs) + MAX_CLOSING_WAIT_MS)
  }
}
