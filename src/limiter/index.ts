/**
 * Keeps requests within the service's rate limit: 20 requests in 10 s per key, create and status together. Creates of
 * this process go first, otherwise requests are served in order. `window.ts` has the arithmetic, `shared-window.ts` the
 * slots that all processes of the machine share.
 */
import { onAbort } from '../host/abort.js'
import type { Clock } from '../host/clock.js'
import { RUNS_LIMIT } from '../protocol/limits.js'
import type { SharedWindow } from './shared-window.js'
import { countingSlots, type Slot, waitMs } from './window.js'

export type Purpose = 'create' | 'status'

export interface Grant {
  /** Call it when the request was answered or abandoned. Its slot becomes free one window later. */
  settle(): void
}

interface Waiter {
  readonly purpose: Purpose
  readonly admit: (grant: Grant) => void
}

interface SharedLimit {
  /** Throws if the file cannot be used. */
  open(): SharedWindow
  /** Called once, if the file cannot be used: this process then keeps its own limit until it ends. */
  onLost(error: unknown): void
}

export class Limiter {
  /** Slots that status requests leave free, for creates that this process is going to send. */
  spareForCreates = 0
  readonly #clock: Clock
  readonly #onLost: SharedLimit['onLost']
  #shared: SharedWindow | undefined
  /** The slots of this process. They count on their own where the file cannot be used. */
  #slots: readonly Slot[] = []
  #heldBackUntilMs = 0
  readonly #queue: Waiter[] = []
  #alarm: AbortController | undefined

  /** `shared`: for a key that other processes of the machine use too. Throws the error of `onLost`. */
  constructor(clock: Clock, shared?: SharedLimit) {
    this.#clock = clock
    this.#onLost = shared?.onLost ?? (() => {})
    try {
      this.#shared = shared?.open()
    } catch (error) {
      this.#onLost(error)
    }
  }

  /** Resolves when the request may be sent. Rejects with the signal's reason. */
  acquire(purpose: Purpose, signal?: AbortSignal): Promise<Grant> {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const waiter: Waiter = {
        purpose,
        admit(grant) {
          forget()
          resolve(grant)
        },
      }
      const forget = onAbort(signal, () => {
        this.#leave(waiter)
        reject(signal?.reason)
        this.#admitAll()
      })
      this.#queue.push(waiter)
      // A request behind another waiter does not change the time of the next slot.
      if (this.#alarm === undefined || this.#next() === waiter) this.#admitAll()
    })
  }

  /** Grants no slot for `ms`. Called after a 429, which means that another program uses the same key. */
  holdBack(ms: number): void {
    this.#heldBackUntilMs = Math.max(this.#heldBackUntilMs, this.#clock.monotonic() + ms)
    this.#tryShared((shared) => shared.holdBack(ms))
    this.#admitAll()
  }

  /** Remaining time in ms for which requests are held back after a 429. */
  heldBackMs(): number {
    return Math.max(0, this.#heldBackUntilMs - this.#clock.monotonic())
  }

  /** Used share of the limit, 0 to 1. */
  load(): number {
    const own = countingSlots(this.#slots, RUNS_LIMIT, this.#clock.monotonic()).length
    const used = this.#tryShared((shared) => shared.used()) ?? own
    return Math.min(1, Math.max(used, own) / RUNS_LIMIT.requests)
  }

  close(): void {
    this.#shared?.close()
  }

  #next(): Waiter | undefined {
    return this.#queue.find(({ purpose }) => purpose === 'create') ?? this.#queue[0]
  }

  #leave(waiter: Waiter): void {
    this.#queue.splice(this.#queue.indexOf(waiter), 1)
  }

  /** Admits all waiters that can have a slot now, and sets a timer for the next one. */
  #admitAll(): void {
    this.#alarm?.abort()
    this.#alarm = undefined
    for (let waiter = this.#next(); waiter !== undefined; waiter = this.#next()) {
      const taken = this.#take(waiter.purpose === 'create' ? 0 : this.spareForCreates)
      if (typeof taken === 'number') {
        this.#wakeIn(taken)
        return
      }
      this.#leave(waiter)
      waiter.admit(taken)
    }
  }

  #wakeIn(ms: number): void {
    if (ms === Number.POSITIVE_INFINITY) return
    const alarm = new AbortController()
    this.#alarm = alarm
    this.#clock.sleep(Math.min(ms, RUNS_LIMIT.windowMs), alarm.signal).then(
      () => this.#admitAll(),
      () => {},
    )
  }

  /** Takes a slot, or returns how long to wait. */
  #take(spare: number): Grant | number {
    const nowMs = this.#clock.monotonic()
    this.#slots = countingSlots(this.#slots, RUNS_LIMIT, nowMs)
    const wait = Math.max(waitMs(this.#slots, RUNS_LIMIT, nowMs, spare), this.#heldBackUntilMs - nowMs)
    if (wait > 0) return wait
    const taken = this.#tryShared((shared) => shared.take(spare))
    if (taken !== undefined && 'retryInMs' in taken) return taken.retryInMs
    const slot: Slot = { settledAtMs: undefined }
    this.#slots = [...this.#slots, slot]
    return {
      settle: () => {
        if (slot.settledAtMs !== undefined) return
        slot.settledAtMs = this.#clock.monotonic()
        if (taken !== undefined) this.#tryShared((shared) => shared.settle(taken.slot))
        this.#admitAll()
      },
    }
  }

  #tryShared<Result>(work: (shared: SharedWindow) => Result): Result | undefined {
    if (this.#shared === undefined) return undefined
    try {
      return work(this.#shared)
    } catch (error) {
      this.#shared.close()
      this.#shared = undefined
      // The slots of other processes still count, but can no longer be read.
      this.#heldBackUntilMs = Math.max(this.#heldBackUntilMs, this.#clock.monotonic() + RUNS_LIMIT.windowMs)
      this.#onLost(error)
      return undefined
    }
  }
}
