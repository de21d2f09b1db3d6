/** The PostgreSQL driver (`pg`), with the settings of every connection. */
import pg from 'pg'
import { driverUrl } from './connection-errors.js'

/**
 * The server cancels a statement after 5 s. The driver stops waiting a little later, in case the server does not
 * respond.
 */
export const STATEMENT_TIMEOUT_MS = 5_000
const QUERY_TIMEOUT_MS = 6_000
/** The server ends a transaction that is idle for this time, so that a stopped process does not keep its locks. */
const IDLE_TRANSACTION_TIMEOUT_MS = 4_000
export const CONNECT_TIMEOUT_MS = 5_000

/**
 * The beginning of every transaction. Nothing lives longer than a transaction, so that it works behind PgBouncer.
 * Without sequential scans: every statement has an index, but the tables grow from empty to millions of rows before
 * statistics exist.
 */
export const beginOf = (statementTimeoutMs: number): string => `
  BEGIN ISOLATION LEVEL READ COMMITTED;
  SET LOCAL search_path = rushes;
  SET LOCAL enable_seqscan = off;
  SET LOCAL jit = off;
  SET LOCAL statement_timeout = ${statementTimeoutMs};
  SET LOCAL idle_in_transaction_session_timeout = ${IDLE_TRANSACTION_TIMEOUT_MS}`

/** The beginning of a full check, which reads whole tables at one moment. */
export const BEGIN_SNAPSHOT = `
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

export const createPool = (url: string, max: number): pg.Pool =>
  new pg.Pool({
    ...clientConfig(url),
    max,
    idleTimeoutMillis: 30_000,
    query_timeout: QUERY_TIMEOUT_MS,
    // Sends a statement without waiting for the result of the previous one.
    pipeline: true,
  })

/** Creates a connection outside the pool, without a statement timeout. */
export const createClient = (url: string, options: { readonly pipeline?: boolean } = {}): pg.Client =>
  new pg.Client({ ...clientConfig(url), ...options })

export type { Client, ClientBase, Pool, PoolClient } from 'pg'
