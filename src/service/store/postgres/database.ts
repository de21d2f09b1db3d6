/**
 * The driver (`pg`) with the settings of every connection, and statements and transactions on a pool of them. Retries on
 * another connection after a lost one for up to 5 s, then throws `DatabaseUnavailable`.
 */
import pg from 'pg'
import {
  createCompiler,
  type Database,
  DatabaseRetry,
  DatabaseUnavailable,
  type Queries,
  type Row,
  type Transaction,
  type Values,
} from '../sql.js'
import {
  driverUrl,
  forgetValues,
  isConnectionLost,
  isOverloaded,
  isSerializationFailure,
} from './connection-errors.js'

/**
 * The server cancels a statement after 5 s. The driver stops waiting a little later, in case the server does not
 * respond.
 */
const STATEMENT_TIMEOUT_MS = 5_000
const QUERY_TIMEOUT_MS = 6_000
/** The server ends a transaction that is idle for this time, so that a stopped process does not keep its locks. */
const IDLE_TRANSACTION_TIMEOUT_MS = 4_000
const CONNECT_TIMEOUT_MS = 5_000

/**
 * The beginning of every transaction. Nothing lives longer than a transaction, so that it works behind PgBouncer.
 * Without sequential scans: every statement has an index, but the tables grow from empty to millions of rows before
 * statistics exist.
 */
const beginOf = (statementTimeoutMs: number): string => `
  BEGIN ISOLATION LEVEL READ COMMITTED;
  SET LOCAL search_path = rushes;
  SET LOCAL enable_seqscan = off;
  SET LOCAL jit = off;
  SET LOCAL statement_timeout = ${statementTimeoutMs};
  SET LOCAL idle_in_transaction_session_timeout = ${IDLE_TRANSACTION_TIMEOUT_MS}`

/** The beginning of a full check, which reads whole tables at one moment. */
const BEGIN_SNAPSHOT = `
  BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
  SET LOCAL search_path = rushes;
  SET LOCAL statement_timeout = 0`

/** Parses bigint as a number. The driver returns text by default; all values here fit into a double. */
const types = new pg.TypeOverrides()
types.setTypeParser(pg.types.builtins.INT8, Number)

/** Throws the driver's error if the URL is invalid. */
const clientConfig = (url: string): pg.ClientConfig => ({
  connectionString: driverUrl(url),
  fallback_application_name: 'rushes',
  types,
  keepAlive: true,
  keepAliveInitialDelayMillis: 10_000,
  connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
})

const createPool = (url: string, max: number): pg.Pool =>
  new pg.Pool({
    ...clientConfig(url),
    max,
    idleTimeoutMillis: 30_000,
    query_timeout: QUERY_TIMEOUT_MS,
    // Sends a statement without waiting for the result of the previous one.
    pipeline: true,
  })

export type { Client } from 'pg'

/** Creates a connection outside the pool, without a statement timeout. */
export const createClient = (url: string, options: { readonly pipeline?: boolean } = {}): pg.Client =>
  new pg.Client({ ...clientConfig(url), ...options })

/** Query timeout of full checks, which read whole tables. */
const MAX_SLOW_MS = 3_600_000
const MAX_END_MS = 1_000

export interface PostgresDatabase extends Database {
  close(): Promise<void>
}

interface PoolOptions {
  readonly url: string
  readonly maxConnections: number
  /** Timeout after which the server cancels a statement. Default: 5 s. */
  readonly statementTimeoutMs?: number | undefined
  readonly retry?: DatabaseRetry | undefined
}

export function createDatabase({
  url,
  maxConnections,
  statementTimeoutMs = STATEMENT_TIMEOUT_MS,
  retry = new DatabaseRetry(),
}: PoolOptions): PostgresDatabase {
  const pool = createPool(url, maxConnections)
  const begin = beginOf(statementTimeoutMs)
  // A lost connection fails its statement, and the next one uses another. Without listeners, for idle connections and
  // for those in use, the process would exit.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))

  /** Runs `work` in a transaction, again on another connection after a lost one. */
  async function transact<Result>(
    work: (tx: Transaction) => Promise<Result>,
    { repeatable = true, beginning = begin, timeoutMs }: Transact = {},
  ): Promise<Result> {
    let mayHaveCommitted = false
    const attempt = () =>
      onConnection(pool, async (client) => {
        let isCommitting = false
        const begun = client.query(beginning)
        begun.catch(() => {})
        try {
          const value = await work({ ...queriesOn(client, timeoutMs), mayHaveCommitted })
          await begun
          isCommitting = true
          await client.query('COMMIT')
          return value
        } catch (error) {
          if (!isConnectionLost(error)) await client.query('ROLLBACK').catch(() => {})
          else mayHaveCommitted ||= isCommitting
          throw error
        }
      })
    const isTemporary = (error: unknown) =>
      (isConnectionLost(error) && (repeatable || !mayHaveCommitted)) || isSerializationFailure(error)
    return await retry.run(attempt, isTemporary).catch((error) => {
      if (!isConnectionLost(error) && !isSerializationFailure(error) && !isOverloaded(error)) throw error
      throw new DatabaseUnavailable(error, { isUnknown: mayHaveCommitted })
    })
  }

  return {
    all: (sql, values) => transact((tx) => tx.all(sql, values)),
    get: (sql, values) => transact((tx) => tx.get(sql, values)),
    run: (sql, values) => transact((tx) => tx.run(sql, values)),
    transaction: (work) => transact(work, { repeatable: false }),
    repeatable: transact,
    snapshot: (work) => transact(work, { beginning: BEGIN_SNAPSHOT, timeoutMs: MAX_SLOW_MS }),
    async close() {
      retry.stop()
      // A server that does not respond must not delay the exit.
      await Promise.race([
        pool.end().catch(() => {}),
        new Promise((resolve) => setTimeout(resolve, MAX_END_MS).unref()),
      ])
    },
  }
}

interface Transact {
  /** Whether `work` may run again after a commit whose response was lost. */
  readonly repeatable?: boolean
  readonly beginning?: string
  readonly timeoutMs?: number
}

async function onConnection<Result>(
  pool: pg.Pool,
  use: (client: pg.PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  let isLost = false
  try {
    return await use(client)
  } catch (error) {
    forgetValues(error)
    isLost = isConnectionLost(error)
    throw error
  } finally {
    client.release(isLost)
  }
}

function queriesOn(client: pg.PoolClient, query_timeout: number | undefined): Queries {
  const send = (sql: string, given: Values = {}) => {
    const { text, list: values } = compiled(sql, given)
    // `query_timeout` is missing from the types.
    const query = { text, values, ...(query_timeout && { query_timeout }) }
    return client.query<Row>(query)
  }
  return {
    all: async (sql, values) => (await send(sql, values)).rows,
    get: async (sql, values) => (await send(sql, values)).rows[0],
    run: async (sql, values) => (await send(sql, values)).rowCount ?? 0,
  }
}

const compiled = createCompiler({
  sign: '$',
  words: {
    // Not now(), which is the start of the transaction, before it waited for a lock.
    now: '(extract(epoch FROM clock_timestamp()) * 1000)::bigint',
    lock: 'FOR NO KEY UPDATE ?',
    lock_free: 'FOR UPDATE SKIP LOCKED',
    lock_shared: 'FOR KEY SHARE',
    // A list is one value, which the planner cannot inspect. Otherwise it would plan every call again.
    in: '= ANY (?::text[])',
    list: 'unnest(?::text[]) AS list (value)',
    index: '',
    position: 'strpos',
    ascii: 'COLLATE "C"',
  },
})
