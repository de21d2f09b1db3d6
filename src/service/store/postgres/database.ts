/**
 * Statements and transactions on a pool of connections. Retries on another connection after a lost one for up to 5 s,
 * then throws `DatabaseUnavailable`.
 */
import { type RetryDecision, retry } from '../../../host/retry.js'
import { DatabaseUnavailable } from '../contract.js'
import { forgetValues, isConnectionLost, isOverloaded, isSerializationFailure } from './connection-errors.js'
import {
  createPool,
  createRetryWindow,
  type PgValue,
  type PoolClient,
  type PreparedStatement,
  type RetryWindow,
  type Row,
} from './driver.js'

/** Query timeout of full checks, which read whole tables. */
const MAX_SLOW_MS = 3_600_000
const MAX_END_MS = 1_000

export interface Queries {
  all(statement: PreparedStatement, ...values: readonly PgValue[]): Promise<readonly Row[]>
  get(statement: PreparedStatement, ...values: readonly PgValue[]): Promise<Row | undefined>
  /** Returns the number of affected rows. */
  run(statement: PreparedStatement, ...values: readonly PgValue[]): Promise<number>
}

export interface Transaction extends Queries {
  /** Sends the last statement together with the commit. */
  commitWith(statement: PreparedStatement, ...values: readonly PgValue[]): Promise<readonly Row[]>
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

/** The result of an attempt. `isUnknown`: the response to its commit was lost. */
type Outcome<Result> = { readonly value: Result } | { readonly error: unknown; readonly isUnknown: boolean }

/** Statements outside a transaction must be idempotent, because they are retried. */
export interface PostgresDatabase extends Queries {
  transaction<Result>(
    work: (transaction: Transaction) => Promise<Result>,
    options?: TransactionOptions,
  ): Promise<Result>
  /** Runs `work` in a read-only transaction. All its reads see the same state, and have no statement timeout. */
  snapshot<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result>
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
  statementTimeoutMs,
  retryWindow = createRetryWindow(),
}: PoolOptions): PostgresDatabase {
  const pool = createPool(url, maxConnections, statementTimeoutMs)
  // An idle connection was lost. The next statement uses another one. Without a listener, the process would exit.
  pool.on('error', () => {})

  async function onConnection<Result>(
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

  /** Retries the attempt on another connection after a lost connection. */
  async function attempts<Result>(
    attempt: (mayHaveCommitted: boolean) => Promise<Outcome<Result>>,
    repeatable: boolean,
  ): Promise<Result> {
    const startedMs = retryWindow.clock.monotonic()
    let mayHaveCommitted = false

    function decide(outcome: Outcome<Result>, number: number): RetryDecision<Result> {
      if ('value' in outcome) return { done: outcome.value }
      const { error, isUnknown } = outcome
      mayHaveCommitted ||= isUnknown
      if (isOverloaded(error) || (mayHaveCommitted && !repeatable))
        return { fail: new DatabaseUnavailable(error, { isUnknown: mayHaveCommitted }) }
      if (!isConnectionLost(error) && !isSerializationFailure(error)) return { fail: error }
      const retryInMs = retryWindow.pauseMs(startedMs, number)
      if (retryInMs === undefined)
        return { fail: new DatabaseUnavailable(error, { isUnknown: mayHaveCommitted }) }
      return { retryInMs }
    }

    return await retry<Outcome<Result>, Result>({
      attempt: () => attempt(mayHaveCommitted),
      decide,
      clock: retryWindow.clock,
    })
  }

  const single = (statement: PreparedStatement, values: readonly PgValue[]) =>
    attempts(
      () =>
        onConnection((client) =>
          client.query({ ...statement, values: [...values] }).then(
            (value) => ({ value }),
            (error: unknown) => ({ error, isUnknown: isConnectionLost(error) }),
          ),
        ),
      true,
    )

  async function attemptTransaction<Result>(
    client: PoolClient,
    mayHaveCommitted: boolean,
    work: (transaction: Transaction) => Promise<Result>,
  ): Promise<Outcome<Result>> {
    let isCommitting = false
    let isCommitted = false
    const queries = queriesOn(
      async (statement, values) => await client.query({ ...statement, values: [...values] }),
    )
    const commit = () => {
      isCommitting = true
      return client.query('COMMIT')
    }
    const begun = client.query('BEGIN')
    begun.catch(() => {})
    try {
      const value = await work({
        ...queries,
        mayHaveCommitted,
        async commitWith(statement, ...values) {
          const last = queries.all(statement, ...values)
          const committed = commit()
          committed.catch(() => {})
          const rows = await last
          await committed
          isCommitted = true
          return rows
        },
      })
      await begun
      if (!isCommitted) await commit()
      return { value }
    } catch (error) {
      const isLost = isConnectionLost(error)
      if (!isLost) await client.query('ROLLBACK').catch(() => {})
      return { error, isUnknown: isLost && isCommitting }
    }
  }

  return {
    ...queriesOn(single),
    transaction: (work, { repeatable = false } = {}) =>
      attempts(
        (mayHaveCommitted) => onConnection((client) => attemptTransaction(client, mayHaveCommitted, work)),
        repeatable,
      ),
    snapshot: (work) =>
      attempts(
        () =>
          onConnection(async (client) => {
            const slow = { query_timeout: MAX_SLOW_MS }
            try {
              await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
              await client.query('SET LOCAL statement_timeout = 0; SET LOCAL enable_seqscan = on')
              const value = await work(
                queriesOn((statement, values) =>
                  client.query({ ...slow, text: statement.text, values: [...values] } as never),
                ),
              )
              await client.query('COMMIT')
              return { value }
            } catch (error) {
              if (!isConnectionLost(error)) await client.query('ROLLBACK').catch(() => {})
              return { error, isUnknown: false }
            }
          }),
        true,
      ),
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

interface Result {
  readonly rows: readonly Row[]
  readonly rowCount: number | null
}

function queriesOn(
  query: (statement: PreparedStatement, values: readonly PgValue[]) => Promise<Result>,
): Queries {
  return {
    all: async (statement, ...values) => (await query(statement, values)).rows,
    get: async (statement, ...values) => (await query(statement, values)).rows[0],
    run: async (statement, ...values) => (await query(statement, values)).rowCount ?? 0,
  }
}
