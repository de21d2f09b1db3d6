/** The driver, with the settings of every connection. */
import pg from 'pg'
import { driverUrl } from './connection-errors.js'

export type Row = Readonly<Record<string, unknown>>
export type Value = string | number | boolean | null | readonly string[] | readonly number[]

/** PostgreSQL refuses this character, so nothing that is stored has it. */
export const hasNul = (...texts: readonly string[]): boolean => texts.some((text) => text.includes('\0'))

/** A statement is prepared once for each connection, under its name; one with an empty name for each call. */
export interface Statement {
  readonly name: string
  readonly text: string
}

export type Statements<Texts> = { readonly [Name in keyof Texts]: Statement }

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

/** A connection of its own, without a limit on its statements. */
export const createClient = (url: string, options: { readonly pipeline?: boolean } = {}): pg.Client =>
  new pg.Client({ ...clientConfig(url), ...options })

export type { Client, ClientBase, Pool, PoolClient } from 'pg'
