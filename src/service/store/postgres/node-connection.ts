/**
 * The permanent connection of a node: holds the locks that prove to others that its workers are alive, renews
 * their leases, and receives
 * the notification of a queued run. A lost connection is opened again after growing pauses. Notifications of
 * the meantime are lost, so
 * the listeners are called then.
 */
import { type RetryDecision, retry, stepOf } from '../../../host/retry.js'
import { DatabaseUnavailable } from '../contract.js'
import { isConnectionLost, isOverloaded } from './connection-errors.js'
import {
  type Client,
  createClient,
  type PgValue,
  type PreparedStatement,
  prepareSession,
  type RetryWindow,
  type Row,
} from './driver.js'
import { SQL } from './run-statements.js'

const RECONNECT_STEPS_MS = [0, 50, 100, 250, 500, 1_000] as const
/** Closes a connection that does not answer for this long. */
const QUERY_TIMEOUT_MS = 4_000
const QUEUED = 'rushes_queued'

export interface NodeConnection {
  /** Adds a worker, or renews its lease. */
  addWorker(id: string): Promise<void>
  /** Renews the lease of a worker; false when it has none. */
  extendLease(id: string): Promise<boolean>
  /** After the worker was removed. */
  forgetWorker(id: string): Promise<void>
  /** `listener` is called when another node has queued a run, or may have. */
  onQueued(listener: () => void): () => void
  /** Rejects when a node that needs this connection does not have it. */
  check(): Promise<void>
  close(): Promise<void>
}

export interface NodeConnectionOptions {
  readonly url: string
  /** The payload of this node's own notifications, which are ignored. */
  readonly node: string
  readonly retryWindow: RetryWindow
}

type Attempt<Result> = { readonly value: Result } | { readonly error: unknown }

interface Connection {
  readonly client: Client
  /** The slots whose locks it holds, by worker. */
  readonly slots: Map<string, number>
}

export function createNodeConnection({ url, node, retryWindow }: NodeConnectionOptions): NodeConnection {
  const workers = new Set<string>()
  const listeners = new Set<() => void>()
  let connection: Promise<Connection> | undefined
  let attempt = 0
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  const isNeeded = () => !isClosed && workers.size + listeners.size > 0

  function connected(): Promise<Connection> {
    if (connection !== undefined) return connection
    clearTimeout(timer)
    const opening = open()
    connection = opening
    opening.catch(() => lose(opening))
    return opening
  }

  async function open(): Promise<Connection> {
    const client = createClient(url, { pipeline: true })
    // Both events come with a lost connection, in either order.
    client.on('error', () => {})
    await client.connect()
    client.on('notification', ({ payload }) => payload !== node && announce())
    try {
      await prepareSession(client)
      await client.query(`LISTEN ${QUEUED}`)
      const slots = new Map<string, number>()
      for (const id of workers) await extend({ client, slots }, id)
      attempt = 0
      client.once('end', () => lose(current))
      const current = connection
      announce()
      return { client, slots }
    } catch (error) {
      client.end().catch(() => {})
      throw error
    }
  }

  /** Connects again, unless that has happened already. */
  function lose(lost: Promise<Connection> | undefined): void {
    if (connection !== lost) return
    connection = undefined
    if (!isNeeded()) return
    attempt++
    timer = setTimeout(() => connected().catch(() => {}), stepOf(RECONNECT_STEPS_MS, attempt)).unref()
  }

  function announce(): void {
    for (const listener of listeners) listener()
  }

  /** Renews the lease, and takes its lock, unless this connection has it; false when the worker has no lease. */
  async function extend(on: Connection, id: string): Promise<boolean> {
    const row = await ask(on.client, SQL.extendLease, id, on.slots.has(id))
    if (row === undefined) return false
    await keepLock(on, id, row)
    return true
  }

  async function keepLock(on: Connection, id: string, { slot, isLocked }: Row): Promise<void> {
    if (isLocked === true) return void on.slots.set(id, Number(slot))
    await ask(on.client, SQL.endHolder, Number(slot))
    const again = await ask(on.client, SQL.extendLease, id, false)
    if (again?.isLocked === true) on.slots.set(id, Number(slot))
  }

  /** Runs `work` on the connection, which is made again while it is lost. */
  function onConnection<Result>(work: (on: Connection) => Promise<Result>): Promise<Result> {
    const startedMs = retryWindow.clock.monotonic()

    async function attempt(): Promise<Attempt<Result>> {
      const current = connected()
      try {
        return { value: await work(await current) }
      } catch (error) {
        if (isConnectionLost(error)) {
          // A connection whose statement has no answer is of no use, though it may still be open.
          current.then(({ client }) => client.end()).catch(() => {})
          lose(current)
        }
        return { error }
      }
    }

    function decide(outcome: Attempt<Result>, number: number): RetryDecision<Result> {
      if ('value' in outcome) return { done: outcome.value }
      const { error } = outcome
      if (isOverloaded(error)) return { fail: new DatabaseUnavailable(error) }
      if (!isConnectionLost(error)) return { fail: error }
      const retryInMs = isClosed ? undefined : retryWindow.pauseMs(startedMs, number)
      return retryInMs === undefined ? { fail: new DatabaseUnavailable(error) } : { retryInMs }
    }

    return retry<Attempt<Result>, Result>({ attempt, decide, clock: retryWindow.clock })
  }

  return {
    async addWorker(id) {
      workers.add(id)
      await onConnection(async (on) => {
        const row = await ask(on.client, SQL.addWorker, id)
        if (row !== undefined) await keepLock(on, id, row)
      })
    },
    extendLease: (id) => onConnection((on) => extend(on, id)),
    async forgetWorker(id) {
      workers.delete(id)
      if (connection === undefined) return
      const { client, slots } = await connection
      const slot = slots.get(id)
      slots.delete(id)
      if (slot !== undefined) await ask(client, SQL.unlock, slot)
    },
    onQueued(listener) {
      listeners.add(listener)
      connected().catch(() => {})
      return () => void listeners.delete(listener)
    },
    async check() {
      if (isNeeded()) await onConnection(({ client }) => ask(client, SQL.askNothing))
    },
    async close() {
      isClosed = true
      clearTimeout(timer)
      const last = await connection?.catch(() => undefined)
      await last?.client.end().catch(() => {})
    },
  }
}

async function ask(
  client: Client,
  statement: PreparedStatement,
  ...values: readonly PgValue[]
): Promise<Row | undefined> {
  const { rows } = await client.query({
    ...statement,
    values: [...values],
    query_timeout: QUERY_TIMEOUT_MS,
  } as never)
  return (rows as readonly Row[])[0]
}
