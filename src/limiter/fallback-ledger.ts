/**
 * A ledger that other processes share, and the limit of this process while that cannot be used. Each request has a
 * slot in both: so when the shared one fails, the slots granted before still count. It is tried again once a
 * window, and then gets the slots granted meanwhile before it grants one.
 */
import type { Clock } from '../host/clock.js'
import { createMemoryLedger, type Ledger, type TakenSlot } from './limit-ledger.js'
import type { SharedLedger } from './shared-ledger.js'
import type { Limit } from './window.js'

interface FallbackOptions {
  readonly limit: Limit
  readonly clock: Pick<Clock, 'monotonic'>
  /** Called at each loss once. */
  onLost(error: unknown): void
}

/** A request of this process that counts. */
interface GrantedRequest {
  /** Undefined when it was granted while the shared ledger could not be used. */
  inShared: TakenSlot | undefined
  settledAtMs: number | undefined
  /** Whether the shared ledger knows that it was settled. */
  isReported: boolean
}

/** `open` throws when the file cannot be used; then it is called again. */
export function withFallback(
  open: () => SharedLedger,
  { limit, clock, onLost }: FallbackOptions,
): Ledger & Pick<SharedLedger, 'close'> {
  const memory = createMemoryLedger(limit, clock)
  const own = new Set<GrantedRequest>()
  let opened: SharedLedger | undefined
  /** Undefined unless the shared ledger has failed. */
  let retryAtMs: number | undefined
  /** From a failure until the next call that succeeds. */
  let isLost = false
  let heldBackUntilMs = 0

  retry()

  /** Opens the shared ledger, and tells it what it has missed. What fails is reported with the next attempt. */
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
    // What other processes were granted still counts, and can no longer be read.
    if (own.size > 0) memory.holdBack(limit.windowMs)
    onLost(error)
  }

  /** Undefined when the shared ledger cannot be used. */
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
        // It counts there until it is settled.
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
