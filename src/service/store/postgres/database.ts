/**
 * Statements and transactions on a pool of connections. A lost connection is not an error yet: within 5 s another one
 * is taken, and what was not done is done again. After that, `DatabaseUnavailable`.
 */
import { type RetryDecision, retry } from '../../../host/retry.js'
import { DatabaseUnavailable } from '../unavailable.js'
import { createPool, type PoolClient, type Row, type Statement, type Value } from './driver.js'

export type { Statement } from './driver.js'

import { forgetValues, isConnectionLost, isOverloaded, isPlanStale, isUndone } from './failures.js'
import { createMerger } from './merging.js'
import { createWaiting, type Waiting } from './waiting.js'

/** For checks of everything, which read whole tables. */
const MAX_SLOW_MS = 3_600_000
const MAX_END_MS = 1_000

export interface Queries {
  all(statement: Statement, ...values: readonly Value[]): Promise<readonly Row[]>
  get(statement: Statement, ...values: readonly Value[]): Promise<Row | undefined>
  /** How many rows it touched. */
  run(statement: Statement, ...values: readonly Value[]): Promise<number>
}

export interface Transaction extends Queries {
  /** The last statement, sent together with the commit. */
  commitWith(statement: Statement, ...values: readonly Value[]): Promise<readonly Row[]>
  /**
   * An attempt before this one was committed and its answer lost: whether it was done is to be looked up. Only with
   * `repeatable`.
   */
  readonly mayBeDone: boolean
}

export interface TransactionOptions {
  /** `work` heeds `mayBeDone`, or has the same effect when it is done twice. Otherwise a lost answer rejects. */
  readonly repeatable?: boolean
}

/** What became of an attempt. When it is unknown, the answer to its commit was lost. */
export type Outcome<Result> =
  | { readonly value: Result }
  | { readonly error: unknown; readonly isUnknown: boolean }

/** One of those that share a transaction. */
export interface Change<Item> {
  readonly item: Item
  /** As of a transaction. */
  readonly mayBeDone: boolean
}

/** A statement outside of a transaction must have the same effect when it is done twice. */
export interface PostgresDatabase extends Queries {
  transaction<Result>(
    work: (transaction: Transaction) => Promise<Result>,
    options?: TransactionOptions,
  ): Promise<Result>
  /**
   * A repeatable transaction for changes that may share it: those of the same key that wait together. `work` gives the outcome of
   * each; when it rejects, each is done alone, so that none fails for another. `bytesOf`: how large an item is, about.
   */
  merged<Item, Result>(
    work: MergedWork<Item, Result>,
    bytesOf: (item: Item) => number,
  ): (key: number, item: Item) => Promise<Result>
  /** All reads in it see the same state. They may take long. */
  snapshot<Result>(work: (queries: Queries) => Promise<Result>): Promise<Result>
  close(): Promise<void>
}

type MergedWork<Item, Result> = (
  transaction: Transaction,
  changes: readonly Change<Item>[],
) => Promise<readonly Outcome<Result>[]>

export interface PoolOptions {
  readonly url: string
  readonly maxConnections: number
  /** After which the server cancels a statement; by default 5 s. */
  readonly statementTimeoutMs?: number | undefined
  readonly waiting?: Waiting | undefined
}

export function createDatabase({
  url,
  maxConnections,
  statementTimeoutMs,
  waiting = createWaiting(),
}: PoolOptions): PostgresDatabase {
  const pool = createPool(url, maxConnections, statementTimeoutMs)
  // An idle connection has ended; the next statement takes another. Without a listener the process would end.
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
    // A connection that is lost while no statement runs tells so here.
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

  /** Repeats what was attempted on another connection while connections are lost. */
  async function attempts<Result>(
    attempt: (mayBeDone: boolean) => Promise<Outcome<Result>>,
    repeatable: boolean,
  ): Promise<Result> {
    const startedMs = waiting.clock.monotonic()
    let mayBeDone = false

    function decide(outcome: Outcome<Result>, number: number): RetryDecision<Result> {
      if ('value' in outcome) return { done: outcome.value }
      const { error, isUnknown } = outcome
      mayBeDone ||= isUnknown
      if (isOverloaded(error) || (mayBeDone && !repeatable))
        return { fail: new DatabaseUnavailable(error, { isUnknown: mayBeDone }) }
      if (!isConnectionLost(error) && !isUndone(error)) return { fail: error }
      const retryInMs = waiting.pauseMs(startedMs, number)
      if (retryInMs === undefined) return { fail: new DatabaseUnavailable(error, { isUnknown: mayBeDone }) }
      return { retryInMs }
    }

    return await retry<Outcome<Result>, Result>({
      attempt: () => attempt(mayBeDone),
      decide,
      clock: waiting.clock,
    })
  }

  const single = (statement: Statement, values: readonly Value[]) =>
    attempts(
      () =>
        onConnection((client) =>
          client.query({ ...statement, values: [...values] }).then(
            (value) => ({ value }),
            (error: unknown) => ({ error, isUnknown: isConnectionLost(error) && !isPlanStale(error) }),
          ),
        ),
      true,
    )

  async function attemptTransaction<Result>(
    client: PoolClient,
    mayBeDone: boolean,
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
        mayBeDone,
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
      return { error, isUnknown: isLost && isCommitting && !isPlanStale(error) }
    }
  }

  async function attemptMerged<Item, Result>(
    changes: readonly Change<Item>[],
    work: MergedWork<Item, Result>,
  ): Promise<readonly Outcome<Result>[]> {
    const mayBeDone = changes.some((change) => change.mayBeDone)
    const outcome = await onConnection((client) =>
      attemptTransaction(client, mayBeDone, (transaction) => work(transaction, changes)),
    )
    if ('value' in outcome) return outcome.value
    const { error } = outcome
    const concernsAll = isConnectionLost(error) || isUndone(error) || isOverloaded(error)
    if (concernsAll || changes.length === 1) return changes.map(() => outcome)
    const outcomes: Outcome<Result>[] = []
    for (const change of changes) outcomes.push(...(await attemptMerged([change], work)))
    return outcomes
  }

  return {
    ...queriesOn(single),
    transaction: (work, { repeatable = false } = {}) =>
      attempts(
        (mayBeDone) => onConnection((client) => attemptTransaction(client, mayBeDone, work)),
        repeatable,
      ),
    merged<Item, Result>(work: MergedWork<Item, Result>, bytesOf: (item: Item) => number) {
      // Each repeats its own attempts, so that it waits as long as if it were alone.
      const attempt = createMerger(
        (changes: readonly Change<Item>[]) => attemptMerged(changes, work),
        ({ item }) => bytesOf(item),
      )
      return (key: number, item: Item): Promise<Result> =>
        attempts((mayBeDone) => attempt(key, { item, mayBeDone }), true)
    },
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
      waiting.stop()
      // A server that does not answer keeps nobody.
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

function queriesOn(query: (statement: Statement, values: readonly Value[]) => Promise<Result>): Queries {
  return {
    all: async (statement, ...values) => (await query(statement, values)).rows,
    get: async (statement, ...values) => (await query(statement, values)).rows[0],
    run: async (statement, ...values) => (await query(statement, values)).rowCount ?? 0,
  }
}
