/** The driver, with the settings of every connection. */

import pg from 'pg'
import { type Clock, systemClock } from '../../../host/clock.js'
import { stepOf } from '../../../host/retry.js'
import { driverUrl } from './connection-errors.js'

export type Row = Readonly<Record<string, unknown>>
export type PgValue = string | number | boolean | null | readonly string[] | readonly number[]

/** PostgreSQL refuses this character, so nothing that is stored has it. */
export const hasNul = (...texts: readonly string[]): boolean => texts.some((text) => text.includes('\0'))

/** A statement is prepared once for each connection, under its name; one with an empty name for each call. */
export interface PreparedStatement {
  readonly name: string
  readonly text: string
}

export type Statements<Texts> = { readonly [Name in keyof Texts]: PreparedStatement }

export const statementsOf = <Texts extends Readonly<Record<string, string>>>(
  texts: Texts,
): Statements<Texts> =>
  Object.fromEntries(
    Object.entries(texts).map(([name, text]) => [name, { name, text }]),
  ) as unknown as Statements<Texts>

/** A statement that takes longer is cancelled by the server, and a little later given up by the driver. */
const STATEMENT_TIMEOUT_MS = 5_000
const QUERY_TIMEOUT_MS = 6_000
/** A process that stops within a transaction holds its locks no longer than this. */
const IDLE_TRANSACTION_TIMEOUT_MS = 4_000
export const CONNECT_TIMEOUT_MS = 5_000

/**
 * The tables grow from nothing to millions of rows faster than statistics are gathered, and a plan is kept: without these a
 * plan for an empty table would read a whole one. Each statement has an index.
 */
const settings = (statementTimeoutMs: number): string => `
  SET search_path = rushes;
  SET enable_seqscan = off;
  SET jit = off;
  SET default_transaction_isolation = 'read committed';
  SET statement_timeout = ${statementTimeoutMs};
  SET idle_in_transaction_session_timeout = ${IDLE_TRANSACTION_TIMEOUT_MS}`

/** A bigint comes as text otherwise; ours fit into a double. */
const types = new pg.TypeOverrides()
types.setTypeParser(pg.types.builtins.INT8, Number)

/** Throws what the driver says about an invalid URL. */
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
    // Statements that do not wait for each other are sent together.
    pipeline: true,
    onConnect: (client) => prepareSession(client, statementTimeoutMs),
  })

/** A connection outside of the pool, without a limit on its statements. */
export const createClient = (url: string, options: { readonly pipeline?: boolean } = {}): pg.Client =>
  new pg.Client({ ...clientConfig(url), ...options })

export type { Client, ClientBase, Pool, PoolClient } from 'pg'

/**
 * Advisory locks, which the server releases when the connection ends. Each is a pair of numbers: the first is ours, so that other
 * programs in the same database are not met; the second is one of these, or the number of a worker, from 1.
 */
export const LOCKS = 0x72_75_73_68

/** Held by a transaction that claims a run: accounts are served in turn. */
export const CLAIMS_LOCK = 0
/** Held by a process that creates or migrates the schema. */
export const FORMAT_LOCK = -1

const MAX_WAIT_MS = 5_000
/** When the service closes: it waits 3 s for its responses. */
const MAX_CLOSING_WAIT_MS = 1_500
const PAUSES_MS = [10, 25, 50, 100, 200] as const

export interface RetryWindow {
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
  /** The pause after attempt `number` (from 1) of what began at this time; undefined when it has waited long enough. */
  pauseMs(startedMs: number, number: number): number | undefined
  /** From now on nothing waits long. */
  stop(): void
}

export function createRetryWindow(clock: RetryWindow['clock'] = systemClock): RetryWindow {
  let stoppedMs: number | undefined

  function deadlineMs(startedMs: number): number {
    const usual = startedMs + MAX_WAIT_MS
    return stoppedMs === undefined
      ? usual
      : Math.min(usual, Math.max(startedMs, stoppedMs) + MAX_CLOSING_WAIT_MS)
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
