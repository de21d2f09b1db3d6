/**
 * Statements and transactions on a pool of connections. Retries on another connection after a lost one for up to 5 s,
 * then throws `DatabaseUnavailable`.
 */
import { type RetryDecision, retry } from '../../../host/retry.js'
import { DatabaseUnavailable } from '../contract.js'
import { createRetryWindow, type RetryWindow } from '../retry-window.js'
import type { Database, Dialect, Queries, Row, SqlValue } from '../sql.js'
import { forgetValues, isConnectionLost, isOverloaded, isSerializationFailure } from './connection-errors.js'
import {
  BEGIN_SNAPSHOT,
  beginOf,
  createPool,
  type Pool,
  type PoolClient,
  STATEMENT_TIMEOUT_MS,
} from './driver.js'

/** Query timeout of full checks, which read whole tables. */
const MAX_SLOW_MS = 3_600_000
const MAX_END_MS = 1_000

/** The result of an attempt. `isUnknown`: the response to its commit was lost. */
export type Outcome<Result> =
  | { readonly value: Result }
  | { readonly error: unknown; readonly isUnknown: boolean }

export interface PostgresDatabase extends Database {
  close(): Promise<void>
}

export interface PoolOptions {
  readonly url: string
  readonly maxConnections: number
  /** Timeout after which the server cancels a statement. Default: 5 s. */
  readonly statementTimeoutMs?: number | undefined
  readonly retryWindow?: RetryWindow | undefined
}

export function createDatabase({
  url,
  maxConnections,
  statementTimeoutMs = STATEMENT_TIMEOUT_MS,
  retryWindow = createRetryWindow(),
}: PoolOptions): PostgresDatabase {
  const pool = createPool(url, maxConnections)
  const begin = beginOf(statementTimeoutMs)
  // A lost connection fails its statement, and the next one uses another. Without listeners, for idle connections and
  // for those in use, the process would exit.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  const onConnection = <Result>(
    use: (client: PoolClient, mayHaveCommitted: boolean) => Promise<Outcome<Result>>,
    repeatable = true,
  ): Promise<Result> =>
    attempts(
      retryWindow,
      (mayHaveCommitted) => attemptOn(pool, (client) => use(client, mayHaveCommitted)),
      repeatable,
    )

  return {
    dialect: POSTGRES,
    ...queriesOn((text, values) =>
      onConnection((client) => attemptTransaction(client, begin, () => client.query(text, [...values]))),
    ),
    transaction: (work, { repeatable = false } = {}) =>
      onConnection(
        (client, mayHaveCommitted) =>
          attemptTransaction(client, begin, (queries) => work({ ...queries, mayHaveCommitted })),
        repeatable,
      ),
    snapshot: (work) =>
      onConnection((client) => attemptTransaction(client, BEGIN_SNAPSHOT, work, MAX_SLOW_MS)),
    async close() {
      retryWindow.stop()
      // A server that does not respond must not delay the exit.
      await Promise.race([
        pool.end().catch(() => {}),
        new Promise((resolve) => setTimeout(resolve, MAX_END_MS).unref()),
      ])
    },
  }
}

/** Retries the attempt on another connection after a lost connection. */
export function attempts<Result>(
  { clock, pauseMs }: RetryWindow,
  attempt: (mayHaveCommitted: boolean) => Promise<Outcome<Result>>,
  repeatable = true,
): Promise<Result> {
  const startedMs = clock.monotonic()
  let mayHaveCommitted = false

  function decide(outcome: Outcome<Result>, number: number): RetryDecision<Result> {
    if ('value' in outcome) return { done: outcome.value }
    const { error, isUnknown } = outcome
    mayHaveCommitted ||= isUnknown
    const unavailable = { fail: new DatabaseUnavailable(error, { isUnknown: mayHaveCommitted }) }
    if (isOverloaded(error) || (mayHaveCommitted && !repeatable)) return unavailable
    if (!isConnectionLost(error) && !isSerializationFailure(error)) return { fail: error }
    const retryInMs = pauseMs(startedMs, number)
    return retryInMs === undefined ? unavailable : { retryInMs }
  }

  return retry<Outcome<Result>, Result>({ attempt: () => attempt(mayHaveCommitted), decide, clock })
}

async function attemptOn<Result>(
  pool: Pool,
  use: (client: PoolClient) => Promise<Outcome<Result>>,
): Promise<Outcome<Result>> {
  let client: PoolClient
  try {
    client = await pool.connect()
  } catch (error) {
    return { error, isUnknown: false }
  }
  // A connection that is lost between statements emits `error`. Without a listener, the process would exit.
  const ignore = () => {}
  client.on('error', ignore)
  let outcome: Outcome<Result> | undefined
  try {
    outcome = await use(client)
    if ('error' in outcome) forgetValues(outcome.error)
    return outcome
  } finally {
    client.removeListener('error', ignore)
    const isLost = outcome !== undefined && 'error' in outcome && isConnectionLost(outcome.error)
    client.release(isLost)
  }
}

async function attemptTransaction<Result>(
  client: PoolClient,
  begin: string,
  work: (queries: Queries) => Promise<Result>,
  query_timeout?: number,
): Promise<Outcome<Result>> {
  let isCommitting = false
  const queries = queriesOn(async (text, values) =>
    client.query({ text, values: [...values], ...(query_timeout && { query_timeout }) } as never),
  )
  const begun = client.query(begin)
  begun.catch(() => {})
  try {
    const value = await work(queries)
    await begun
    isCommitting = true
    await client.query('COMMIT')
    return { value }
  } catch (error) {
    const isLost = isConnectionLost(error)
    if (!isLost) await client.query('ROLLBACK').catch(() => {})
    return { error, isUnknown: isLost && isCommitting }
  }
}

interface Result {
  readonly rows: readonly Row[]
  readonly rowCount: number | null
}

type Send = (text: string, values: readonly SqlValue[]) => Promise<Result>

const queriesOn = (send: Send): Queries => ({
  all: async (text, ...values) => (await send(text, values)).rows,
  get: async (text, ...values) => (await send(text, values)).rows[0],
  run: async (text, ...values) => (await send(text, values)).rowCount ?? 0,
})

export const POSTGRES: Dialect = {
  // Not now(), which is the start of the transaction, before it waited for a lock.
  now: '(extract(epoch FROM clock_timestamp()) * 1000)::bigint',
  lock: (table) => ` FOR NO KEY UPDATE${table === undefined ? '' : ` OF ${table}`}`,
  lockFree: ' FOR UPDATE SKIP LOCKED',
  lockShared: ' FOR KEY SHARE',
  // A list is one value, which the planner cannot inspect. Otherwise it would plan every call again.
  inList: (parameter) => `= ANY (${parameter}::text[])`,
  list: (parameter, alias) => `unnest(${parameter}::text[]) AS ${alias} (value)`,
  index: () => '',
  // With the collation "C", `lower` changes only ASCII letters.
  contains: (text, part) => `position(lower(${part} COLLATE "C") IN lower(${text} COLLATE "C")) > 0`,
}
