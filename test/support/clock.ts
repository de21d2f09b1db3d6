/**
 * A clock that a test moves by hand. Sleeps are what a program waits for, alarms are its watchdogs: `runUntil` goes
 * from sleep to sleep and never to an alarm, so that a timeout fires only where a test's time truly passes it.
 */
import { setTimeout as realSleep } from 'node:timers/promises'
import type { Clock } from '../../src/host/clock.js'
import { PATIENCE_MS } from './patience.js'

export interface ManualClock extends Clock {
  /** Moves time forward through everything that falls due, in order; the program runs in between. */
  advance(ms: number): Promise<void>
  /** How many sleeps are pending; alarms are not counted. */
  readonly sleepers: number
  /** Of each pending alarm, the milliseconds that it was set for. */
  readonly alarms: readonly number[]
  /** Sets the wall clock forward or back, as a time server, a user or a machine that was asleep does; no time passes. */
  jump(ms: number): void
  /** Moves from sleep to sleep, whenever the program has nothing else to do, until the promise settles. */
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
/** Real work is waited for, but a hanging one must not hang the test. */
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

  /** Until several turns of the event loop pass in which no timer is set, fired or cancelled, and no file is touched. */
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

/** Counts work that the event loop does not list as under way: time waits for it. Returns what ends it. */
export function countWork(): () => void {
  counted++
  return () => void counted--
}

const FILE_WORK = /^(FSReq|(FileHandle)?CloseReq|DirHandle)/
const WIRE_WORK = /^(GetAddrInfo|TCPConnectWrap|WriteWrap|ShutdownWrap)/

/** Waits while such work is under way; whether there was any. */
async function finished(work: RegExp): Promise<boolean> {
  const isUnderWay = () => counted > 0 || process.getActiveResourcesInfo().some((name) => work.test(name))
  if (!isUnderWay()) return false
  const until = performance.now() + LONGEST_WORK_MS
  while (isUnderWay() && performance.now() < until) await realSleep(REAL_PAUSE_MS)
  return performance.now() < until
}
