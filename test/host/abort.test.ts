/** Many wait for one signal, without a warning of Node. */
import { once } from 'node:events'
import { describe, expect, it } from 'vitest'
import { onAbort, raceAbort, untilAborted, withTimeout } from '../../src/host/abort.js'
import { systemClock } from '../../src/host/clock.js'
import { createManualClock } from '../support/clock.js'

const REASON = new Error('stop')
const never = new Promise<never>(() => {})

describe('onAbort', () => {
  it('calls everybody who is still waiting, once, in their order', () => {
    const controller = new AbortController()
    const called: number[] = []
    const offs = Array.from({ length: 20 }, (_, at) => onAbort(controller.signal, () => called.push(at)))
    for (const off of offs.slice(2, 18)) off()
    controller.abort()
    expect(called).toEqual([0, 1, 18, 19])
    for (const off of offs) off()
    controller.abort()
    expect(called).toEqual([0, 1, 18, 19])
  })

  it('tells two who hand in the same function apart', () => {
    const controller = new AbortController()
    let calls = 0
    const call = () => calls++
    const off = onAbort(controller.signal, call)
    onAbort(controller.signal, call)
    off()
    controller.abort()
    expect(calls).toBe(1)
  })

  it('calls at once when the signal is aborted already', () => {
    const controller = new AbortController()
    let calls = 0
    onAbort(controller.signal, () => calls++)
    controller.abort()
    onAbort(controller.signal, () => calls++)
    onAbort(AbortSignal.abort(), () => calls++)
    expect(calls).toBe(3)
  })

  it('calls everybody though one of them fails, which is an uncaught error', async () => {
    const controller = new AbortController()
    const called: number[] = []
    onAbort(controller.signal, () => {
      throw REASON
    })
    onAbort(controller.signal, () => called.push(1))
    const others = process.rawListeners('uncaughtException')
    process.removeAllListeners('uncaughtException')
    const uncaught = once(process, 'uncaughtException')
    controller.abort()
    expect(called).toEqual([1])
    expect((await uncaught)[0]).toBe(REASON)
    for (const each of others) process.on('uncaughtException', each as NodeJS.UncaughtExceptionListener)
  })

  it('calls nothing without a signal', () => onAbort(undefined, () => expect.unreachable())())
})

describe('raceAbort', () => {
  it('has the outcome of the work when that comes first', async () => {
    const { signal } = new AbortController()
    await expect(raceAbort(Promise.resolve(1), signal)).resolves.toBe(1)
    await expect(raceAbort(Promise.reject(REASON), signal)).rejects.toBe(REASON)
    await expect(raceAbort(Promise.resolve(1), undefined)).resolves.toBe(1)
  })

  it('rejects with the reason of the signal, whatever becomes of the work', async () => {
    const controller = new AbortController()
    let failLate = (_: Error) => {}
    const late = new Promise<never>((_, reject) => {
      failLate = reject
    })
    const raced = [late, never].map((work) => raceAbort(work, controller.signal))
    controller.abort(REASON)
    for (const each of raced) await expect(each).rejects.toBe(REASON)
    // An unhandled rejection would fail the test.
    failLate(new Error('too late'))
    await expect(raceAbort(never, controller.signal)).rejects.toBe(REASON)
  })
})

describe('untilAborted', () => {
  it('resolves when the signal is aborted, or was', async () => {
    const controller = new AbortController()
    const waiting = untilAborted(controller.signal)
    controller.abort()
    await waiting
    await untilAborted(controller.signal)
  })
})

describe('withTimeout', () => {
  it('aborts the signal of the work when the time is over', async () => {
    const clock = createManualClock()
    const work = withTimeout((signal) => raceAbort(never, signal), {
      timeoutMs: 5_000,
      reason: () => REASON,
      clock,
    })
    const failed = expect(work).rejects.toBe(REASON)
    await clock.advance(5_000)
    await failed
  })

  it('aborts it with the reason of the signal that was given', async () => {
    const controller = new AbortController()
    const options = {
      timeoutMs: 5_000,
      reason: () => 'late',
      clock: createManualClock(),
      signal: controller.signal,
    }
    const work = withTimeout((signal) => raceAbort(never, signal), options)
    controller.abort(REASON)
    await expect(work).rejects.toBe(REASON)
    await expect(withTimeout(async (signal) => signal.throwIfAborted(), options)).rejects.toBe(REASON)
  })

  it('sets no alarm without a limit, and leaves none behind', async () => {
    const alarms: number[] = []
    let disarmed = 0
    const clock = {
      alarm(ms: number) {
        alarms.push(ms)
        return () => void disarmed++
      },
    }
    const seen: AbortSignal[] = []
    for (const timeoutMs of [undefined, Number.POSITIVE_INFINITY, 5_000]) {
      const controller = new AbortController()
      await withTimeout(async (signal) => seen.push(signal), {
        timeoutMs,
        reason: () => REASON,
        clock,
        signal: controller.signal,
      })
      controller.abort()
    }
    expect([alarms, disarmed]).toEqual([[5_000], 1])
    expect(seen.map(({ aborted }) => aborted)).toEqual([false, false, false])
  })
})

// Node warns on standard error about more than ten listeners.
it('sleeps, races and timeouts of one signal cause no warning', async () => {
  const warnings: Error[] = []
  const note = (warning: Error) => warnings.push(warning)
  process.on('warning', note)
  const controller = new AbortController()
  const { signal } = controller
  const timeout = { timeoutMs: 60_000, reason: () => REASON, clock: systemClock, signal }
  const all = Array.from({ length: 20 }, () => [
    systemClock.sleep(60_000, signal),
    raceAbort(never, signal),
    withTimeout((own) => raceAbort(never, own), timeout),
  ]).flat()
  // Node emits a warning in the next turn.
  await new Promise((resolve) => setImmediate(resolve))
  process.off('warning', note)
  expect(warnings).toEqual([])
  controller.abort(REASON)
  for (const each of await Promise.allSettled(all))
    expect(each).toEqual({ status: 'rejected', reason: REASON })
})
