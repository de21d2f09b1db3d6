/**
 * Keeps to the service's limit: 20 requests in 10 s per key, create and status together. Creates go before looks,
 * otherwise in order. Holds within this process; the arithmetic is in `window.ts`.
 */
import type { Clock } from '../host/clock.js'
import { held, type Limit, type Place, waitMs } from './window.js'

export type Purpose = 'create' | 'look'

export interface Grant {
  /** The request was answered, or will never be: its place is free one window from now. */
  settle(): void
}

export interface Limiter {
  /** Resolves when the request may leave. Rejects with the signal's reason. */
  acquire(purpose: Purpose, signal?: AbortSignal): Promise<Grant>
  /** Nobody leaves for that long: the service said 429, so something else uses the same key. */
  holdBack(ms: number): void
  /** The share of the budget that is in use, 0 to 1. */
  load(): number
}

interface Waiter {
  readonly purpose: Purpose
  readonly admit: (grant: Grant) => void
}

export function createLimiter(limit: Limit, clock: Pick<Clock, 'monotonic' | 'sleep'>): Limiter {
  let places: readonly Place[] = []
  let heldBackUntilMs = 0
  let alarm: AbortController | undefined
  const queue: Waiter[] = []

  const next = (): Waiter | undefined => queue.find(({ purpose }) => purpose === 'create') ?? queue[0]

  function leave(waiter: Waiter): void {
    queue.splice(queue.indexOf(waiter), 1)
  }

  function grant(): Grant {
    const place: Place = { settledAtMs: undefined }
    places = [...held(places, limit, clock.monotonic()), place]
    return {
      settle() {
        place.settledAtMs ??= clock.monotonic()
        admitAll()
      },
    }
  }

  /** Admits whoever may leave now, and wakes again when the next one may. */
  function admitAll(): void {
    alarm?.abort()
    alarm = undefined
    for (let waiter = next(); waiter !== undefined; waiter = next()) {
      const now = clock.monotonic()
      const wait = Math.max(waitMs(places, limit, now), heldBackUntilMs - now)
      if (wait > 0) {
        wakeIn(wait)
        return
      }
      leave(waiter)
      waiter.admit(grant())
    }
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
        const giveUp = () => {
          leave(waiter)
          reject(signal?.reason)
          admitAll()
        }
        const waiter: Waiter = {
          purpose,
          admit: (granted) => {
            signal?.removeEventListener('abort', giveUp)
            resolve(granted)
          },
        }
        signal?.addEventListener('abort', giveUp, { once: true })
        queue.push(waiter)
        admitAll()
      }),
    holdBack(ms) {
      heldBackUntilMs = Math.max(heldBackUntilMs, clock.monotonic() + ms)
      admitAll()
    },
    load: () => Math.min(1, held(places, limit, clock.monotonic()).length / limit.requests),
  }
}
