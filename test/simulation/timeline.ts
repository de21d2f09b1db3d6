/** Virtual time for many nodes in one process, and one generator for everything that is random. */
import type { Clock } from '../../src/host/clock.js'

export interface Random {
  /** In [0, 1). */
  next(): number
  chance(share: number): boolean
  between(min: number, max: number): number
}

/** Mulberry32: the same seed gives the same history. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  return {
    next,
    chance: (share) => next() < share,
    between: (min, max) => min + Math.floor(next() * (max - min + 1)),
  }
}

/** A process. One that has crashed runs no more code; a frozen one continues later, and does not know about it. */
export interface Host {
  isDead: boolean
  frozenUntilMs: number
}

interface Timer {
  readonly host: Host
  atMs: number
  ring(): void
}

const START_MS = Date.UTC(2026, 0, 1)
const FILE_WORK = /^(FSReq|(FileHandle)?CloseReq|DirHandle)/

export class Timeline {
  readonly #timers = new Set<Timer>()
  #nowMs = 0

  get nowMs(): number {
    return this.#nowMs
  }

  /** `scale` changes the time of an alarm, as a slow process would. */
  clockOf(host: Host, scale: (ms: number) => number = (ms) => ms): Clock {
    const plan = (ms: number, ring: () => void) => {
      const timer = { host, atMs: this.#nowMs + Math.max(0, ms), ring }
      this.#timers.add(timer)
      return () => void this.#timers.delete(timer)
    }
    return {
      now: () => START_MS + this.#nowMs,
      monotonic: () => this.#nowMs,
      sleep: (ms, signal) =>
        new Promise((resolve, reject) => {
          if (signal?.aborted) return reject(signal.reason)
          const abort = () => {
            disarm()
            reject(signal?.reason)
          }
          const disarm = plan(ms, () => {
            signal?.removeEventListener('abort', abort)
            resolve()
          })
          signal?.addEventListener('abort', abort, { once: true })
        }),
      alarm: (ms, ring) => plan(scale(ms), ring),
    }
  }

  /** Fires what is due, in order, until `isOver` or the time has come. */
  async runUntil(atMs: number, isOver: () => boolean = () => false): Promise<void> {
    await settled()
    while (!isOver()) {
      let first: Timer | undefined
      for (const timer of this.#timers) {
        if (timer.host.isDead) this.#timers.delete(timer)
        else {
          timer.atMs = Math.max(timer.atMs, timer.host.frozenUntilMs)
          if (first === undefined || timer.atMs < first.atMs) first = timer
        }
      }
      if (first === undefined || first.atMs > atMs) break
      this.#timers.delete(first)
      this.#nowMs = Math.max(this.#nowMs, first.atMs)
      first.ring()
      await settled()
    }
    if (!isOver()) this.#nowMs = Math.max(this.#nowMs, atMs)
  }
}

/** The store is synchronous: all that follows from an event has happened in the next turn of the event loop. */
async function settled(): Promise<void> {
  do await new Promise((resolve) => setImmediate(resolve))
  while (process.getActiveResourcesInfo().some((name) => FILE_WORK.test(name)))
}
