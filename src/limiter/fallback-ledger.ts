/**
 * Combines a ledger that other processes share with a memory ledger of this process, for the time when the shared
 * ledger fails. Each request has a slot in both, so slots that were granted before a failure still count. The shared
 * ledger is retried once per window. Slots that were granted during the failure are recorded in it before it grants a
 * new one.
 */
import type { Clock } from '../host/clock.js'
import { createMemoryLedger, type Ledger, type TakenSlot } from './limit-ledger.js'
import type { SharedLedger } from './shared-ledger.js'
import type { Limit } from './window.js'

interface FallbackOptions {
  readonly limit: Limit
  readonly clock: Pick<Clock, 'monotonic'>
  /** Called once for each failure of the shared ledger. */
  onLost(error: unknown): void
}

/** A request of this process that counts against the limit. */
interface GrantedRequest {
  /** Slot in the shared ledger; undefined if the request was granted while the shared ledger failed. */
  inShared: TakenSlot | undefined
  settledAtMs: number | undefined
  /** Whether the shared ledger has recorded that the request was settled. */
  isReported: boolean
}

/** Creates the combined ledger. `open` may throw if the file cannot be used; it is then called again later. */
export function withFallback(
  open: () => SharedLedger,
  { limit, clock, onLost }: FallbackOptions,
): Ledger & Pick<SharedLedger, 'close'> {
  const memory = createMemoryLedger(limit, clock)
  const own = new Set<GrantedRequest>()
  let opened: SharedLedger | undefined
  /** When to retry the shared ledger; undefined unless it has failed. */
  let retryAtMs: number | undefined
  /** True from a failure until the next call that succeeds, so that each failure is reported once. */
  let isLost = false
  let heldBackUntilMs = 0

  retry()

  /**
   * Opens the shared ledger, and records the requests that are missing there. The next attempt repeats everything that
   * fails here.
   */
  function retry(): void {
    try {
      opened ??= open()
      const heldMs = heldBackUntilMs - clock.monotonic()
      if (heldMs > 0) opened.holdBack(heldMs)
      for (const request of own) {
        request.inShared ??= opened.enter()
        if (request.settledAtMs !== undefined) report(request)
      }
      retryAtMs = undefined
    } catch (error) {
      lose(error)
    }
  }

  function lose(error: unknown): void {
    retryAtMs = clock.monotonic() + limit.windowMs
    if (isLost) return
    isLost = true
    forgetExpired()
    // The slots of other processes still count, but can no longer be read.
    if (own.size > 0) memory.holdBack(limit.windowMs)
    onLost(error)
  }

  /** Returns undefined if the shared ledger cannot be used. */
  function attempt<Result>(work: (shared: SharedLedger) => Result): Result | undefined {
    if (retryAtMs !== undefined || opened === undefined) return undefined
    try {
      const result = work(opened)
      isLost = false
      return result
    } catch (error) {
      lose(error)
      return undefined
    }
  }

  function report(request: GrantedRequest): void {
    if (!request.isReported) request.inShared?.settle()
    request.isReported = true
  }

  function forgetExpired(): void {
    const settledAfterMs = clock.monotonic() - limit.windowMs
    for (const request of own) {
      const { settledAtMs, isReported, inShared } = request
      const isExpired = settledAtMs !== undefined && settledAtMs <= settledAfterMs
      if (isExpired && (isReported || inShared === undefined)) own.delete(request)
    }
  }

  function takenSlot(inMemory: TakenSlot, inShared: TakenSlot | undefined): TakenSlot {
    const request: GrantedRequest = { inShared, settledAtMs: undefined, isReported: false }
    own.add(request)
    const end = () => {
      request.settledAtMs = clock.monotonic()
      attempt(() => report(request))
    }
    return {
      settle() {
        if (request.settledAtMs !== undefined || !own.has(request)) return
        inMemory.settle()
        end()
      },
      cancel() {
        if (request.settledAtMs !== undefined || !own.has(request)) return
        inMemory.cancel()
        attempt(() => {
          request.inShared?.cancel()
          own.delete(request)
        })
        if (request.inShared === undefined) own.delete(request)
        // The shared ledger counts it until it is settled.
        else if (own.has(request)) end()
      },
    }
  }

  return {
    take(purpose) {
      forgetExpired()
      if (retryAtMs !== undefined && retryAtMs <= clock.monotonic()) retry()
      const inShared = attempt((shared) => shared.take(purpose))
      if (inShared !== undefined && 'retryInMs' in inShared) return inShared
      const inMemory = memory.take(purpose)
      if (!('retryInMs' in inMemory)) return takenSlot(inMemory, inShared)
      attempt(() => inShared?.cancel())
      const untilRetryMs = (retryAtMs ?? Number.POSITIVE_INFINITY) - clock.monotonic()
      return { retryInMs: Math.min(inMemory.retryInMs, untilRetryMs) }
    },
    withdraw: (purpose) => void attempt((shared) => shared.withdraw(purpose)),
    holdBack(ms) {
      heldBackUntilMs = Math.max(heldBackUntilMs, clock.monotonic() + ms)
      memory.holdBack(ms)
      attempt((shared) => shared.holdBack(ms))
    },
    usedSlots: () => attempt((shared) => shared.usedSlots()) ?? memory.usedSlots(),
    close: () => opened?.close(),
  }
}
