/**
 * Keeps requests within the service's rate limit: 20 requests in 10 s per key, create and status together. Creates go
 * first, otherwise requests are served in order. A ledger stores the slots for this process, or for all processes of the
 * machine. `window.ts` has the arithmetic.
 */
import { onAbort } from '../host/abort.js'
import type { Clock } from '../host/clock.js'
import { RUNS_LIMIT } from '../protocol/limits.js'
import { createMemoryLedger, type Ledger, type Purpose, type TakenSlot } from './limit-ledger.js'

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

export function createLimiter(clock: Clock, ledger: Ledger = createMemoryLedger(clock)): Limiter {
  let alarm: AbortController | undefined
  const queue: Waiter[] = []

  const next = (): Waiter | undefined => queue.find(({ purpose }) => purpose === 'create') ?? queue[0]

  function leave(waiter: Waiter): void {
    queue.splice(queue.indexOf(waiter), 1)
  }

  /** Admits all waiters that can have a slot now, and sets a timer for the next one. */
  function admitAll(): void {
    alarm?.abort()
    alarm = undefined
    for (let waiter = next(); waiter !== undefined; waiter = next()) {
      const answer = ledger.take(waiter.purpose)
      if ('retryInMs' in answer) {
        wakeIn(answer.retryInMs)
        return
      }
      leave(waiter)
      waiter.admit(grantOf(answer))
    }
  }

  const grantOf = (slot: TakenSlot): Grant => ({
    settle() {
      slot.settle()
      admitAll()
    },
  })

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

export type { Ledger, Purpose } from './limit-ledger.js'
