/** The PostgreSQL driver (`pg`), with the settings of every connection. */
import pg from 'pg'
import { type Clock, systemClock } from '../../../host/clock.js'
import { stepOf } from '../../../host/retry.js'
import { driverUrl } from './connection-errors.js'

/** A statement with a name is prepared once per connection. */
export interface PreparedStatement {
  readonly name: string
  readonly text: string
}

const statements = new Map<string, PreparedStatement>()

export function prepared(text: string): PreparedStatement {
  const known = statements.get(text) ?? { name: `rushes_${statements.size}`, text }
  statements.set(text, known)
  return known
}

/**
 * The server cancels a statement after 5 s. The driver stops waiting a little later, in case the server does not
 * respond.
 */
const STATEMENT_TIMEOUT_MS = 5_000
const QUERY_TIMEOUT_MS = 6_000
/** The server ends a transaction that is idle for this time, so that a stopped process does not keep its locks. */
const IDLE_TRANSACTION_TIMEOUT_MS = 4_000
export const CONNECT_TIMEOUT_MS = 5_000

/**
 * Without sequential scans: every statement has an index, but the tables grow from empty to millions of rows before
 * statistics exist. A cached plan for an empty table would then scan the full one.
 */
const settings = (statementTimeoutMs: number): string => `
  SET search_path = rushes;
  SET enable_seqscan = off;
  SET jit = off;
  SET default_transaction_isolation = 'read committed';
  SET statement_timeout = ${statementTimeoutMs};
  SET idle_in_transaction_session_timeout = ${IDLE_TRANSACTION_TIMEOUT_MS}`

/** Parses bigint as a number. The driver returns text by default; all values here fit into a double. */
const types = new pg.TypeOverrides()
types.setTypeParser(pg.types.builtins.INT8, Number)

/** Throws the driver's error if the URL is invalid. */
export const clientConfig = (url: string): pg.ClientConfig => ({
  connectionString: driverUrl(url),
  fallback_application_name: 'rushes',
  types,
  keepAlive: true,
  keepAliveInitialDelayMillis: 10_000,
  connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
})

export const prepareSession = async (
  client: pg.ClientBase,
  statementTimeoutMs = STATEMENT_TIMEOUT_MS,
): Promise<void> => void (await client.query(settings(statementTimeoutMs)))

export const createPool = (url: string, max: number, statementTimeoutMs = STATEMENT_TIMEOUT_MS): pg.Pool =>
  new pg.Pool({
    ...clientConfig(url),
    max,
    idleTimeoutMillis: 30_000,
    query_timeout: QUERY_TIMEOUT_MS,
    // Sends a statement without waiting for the result of the previous one.
    pipeline: true,
    onConnect: (client) => prepareSession(client, statementTimeoutMs),
  })

/** Creates a connection outside the pool, without a statement timeout. */
export const createClient = (url: string, options: { readonly pipeline?: boolean } = {}): pg.Client =>
  new pg.Client({ ...clientConfig(url), ...options })

export type { Client, ClientBase, Pool, PoolClient } from 'pg'

/**
 * First number of all advisory locks of rushes. It separates them from the locks of other programs in the same
 * database. The second number is one of the constants below or the slot of a worker, from 1. The server releases a lock
 * when its connection ends.
 */
export const LOCKS = 0x72_75_73_68

/** Held by a transaction that claims a run, so that accounts are served in turn. */
export const CLAIMS_LOCK = 0
/** Held by a process that creates the schema. */
export const FORMAT_LOCK = -1

const MAX_WAIT_MS = 5_000
/** Maximum wait when the service closes. Below the 3 s that the service waits for its responses. */
const MAX_CLOSING_WAIT_MS = 1_500
const PAUSES_MS = [10, 25, 50, 100, 200] as const

export interface RetryWindow {
  readonly clock: Clock
  /**
   * Returns the pause after attempt `number` (from 1) of an operation that began at `startedMs`. Undefined if the
   * operation has waited long enough.
   */
  pauseMs(startedMs: number, number: number): number | undefined
  /** Called when the service closes: shortens all waits. */
  stop(): void
}

export function createRetryWindow(clock: RetryWindow['clock'] = systemClock): RetryWindow {
  let stoppedMs: number | undefined

  function deadlineMs(startedMs: number): number {
    const normalMs = startedMs + MAX_WAIT_MS
    return stoppedMs === undefined
      ? normalMs
      : Math.min(normalMs, Math.max(startedMs, stoppedMs) + MAX_CLOSING_WAIT_MS)
  }

  return {
    clock,
    pauseMs(startedMs, number) {
      const pause = stepOf(PAUSES_MS, number)
      return clock.monotonic() + pause < deadlineMs(startedMs) ? pause : undefined
    },
    stop() {
      stoppedMs ??= clock.monotonic()
    },
  }
}
