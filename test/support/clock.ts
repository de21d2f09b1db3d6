/**
 * A clock that a test moves. Sleeps are waits of the program, alarms are its timeouts: `runUntil` advances from sleep
 * to sleep and never to an alarm, so that a timeout fires only if the test itself lets the time pass.
 */
import { setTimeout as realSleep } from 'node:timers/promises'
import type { Clock } from '../../src/host/clock.js'
import { PATIENCE_MS } from './patience.js'

export interface ManualClock extends Clock {
  /** Moves time forward through everything that is due, in order. The program runs in between. */
  advance(ms: number): Promise<void>
  /** Number of pending sleeps. Alarms are not counted. */
  readonly sleepers: number
  /** Duration of each pending alarm, in milliseconds. */
  readonly alarms: readonly number[]
  /**
   * Sets the wall clock forward or back, like a time server, a user or a suspended machine. The monotonic time does not
   * change.
   */
  jump(ms: number): void
  /** Advances from sleep to sleep, each time when the program is idle, until the promise settles. */
  runUntil<T>(promise: Promise<T>): Promise<T>
}

interface Timer {
  readonly atMs: number
  readonly ms: number
  readonly sleeping: boolean
  fire(): void
}

const START_MS = Date.UTC(2026, 0, 1)
const QUIET_TURNS = 5
const REAL_PAUSE_MS = 1
/** Maximum wait for real work, so that work which never ends does not block the test. */
const LONGEST_WORK_MS = 5_000

export function createManualClock(startMs = START_MS): ManualClock {
  let elapsedMs = 0
  let jumpedMs = 0
  let happenings = 0
  const timers = new Set<Timer>()

  const next = (which: (timer: Timer) => boolean): Timer | undefined => {
    let first: Timer | undefined
    for (const timer of timers) if (which(timer) && (!first || timer.atMs < first.atMs)) first = timer
    return first
  }

  function plan(ms: number, sleeping: boolean, ring: () => void): Timer {
    const timer: Timer = {
      atMs: elapsedMs + Math.max(0, ms),
      ms,
      sleeping,
      fire() {
        timers.delete(timer)
        ring()
      },
    }
    happenings++
    timers.add(timer)
    return timer
  }

  /**
   * Waits until several turns of the event loop pass in which no timer is set, fired or cancelled, and no file is used.
   */
  async function turns(): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS; quiet++) {
      const before = happenings
      await new Promise((resolve) => setImmediate(resolve))
      if (happenings !== before || (await finished(FILE_WORK))) quiet = 0
    }
  }

  async function goTo(targetMs: number): Promise<void> {
    await turns()
    for (;;) {
      const due = next((timer) => timer.atMs <= targetMs)
      if (due === undefined) break
      elapsedMs = Math.max(elapsedMs, due.atMs)
      happenings++
      due.fire()
      await turns()
    }
    elapsedMs = Math.max(elapsedMs, targetMs)
  }

  return {
    now: () => startMs + elapsedMs + jumpedMs,
    jump(ms) {
      jumpedMs += ms
    },
    monotonic: () => elapsedMs,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason)
        const abort = () => {
          happenings++
          timers.delete(timer)
          reject(signal?.reason)
        }
        const timer = plan(ms, true, () => {
          signal?.removeEventListener('abort', abort)
          resolve()
        })
        signal?.addEventListener('abort', abort, { once: true })
      }),
    alarm(ms, ring) {
      const timer = plan(ms, false, ring)
      return () => {
        happenings++
        timers.delete(timer)
      }
    },
    get sleepers() {
      return [...timers].filter((timer) => timer.sleeping).length
    },
    get alarms() {
      return [...timers].filter((timer) => !timer.sleeping).map(({ ms }) => ms)
    },
    advance: (ms) => goTo(elapsedMs + ms),
    async runUntil(promise) {
      const guardAt = performance.now() + PATIENCE_MS
      let settled = false
      const settle = () => {
        settled = true
      }
      promise.then(settle, settle)
      for (;;) {
        await turns()
        await realSleep(REAL_PAUSE_MS)
        await finished(WIRE_WORK)
        await turns()
        if (settled) return promise
        if (performance.now() > guardAt) {
          const pending = [...timers].map(
            ({ ms, atMs, sleeping }) =>
              `${sleeping ? 'sleep' : 'alarm'} of ${ms} ms, due in ${atMs - elapsedMs} ms`,
          )
          throw new Error(
            `not settled after ${PATIENCE_MS / 1_000} s; pending: ${pending.join('; ') || 'nothing'}`,
          )
        }
        const sleep = next((timer) => timer.sleeping)
        if (sleep !== undefined) await goTo(sleep.atMs)
      }
    },
  }
}

let counted = 0

/**
 * Counts work that is not visible in the event loop. Time does not advance until it ends. Returns the function that
 * ends it.
 */
export function countWork(): () => void {
  counted++
  return () => void counted--
}

const FILE_WORK = /^(FSReq|(FileHandle)?CloseReq|DirHandle)/
const WIRE_WORK = /^(GetAddrInfo|TCPConnectWrap|WriteWrap|ShutdownWrap)/

/** Waits for this kind of work. Returns whether there was any. */
async function finished(work: RegExp): Promise<boolean> {
  const isUnderWay = () => counted > 0 || process.getActiveResourcesInfo().some((name) => work.test(name))
  if (!isUnderWay()) return false
  const until = performance.now() + LONGEST_WORK_MS
  while (isUnderWay() && performance.now() < until) await realSleep(REAL_PAUSE_MS)
  return performance.now() < until
}
