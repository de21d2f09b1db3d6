/**
 * Stores the slots of a key on a Redis server that several machines share. A request needs a slot of this machine's
 * ledger and a slot of the server. So if the server does not answer, the limit of this machine still applies, without a
 * transition.
 *
 * The order is the same as in `shared-ledger.ts`: creates first, otherwise first come, first served. A waiter that does
 * not come back in time is skipped. Only the server's clock counts.
 *
 * The server cannot see whether a process is alive. So a slot in flight has a lease, which its process renews. The
 * request of a dead process counts until one window after the end of the lease.
 *
 * When the server is available again, each process records the slots that it was granted during the outage. The server
 * grants nothing until all processes have had time to do so. Limits: during an outage, each machine can send up to the
 * full rate limit, and requests of commands that ended during the outage are not recorded.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../host/clock.js'
import {
  createMemoryLedger,
  type Ledger,
  type Purpose,
  type RemoteLedger,
  type TakenSlot,
} from '../limit-ledger.js'
import type { Limit } from '../window.js'
import { connectRedis, type RedisConnection, type RedisFailure, withPatience } from './connection.js'
import type { RedisAddress } from './limits-url.js'

const LEASE_MS = 15_000
const BEAT_MS = 1_000
/** Number of beats between two renewals of the leases. */
const RENEWAL_BEATS = 5
/**
 * After an outage, nothing is granted for this time: the other processes reconnect once per beat, and connecting takes
 * some time too.
 */
const RETURNING_MS = 1_500
/**
 * Added to the window, because the clocks of two machines drift: time servers adjust a clock by up to 0.5 ms per
 * second.
 */
const DRIFT_MS = 10

const RANK: Readonly<Record<Purpose, number>> = { create: 0, status: 1 }

/** The argument of the script. All times are in microseconds. */
interface ScriptStep {
  readonly requests: number
  readonly window: number
  readonly lease: number
  readonly owner: string
  /** Remaining time of each slot, by id. */
  readonly slots?: Readonly<Record<string, number>>
  readonly free?: readonly string[]
  readonly withdraw?: number
  readonly hold?: number
  /**
   * This process reconnects after an outage: grant nothing for this time, unless another process has reconnected within
   * the window.
   */
  readonly returning?: number
  readonly take?: { readonly id: string; readonly rank: number }
}

type StepPart = Omit<ScriptStep, 'requests' | 'window' | 'lease' | 'owner'>

/** A request of this process that counts against the limit. */
interface CountedRequest {
  readonly id: string
  settledAtMs: number | undefined
}

interface RedisLedgerOptions {
  readonly address: RedisAddress
  /** Identifies the key; from `keyHashOf`. */
  readonly keyHash: string
  readonly limit: Limit
  readonly clock: Pick<Clock, 'monotonic' | 'alarm'>
  /** Ledger of this machine. Default: a memory ledger of this process. */
  readonly machine?: Ledger | undefined
  /**
   * Called once, at the first failure of the server. While the server is unavailable, only the limit of this machine
   * applies.
   */
  onLost(failure: RedisFailure): void
}

export interface RedisLedger extends RemoteLedger {
  /** Waits for outstanding answers, unless the server stops answering. */
  close(): Promise<void>
}

const inUs = (ms: number): number => Math.ceil(ms * 1_000)

/** Returns the Redis key for an API key. */
export const redisKeyOf = (keyHash: string): string => `rushes:limits:${keyHash}`

const commonOf = (limit: Limit, owner: string) => ({
  requests: limit.requests,
  window: inUs(limit.windowMs + DRIFT_MS),
  lease: inUs(LEASE_MS),
  owner,
})

/** Runs the script without taking a slot. Rejects with `RedisFailure`. */
export async function pingRedis(address: RedisAddress, limit: Limit, signal: AbortSignal): Promise<void> {
  const owner = 'doctor'
  const connection = await connectRedis(
    { address, key: redisKeyOf(owner), signal },
    // Read and write, so that missing permissions are reported.
    { ...commonOf(limit, owner), hold: 1, free: [owner] } satisfies ScriptStep,
  )
  connection.close()
}

export function openRedisLedger(options: RedisLedgerOptions): RedisLedger {
  const { address, limit, clock, machine = createMemoryLedger(limit, clock) } = options
  const key = redisKeyOf(options.keyHash)
  const owner = randomBytes(9).toString('base64url')
  const windowMs = limit.windowMs + DRIFT_MS
  const common = commonOf(limit, owner)
  const closing = new AbortController()
  const own = new Set<CountedRequest>()
  const unanswered = new Set<Promise<unknown>>()
  let connection: RedisConnection | undefined
  let isOpening = false
  let wasLost = false
  let canReturn = true
  let granted = 0
  let heldBackUntilMs = 0
  let lastAnswer = { used: 0, atMs: Number.NEGATIVE_INFINITY }

  let disarm = () => {}
  /** Resolves after the first answer of the server, or when the server counts as unavailable. */
  const firstAnswer = withPatience(open()).catch(lose)
  let beats = 0
  beat()

  function beat(): void {
    disarm = clock.alarm(BEAT_MS, beat)
    beats++
    if (connection === undefined) void open()
    else if (beats % RENEWAL_BEATS === 0)
      report([...own].filter(({ settledAtMs }) => settledAtMs === undefined))
  }

  async function open(): Promise<void> {
    if (isOpening || !canReturn) return
    isOpening = true
    const holdMs = Math.max(0, heldBackUntilMs - clock.monotonic())
    const first: ScriptStep = {
      ...common,
      ...(holdMs > 0 ? { hold: inUs(holdMs) } : {}),
      ...(wasLost ? { returning: inUs(RETURNING_MS) } : {}),
    }
    try {
      const opened = await connectRedis({ address, key, signal: closing.signal }, first)
      void opened.ended.then((failure) => {
        if (connection === opened) lose(failure)
      })
      connection = opened
      report(own)
    } catch (error) {
      lose(error as RedisFailure)
    }
    isOpening = false
  }

  function lose(failure: RedisFailure): void {
    if (closing.signal.aborted) return
    connection?.close()
    connection = undefined
    canReturn = !failure.isLasting
    if (!wasLost) options.onLost(failure)
    wasLost = true
  }

  /** Returns undefined if the server does not answer. */
  async function ask(part: StepPart): Promise<readonly [granted: number, waitMs: number] | undefined> {
    const usedConnection = connection
    if (usedConnection === undefined) return undefined
    try {
      const [isGranted, waitMs, used] = await usedConnection.run(key, { ...common, ...part })
      lastAnswer = { used, atMs: clock.monotonic() }
      return [isGranted, waitMs]
    } catch (error) {
      if (connection === usedConnection) lose(error as RedisFailure)
      return undefined
    }
  }

  function sendOnly(part: StepPart): void {
    const answer = ask(part)
    unanswered.add(answer)
    void answer.then(() => unanswered.delete(answer))
  }

  function report(requests: Iterable<CountedRequest>): void {
    const nowMs = clock.monotonic()
    const slots: Record<string, number> = {}
    for (const { id, settledAtMs = nowMs + LEASE_MS } of requests) {
      const restMs = settledAtMs + windowMs - nowMs
      if (restMs > 0) slots[id] = inUs(restMs)
    }
    if (Object.keys(slots).length > 0) sendOnly({ slots })
  }

  function forgetExpired(): void {
    const settledAfterMs = clock.monotonic() - windowMs
    for (const request of own)
      if (request.settledAtMs !== undefined && request.settledAtMs <= settledAfterMs) own.delete(request)
  }

  const takenSlot = (request: CountedRequest, slot: TakenSlot): TakenSlot => ({
    settle() {
      if (request.settledAtMs !== undefined || !own.has(request)) return
      slot.settle()
      request.settledAtMs = clock.monotonic()
      report([request])
    },
    cancel() {
      if (!own.delete(request)) return
      slot.cancel()
      sendOnly({ free: [request.id] })
    },
  })

  return {
    async take(purpose) {
      await firstAnswer
      const slot = machine.take(purpose)
      if ('retryInMs' in slot) return slot
      forgetExpired()
      const request: CountedRequest = { id: `${owner}-${++granted}`, settledAtMs: undefined }
      own.add(request)
      const [isGranted, retryInMs] = (await ask({ take: { id: request.id, rank: RANK[purpose] } })) ?? [1, 0]
      if (isGranted === 1) return takenSlot(request, slot)
      own.delete(request)
      slot.cancel()
      return { retryInMs }
    },
    withdraw(purpose) {
      machine.withdraw(purpose)
      sendOnly({ withdraw: RANK[purpose] })
    },
    holdBack(ms) {
      machine.holdBack(ms)
      heldBackUntilMs = Math.max(heldBackUntilMs, clock.monotonic() + ms)
      sendOnly({ hold: inUs(ms) })
    },
    usedSlots() {
      const isFresh = lastAnswer.atMs > clock.monotonic() - limit.windowMs
      return Math.max(machine.usedSlots(), isFresh ? lastAnswer.used : 0)
    },
    async close() {
      disarm()
      await Promise.all(unanswered)
      closing.abort()
      connection?.close()
    },
  }
}
