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
import { type Clock, every } from '../../host/clock.js'
import { RUNS_LIMIT } from '../../protocol/limits.js'
import {
  createMemoryLedger,
  type Ledger,
  type Purpose,
  type RemoteLedger,
  type SlotAnswer,
  type TakenSlot,
} from '../limit-ledger.js'
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
/** A little longer, because the clocks of two machines drift: time servers adjust a clock by up to 0.5 ms per second. */
const WINDOW_MS = RUNS_LIMIT.windowMs + 10

const RANK: Readonly<Record<Purpose, number>> = { create: 0, status: 1 }

/** What every step of this process has. All times are in microseconds. */
interface StepBase {
  readonly requests: number
  readonly window: number
  readonly lease: number
  readonly owner: string
}

/** What a step does. */
interface StepPart {
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

/** The argument of the script. */
type ScriptStep = StepBase & StepPart

/** A request of this process that counts against the limit. */
interface CountedRequest {
  readonly id: string
  settledAtMs: number | undefined
}

interface RedisLedgerOptions {
  readonly address: RedisAddress
  /** Identifies the key; from `keyHashOf`. */
  readonly keyHash: string
  readonly clock: Clock
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

const commonOf = (owner: string): StepBase => ({
  requests: RUNS_LIMIT.requests,
  window: inUs(WINDOW_MS),
  lease: inUs(LEASE_MS),
  owner,
})

/** Runs the script without taking a slot. Rejects with `RedisFailure`. */
export async function pingRedis(address: RedisAddress, signal: AbortSignal): Promise<void> {
  const owner = 'doctor'
  const connection = await connectRedis(
    { address, key: redisKeyOf(owner), signal },
    // Read and write, so that missing permissions are reported.
    { ...commonOf(owner), hold: 1, free: [owner] } satisfies ScriptStep,
  )
  connection.close()
}

/** The state behind a `RedisLedger`. */
interface LedgerState {
  readonly options: RedisLedgerOptions
  readonly clock: RedisLedgerOptions['clock']
  readonly machine: Ledger
  readonly key: string
  /** Identifies this process. */
  readonly owner: string
  readonly common: StepBase
  readonly closing: AbortController
  /** Requests of this process that count. */
  readonly own: Set<CountedRequest>
  /** Steps without an answer. */
  readonly unanswered: Set<Promise<unknown>>
  connection: RedisConnection | undefined
  isOpening: boolean
  wasLost: boolean
  canReturn: boolean
  granted: number
  heldBackUntilMs: number
  lastAnswer: { readonly used: number; readonly atMs: number }
  beats: number
  disarm(): void
}

export function openRedisLedger(options: RedisLedgerOptions): RedisLedger {
  const { clock, machine = createMemoryLedger(clock) } = options
  const owner = randomBytes(9).toString('base64url')
  const ledger: LedgerState = {
    ...{ options, clock, machine, owner, key: redisKeyOf(options.keyHash), common: commonOf(owner) },
    closing: new AbortController(),
    own: new Set(),
    unanswered: new Set(),
    connection: undefined,
    isOpening: false,
    wasLost: false,
    canReturn: true,
    granted: 0,
    heldBackUntilMs: 0,
    lastAnswer: { used: 0, atMs: Number.NEGATIVE_INFINITY },
    beats: 0,
    disarm() {},
  }
  /** Resolves after the first answer of the server, or when the server counts as unavailable. */
  const firstAnswer = withPatience(open(ledger)).catch((failure) => lose(ledger, failure))
  ledger.disarm = every(clock, BEAT_MS, () => beat(ledger))
  beat(ledger)
  return {
    async take(purpose) {
      await firstAnswer
      return take(ledger, purpose)
    },
    withdraw(purpose) {
      machine.withdraw(purpose)
      sendOnly(ledger, { withdraw: RANK[purpose] })
    },
    holdBack(ms) {
      machine.holdBack(ms)
      ledger.heldBackUntilMs = Math.max(ledger.heldBackUntilMs, clock.monotonic() + ms)
      sendOnly(ledger, { hold: inUs(ms) })
    },
    usedSlots() {
      const { used, atMs } = ledger.lastAnswer
      return Math.max(machine.usedSlots(), atMs > clock.monotonic() - RUNS_LIMIT.windowMs ? used : 0)
    },
    async close() {
      ledger.disarm()
      await Promise.all(ledger.unanswered)
      ledger.closing.abort()
      ledger.connection?.close()
    },
  }
}

function beat(ledger: LedgerState): void {
  ledger.beats++
  if (ledger.connection === undefined) void open(ledger)
  else if (ledger.beats % RENEWAL_BEATS === 0)
    report(
      ledger,
      [...ledger.own].filter(({ settledAtMs }) => settledAtMs === undefined),
    )
}

async function open(ledger: LedgerState): Promise<void> {
  if (ledger.isOpening || !ledger.canReturn) return
  ledger.isOpening = true
  const { options, clock, key, closing, common } = ledger
  const holdMs = Math.max(0, ledger.heldBackUntilMs - clock.monotonic())
  const first: ScriptStep = {
    ...common,
    ...(holdMs > 0 ? { hold: inUs(holdMs) } : {}),
    ...(ledger.wasLost ? { returning: inUs(RETURNING_MS) } : {}),
  }
  try {
    const opened = await connectRedis({ address: options.address, key, signal: closing.signal }, first)
    void opened.ended.then((failure) => {
      if (ledger.connection === opened) lose(ledger, failure)
    })
    ledger.connection = opened
    report(ledger, ledger.own)
  } catch (error) {
    lose(ledger, error as RedisFailure)
  }
  ledger.isOpening = false
}

function lose(ledger: LedgerState, failure: RedisFailure): void {
  if (ledger.closing.signal.aborted) return
  ledger.connection?.close()
  ledger.connection = undefined
  ledger.canReturn = !failure.isLasting
  if (!ledger.wasLost) ledger.options.onLost(failure)
  ledger.wasLost = true
}

/** Returns undefined if the server does not answer. */
async function ask(
  ledger: LedgerState,
  part: StepPart,
): Promise<readonly [granted: number, waitMs: number] | undefined> {
  const { connection, key, common, clock } = ledger
  if (connection === undefined) return undefined
  try {
    const [isGranted, waitMs, used] = await connection.run(key, { ...common, ...part })
    ledger.lastAnswer = { used, atMs: clock.monotonic() }
    return [isGranted, waitMs]
  } catch (error) {
    if (ledger.connection === connection) lose(ledger, error as RedisFailure)
    return undefined
  }
}

function sendOnly(ledger: LedgerState, part: StepPart): void {
  const answer = ask(ledger, part)
  ledger.unanswered.add(answer)
  void answer.then(() => ledger.unanswered.delete(answer))
}

function report(ledger: LedgerState, requests: Iterable<CountedRequest>): void {
  const nowMs = ledger.clock.monotonic()
  const slots: Record<string, number> = {}
  for (const { id, settledAtMs = nowMs + LEASE_MS } of requests) {
    const restMs = settledAtMs + WINDOW_MS - nowMs
    if (restMs > 0) slots[id] = inUs(restMs)
  }
  if (Object.keys(slots).length > 0) sendOnly(ledger, { slots })
}

async function take(ledger: LedgerState, purpose: Purpose): Promise<SlotAnswer> {
  const { machine, own, owner } = ledger
  const slot = machine.take(purpose)
  if ('retryInMs' in slot) return slot
  forgetExpired(ledger)
  const request: CountedRequest = { id: `${owner}-${++ledger.granted}`, settledAtMs: undefined }
  own.add(request)
  const rank = RANK[purpose]
  const [isGranted, retryInMs] = (await ask(ledger, { take: { id: request.id, rank } })) ?? [1, 0]
  if (isGranted === 1) return takenSlot(ledger, request, slot)
  own.delete(request)
  slot.cancel()
  return { retryInMs }
}

function forgetExpired({ own, clock }: LedgerState): void {
  const settledAfterMs = clock.monotonic() - WINDOW_MS
  for (const request of own)
    if (request.settledAtMs !== undefined && request.settledAtMs <= settledAfterMs) own.delete(request)
}

const takenSlot = (ledger: LedgerState, request: CountedRequest, slot: TakenSlot): TakenSlot => ({
  settle() {
    if (request.settledAtMs !== undefined || !ledger.own.has(request)) return
    slot.settle()
    request.settledAtMs = ledger.clock.monotonic()
    report(ledger, [request])
  },
  cancel() {
    if (!ledger.own.delete(request)) return
    slot.cancel()
    sendOnly(ledger, { free: [request.id] })
  },
})
