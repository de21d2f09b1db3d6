/**
 * Keeps requests within the service's rate limit: 20 requests in 10 s per key, create and status together. Creates go
 * first, otherwise requests are served in order. A ledger stores the slots for this process, for all processes of the
 * machine, or for several machines. `window.ts` has the arithmetic.
 */
import { onAbort } from '../host/abort.js'
import type { Clock } from '../host/clock.js'
import { RUNS_LIMIT } from '../protocol/limits.js'
import {
  createMemoryLedger,
  type Ledger,
  type Purpose,
  type RemoteLedger,
  type SlotAnswer,
} from './limit-ledger.js'

export interface Grant {
  /** Call it when the request was answered or abandoned. Its slot becomes free one window later. */
  settle(): void
}

export interface Limiter {
  /** Resolves when the request may be sent. Rejects with the signal's reason. */
  acquire(purpose: Purpose, signal?: AbortSignal): Promise<Grant>
  /** Grants no slot for `ms`. Called after a 429, which means that another program uses the same key. */
  holdBack(ms: number): void
  /** Used share of the limit, 0 to 1. */
  load(): number
}

interface Waiter {
  readonly purpose: Purpose
  readonly admit: (grant: Grant) => void
}

export function createLimiter(
  clock: Clock,
  ledger: Ledger | RemoteLedger = createMemoryLedger(clock),
): Limiter {
  let alarm: AbortController | undefined
  let isAsking = false
  const queue: Waiter[] = []

  const next = (): Waiter | undefined => queue.find(({ purpose }) => purpose === 'create') ?? queue[0]

  function leave(waiter: Waiter): void {
    queue.splice(queue.indexOf(waiter), 1)
  }

  /** Admits all waiters that can have a slot now, and sets a timer for the next one. */
  function admitAll(): void {
    if (isAsking) return
    alarm?.abort()
    alarm = undefined
    for (let waiter = next(); waiter !== undefined; waiter = next()) {
      const answer = ledger.take(waiter.purpose)
      if (answer instanceof Promise) {
        void admitLater(answer, waiter.purpose)
        return
      }
      if (!admit(answer, waiter)) return
    }
  }

  async function admitLater(answered: Promise<SlotAnswer>, purpose: Purpose): Promise<void> {
    isAsking = true
    const answer = await answered
    isAsking = false
    // The waiter that asked for this slot may have been aborted during the request.
    const waiter = queue.find((other) => other.purpose === purpose) ?? next()
    if (waiter === undefined) {
      if ('cancel' in answer) answer.cancel()
      else ledger.withdraw(purpose)
    } else if (admit(answer, waiter) || next()?.purpose !== purpose) admitAll()
  }

  /** Returns whether the waiter got a slot. */
  function admit(answer: SlotAnswer, waiter: Waiter): boolean {
    if ('retryInMs' in answer) {
      wakeIn(answer.retryInMs)
      return false
    }
    leave(waiter)
    waiter.admit({
      settle() {
        answer.settle()
        admitAll()
      },
    })
    return true
  }

  function wakeIn(ms: number): void {
    if (ms === Number.POSITIVE_INFINITY) return
    const controller = new AbortController()
    alarm = controller
    clock.sleep(ms, controller.signal).then(admitAll, () => {})
  }

  return {
    acquire: (purpose, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        const waiter: Waiter = {
          purpose,
          admit(granted) {
            forget()
            resolve(granted)
          },
        }
        const forget = onAbort(signal, () => {
          leave(waiter)
          if (!queue.some((other) => other.purpose === purpose)) ledger.withdraw(purpose)
          reject(signal?.reason)
          admitAll()
        })
        queue.push(waiter)
        // A request behind another waiter does not change the time of the next slot.
        if (alarm === undefined || next() === waiter) admitAll()
      }),
    holdBack(ms) {
      ledger.holdBack(ms)
      admitAll()
    },
    load: () => Math.min(1, ledger.usedSlots() / RUNS_LIMIT.requests),
  }
}

export type { Ledger, Purpose, RemoteLedger } from './limit-ledger.js'
