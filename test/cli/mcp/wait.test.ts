import { describe, expect, it } from 'vitest'
import { waitAtMost } from '../../../src/cli/mcp/job.js'
import { createManualClock } from '../../support/clock.js'

const NEVER = new Promise<void>(() => {})

describe('a call waits', () => {
  const waiting = (work: Promise<unknown>, signal = new AbortController().signal, ticks: number[] = []) => {
    const clock = createManualClock()
    const sinceMs = clock.monotonic()
    const onTick = () => void ticks.push(clock.monotonic())
    return { clock, waited: waitAtMost(work, { sinceMs, signal }, clock, onTick) }
  }

  it.each([
    ['resolves', async () => 1],
    ['rejects', () => Promise.reject(new Error('no'))],
  ])('until the work %s', async (_, work) => expect(await waiting(work()).waited).toBe('done'))

  it('until the limit, with a tick every 5 s and none after it', async () => {
    const ticks: number[] = []
    const { clock, waited } = waiting(NEVER, undefined, ticks)
    await clock.advance(60_000)
    expect(await waited).toBe('late')
    expect(ticks).toEqual([5, 10, 15, 20, 25, 30, 35, 40, 45].map((s) => s * 1_000).slice(0, ticks.length))
    expect(ticks.length).toBeGreaterThanOrEqual(8)
    expect(ticks.length).toBeLessThanOrEqual(9)
  })

  it('until it is cancelled, also before it began', async () => {
    const controller = new AbortController()
    const { waited } = waiting(NEVER, controller.signal)
    controller.abort()
    expect(await waited).toBe('cancelled')
    expect(await waiting(NEVER, AbortSignal.abort()).waited).toBe('cancelled')
  })
})
