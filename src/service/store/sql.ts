/**
 * The database as the store sees it. Statements are the same text on SQLite and PostgreSQL except for what `Dialect` gives.
 * `:name` in a statement stands for the value of that name.
 */
import type { Row } from '../../host/database.js'
import { Refusal } from '../rules/refusal.js'

export type { Row }

/** A list is a parameter of `Dialect.inList` or `Dialect.list`. */
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

const compiled = new Map<string, { readonly text: string; readonly names: readonly string[] }>()

/** Numbers the named values of a statement: `$1` with the sign `$`. */
export function numbered(
  sql: string,
  values: Values,
  sign: '$' | '?',
): { readonly text: string; readonly list: readonly SqlValue[] } {
  const known = compiled.get(sign + sql) ?? compile(sql, sign)
  compiled.set(sign + sql, known)
  const list = known.names.map((name) => {
    if (!Object.hasOwn(values, name)) throw new Error(`a statement needs the value ${name}`)
    return values[name] ?? null
  })
  return { text: known.text, list }
}

function compile(sql: string, sign: string) {
  const names: string[] = []
  // Not the `::` of a cast.
  const text = sql.replace(/(?<!:):([a-z]\w*)/gi, (_, name: string) => {
    if (!names.includes(name)) names.push(name)
    return `${sign}${names.indexOf(name) + 1}`
  })
  return { text, names }
}

type Statement = readonly [sql: string, values: Values]

/** An INSERT of a row. `more`: SQL of further columns, which sees the values by name. `after`: the end of the statement. */
export function insert(
  table: string,
  row: Values,
  {
    more = {},
    after = '',
  }: { readonly more?: Readonly<Record<string, string>>; readonly after?: string } = {},
): Statement {
  const columns = [...Object.keys(row), ...Object.keys(more)]
  const values = [...Object.keys(row).map((name) => `:${name}`), ...Object.values(more)]
  return [`INSERT INTO ${table} (${columns}) VALUES (${values}) ${after}`, row]
}

/** An UPDATE of the row with this id. */
export const update = (table: string, id: number, row: Values): Statement => [
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

/**
 * Returns the ids of the user and the account of the session, which then stays until the commit. Throws `Refusal` (401) if it
 * has ended or its user was removed. Undefined: the change has no session.
 */
export async function checkSession(
  tx: Transaction,
  { lockShared }: Dialect,
  by: SessionProof | undefined,
): Promise<{ readonly userId: number; readonly accountId: number } | undefined> {
  if (by === undefined) return undefined
  const { session, nowMs } = by
  const row = await tx.get(
    `SELECT users.id, users.account_id FROM tokens JOIN users ON users.id = tokens.user_id
     WHERE tokens.hash = :session AND tokens.kind = 'session' AND tokens.expires_at > :nowMs${lockShared}`,
    { session, nowMs },
  )
  if (row === undefined) throw new Refusal('not_signed_in')
  return { userId: Number(row.id), accountId: Number(row.account_id) }
}

/** PostgreSQL rejects this character, so no stored text contains it. */
export const hasNul = (...texts: readonly string[]): boolean => texts.some((text) => text.includes('\0'))
