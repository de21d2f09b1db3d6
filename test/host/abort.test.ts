/** Many wait for one signal, without a warning of Node. */
import { expect, it } from 'vitest'
import { raceAbort, withTimeout } from '../../src/host/abort.js'
import { systemClock } from '../../src/host/clock.js'
import { createManualClock } from '../support/index.js'

const REASON = new Error('stop')
const never = new Promise<never>(() => {})

it('raceAbort rejects with the reason of the signal, whatever becomes of the work', async () => {
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

it('withTimeout aborts the signal of the work when the time is over', async () => {
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

it('withTimeout aborts the work with the reason of the signal that was given', async () => {
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
