/**
 * Permanent connection of a node. It holds the locks that prove to other nodes that its workers are alive, renews their
 * leases, and receives notifications of queued runs. After a loss, it reconnects with growing pauses, then calls the
 * listeners, because notifications were lost while it was disconnected.
 */
import { stepOf } from '../../../host/retry.js'
import { DatabaseUnavailable } from '../contract.js'
import type { Row, SqlValue } from '../sql.js'
import { isConnectionLost } from './connection-errors.js'
import { attempts, type Outcome } from './database.js'
import { type Client, createClient, LOCKS, prepared, prepareSession, type RetryWindow } from './driver.js'

const RECONNECT_STEPS_MS = [0, 50, 100, 250, 500, 1_000] as const
/** Timeout of a query, after which the connection is closed. */
const QUERY_TIMEOUT_MS = 4_000
const QUEUED = 'rushes_queued'

/** Current time of the database's clock, in milliseconds. */
const NOW_MS = '(extract(epoch FROM clock_timestamp()) * 1000)::bigint'

const OF_THIS_DATABASE = '(SELECT oid FROM pg_database WHERE datname = current_database())'

const SQL = {
  // Adds the row and takes the lock in one statement, so that no node sees the row without the lock.
  addWorker: `
    WITH added AS (
      INSERT INTO workers (id, heartbeat_at) VALUES ($1, ${NOW_MS})
      ON CONFLICT (id) DO UPDATE SET heartbeat_at = greatest(workers.heartbeat_at + 1, excluded.heartbeat_at)
      RETURNING slot
    )
    SELECT slot, pg_try_advisory_lock(${LOCKS}, slot) AS "isLocked" FROM added`,

  // $2: whether this connection already holds the lock.
  extendLease: `
    WITH extended AS (
      UPDATE workers SET heartbeat_at = greatest(heartbeat_at + 1, ${NOW_MS}) WHERE id = $1 RETURNING slot
    )
    SELECT slot, CASE WHEN $2::boolean THEN true ELSE pg_try_advisory_lock(${LOCKS}, slot) END AS "isLocked" FROM extended`,

  // Ends a connection that this process has lost but that still holds the lock, because the server has not noticed the
  // loss.
  endHolder: `
    SELECT pg_terminate_backend(pid, 1000) FROM pg_locks
    WHERE locktype = 'advisory' AND classid = ${LOCKS} AND objid = $1::integer AND objsubid = 2 AND granted
      AND database = ${OF_THIS_DATABASE} AND pid <> pg_backend_pid()`,

  unlock: `SELECT pg_advisory_unlock(${LOCKS}, $1)`,

  askNothing: `SELECT 1`,
} as const

/** Executed once a second. */
export const LIST_WORKERS = `
    SELECT id, heartbeat_at, NOT EXISTS (
      SELECT 1 FROM pg_locks
      WHERE locktype = 'advisory' AND classid = ${LOCKS} AND objid = slot::bigint AND objsubid = 2 AND granted
        AND database = ${OF_THIS_DATABASE}
    ) AS "isDisconnected"
    FROM workers`

export interface NodeConnection {
  /** Adds a worker with its lock, or renews its lease. */
  addWorker(id: string): Promise<void>
  /** Renews the lease of a worker. Returns false if the worker has no lease. */
  extendLease(id: string): Promise<boolean>
  /** Releases the worker's lock. Call it after the worker was removed. */
  forgetWorker(id: string): Promise<void>
  /** Calls `listener` when another node has queued a run, or may have. Returns a function that removes the listener. */
  onQueued(listener: () => void): () => void
  /** Rejects if the node needs this connection and cannot get it. */
  check(): Promise<void>
  close(): Promise<void>
}

export interface NodeConnectionOptions {
  readonly url: string
  /** Id of this node. It is the payload of the node's own notifications, which are ignored. */
  readonly node: string
  readonly retryWindow: RetryWindow
}

interface Connection {
  readonly client: Client
  /** Slots whose locks this connection holds, by worker. */
  readonly slots: Map<string, number>
}

interface ConnectionState extends NodeConnectionOptions {
  readonly workers: Set<string>
  readonly listeners: Set<() => void>
  connection: Promise<Connection> | undefined
  /** Connections in a row that were lost or could not be established. */
  losses: number
  timer: NodeJS.Timeout | undefined
  isClosed: boolean
}

export function createNodeConnection(options: NodeConnectionOptions): NodeConnection {
  const state: ConnectionState = {
    ...options,
    workers: new Set(),
    listeners: new Set(),
    connection: undefined,
    losses: 0,
    timer: undefined,
    isClosed: false,
  }
  return {
    async addWorker(id) {
      state.workers.add(id)
      await onConnection(state, async (on) => {
        const row = await queryRow(on.client, SQL.addWorker, id)
        if (row !== undefined) await ensureLock(on, id, row)
      })
    },
    extendLease: (id) => onConnection(state, (on) => extend(on, id)),
    async forgetWorker(id) {
      state.workers.delete(id)
      if (state.connection === undefined) return
      const { client, slots } = await state.connection
      const slot = slots.get(id)
      slots.delete(id)
      if (slot !== undefined) await queryRow(client, SQL.unlock, slot)
    },
    onQueued(listener) {
      state.listeners.add(listener)
      connected(state).catch(() => {})
      return () => void state.listeners.delete(listener)
    },
    async check() {
      if (isNeeded(state)) await onConnection(state, ({ client }) => queryRow(client, SQL.askNothing))
    },
    async close() {
      state.isClosed = true
      clearTimeout(state.timer)
      const last = await state.connection?.catch(() => undefined)
      await last?.client.end().catch(() => {})
    },
  }
}

const isNeeded = ({ isClosed, workers, listeners }: ConnectionState): boolean =>
  !isClosed && workers.size + listeners.size > 0

function connected(state: ConnectionState): Promise<Connection> {
  if (state.connection !== undefined) return state.connection
  clearTimeout(state.timer)
  const opening = open(state)
  state.connection = opening
  opening.catch(() => onLost(state, opening))
  return opening
}

async function open(state: ConnectionState): Promise<Connection> {
  const client = createClient(state.url, { pipeline: true })
  // A lost connection emits `error` and `end`, in either order. `end` is handled below.
  client.on('error', () => {})
  await client.connect()
  client.on('notification', ({ payload }) => payload !== state.node && announce(state))
  try {
    await prepareSession(client)
    await client.query(`LISTEN ${QUEUED}`)
    const slots = new Map<string, number>()
    for (const id of state.workers) await extend({ client, slots }, id)
    state.losses = 0
    const current = state.connection
    client.once('end', () => onLost(state, current))
    announce(state)
    return { client, slots }
  } catch (error) {
    client.end().catch(() => {})
    throw error
  }
}

/** Schedules a reconnect, unless another call has already replaced the connection. */
function onLost(state: ConnectionState, lost: Promise<Connection> | undefined): void {
  if (state.connection !== lost) return
  state.connection = undefined
  if (!isNeeded(state)) return
  state.losses++
  const reconnect = () => connected(state).catch(() => {})
  state.timer = setTimeout(reconnect, stepOf(RECONNECT_STEPS_MS, state.losses)).unref()
}

function announce({ listeners }: ConnectionState): void {
  for (const listener of listeners) listener()
}

/**
 * Renews the lease, and takes the lock if this connection does not hold it. Returns false if the worker has no lease.
 */
async function extend(on: Connection, id: string): Promise<boolean> {
  const row = await queryRow(on.client, SQL.extendLease, id, on.slots.has(id))
  if (row === undefined) return false
  await ensureLock(on, id, row)
  return true
}

async function ensureLock(on: Connection, id: string, { slot, isLocked }: Row): Promise<void> {
  if (isLocked === true) return void on.slots.set(id, Number(slot))
  await queryRow(on.client, SQL.endHolder, Number(slot))
  const again = await queryRow(on.client, SQL.extendLease, id, false)
  if (again?.isLocked === true) on.slots.set(id, Number(slot))
}

/** Runs `work` on the connection. Reconnects and retries if the connection is lost. */
function onConnection<Result>(
  state: ConnectionState,
  work: (on: Connection) => Promise<Result>,
): Promise<Result> {
  return attempts(state.retryWindow, async (): Promise<Outcome<Result>> => {
    const current = connected(state)
    try {
      return { value: await work(await current) }
    } catch (error) {
      if (!isConnectionLost(error)) return { error, isUnknown: false }
      // Closes the connection, which can still be open although its statement got no response.
      current.then(({ client }) => client.end()).catch(() => {})
      onLost(state, current)
      return { error: state.isClosed ? new DatabaseUnavailable(error) : error, isUnknown: false }
    }
  })
}

async function queryRow(
  client: Client,
  text: string,
  ...values: readonly SqlValue[]
): Promise<Row | undefined> {
  const { rows } = await client.query({
    ...prepared(text),
    values: [...values],
    query_timeout: QUERY_TIMEOUT_MS,
  } as never)
  return (rows as readonly Row[])[0]
}
