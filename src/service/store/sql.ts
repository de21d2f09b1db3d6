/**
 * The database as the store sees it. Statements use PostgreSQL's parameters (`$1`), and are the same text on SQLite and
 * PostgreSQL except for what `Dialect` gives.
 */
import type { Row } from '../../host/database.js'
import { Refusal } from '../rules/refusal.js'

export type { Row }

/** A list is a parameter of `Dialect.inList` or `Dialect.list`. */
export type SqlValue = string | number | boolean | null | readonly string[]

export interface Queries {
  all(sql: string, ...values: readonly SqlValue[]): Promise<readonly Row[]>
  get(sql: string, ...values: readonly SqlValue[]): Promise<Row | undefined>
  /** Returns the number of affected rows. */
  run(sql: string, ...values: readonly SqlValue[]): Promise<number>
}

export interface Transaction extends Queries {
  /**
   * Whether the response to the commit of an earlier attempt was lost. If true, `work` checks whether it was committed.
   * True only with `repeatable`.
   */
  readonly mayHaveCommitted: boolean
}

export interface TransactionOptions {
  /** Whether `work` checks `mayHaveCommitted` or is idempotent. If false, a lost response rejects. */
  readonly repeatable?: boolean
}

/** A transaction that is repeated after a lost response: `work` checks `mayHaveCommitted` or is idempotent. */
export const repeatable = <Result>(
  { transaction }: Database,
  work: (tx: Transaction) => Promise<Result>,
): Promise<Result> => transaction(work, { repeatable: true })

/** A statement outside a transaction must be idempotent, because it is sent again after a lost connection. */
export interface Database extends Queries {
  readonly dialect: Dialect
  transaction<Result>(
    work: (tx: Transaction) => Promise<Result>,
    options?: TransactionOptions,
  ): Promise<Result>
  /** Runs `work` in a read-only transaction. All its reads see the same state. */
  snapshot<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result>
}

export interface Dialect {
  /** Milliseconds by the clock of the database, at this moment and not at the start of the transaction. */
  readonly now: string
  /** Locks the rows of a SELECT until the commit, or only those of one table. SQLite has one writer at a time. */
  lock(table?: string): string
  /** Locks the rows of a SELECT, and skips rows that another transaction has locked. */
  readonly lockFree: string
  /** Keeps the rows of a SELECT from being removed until the commit. */
  readonly lockShared: string
  /** Condition after a column: its text is in the list. */
  inList(parameter: string): string
  /** Table of a list of texts, with the column `value`. */
  list(parameter: string, alias: string): string
  /** Names the index of a table for SQLite's planner, which has no statistics. */
  index(name: string): string
  /** Condition: the text contains the other one. Ignores case for ASCII letters only. */
  contains(text: string, part: string): string
}

/** An INSERT whose columns and values come from one object. `more`: SQL of further columns, which sees the values by number. */
export function insert(
  table: string,
  row: Readonly<Record<string, SqlValue>>,
  more: Readonly<Record<string, string>> = {},
): readonly [sql: string, ...values: SqlValue[]] {
  const columns = [...Object.keys(row), ...Object.keys(more)].join(', ')
  const values = [...Object.keys(row).map((_, at) => `$${at + 1}`), ...Object.values(more)].join(', ')
  return [`INSERT INTO ${table} (${columns}) VALUES (${values})`, ...Object.values(row)]
}

/**
 * The session of the user who asks for a change on the console. The change is refused if the session has ended by then,
 * although it was there when the request began.
 */
export interface SessionProof {
  /** SHA-256 of the session's token. */
  readonly session: string
  readonly nowMs: number
}

/**
 * Returns the ids of the user and the account of the session, which then stays until the commit. Throws `Refusal` (401) if it
 * has ended or its user was removed.
 */
export async function checkSession(
  tx: Transaction,
  { lockShared }: Dialect,
  { session, nowMs }: SessionProof,
): Promise<{ readonly userId: number; readonly accountId: number }> {
  const row = await tx.get(
    `SELECT users.id, users.account_id FROM tokens JOIN users ON users.id = tokens.user_id
     WHERE tokens.hash = $1 AND tokens.kind = 'session' AND tokens.expires_at > $2${lockShared}`,
    session,
    nowMs,
  )
  if (row === undefined) throw new Refusal('not_signed_in')
  return { userId: Number(row.id), accountId: Number(row.account_id) }
}

/** PostgreSQL rejects this character, so no stored text contains it. */
export const hasNul = (...texts: readonly string[]): boolean => texts.some((text) => text.includes('\0'))
