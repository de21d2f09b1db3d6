/** The limit as a service counts it, for one limiter and for several on one file. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import type { Limiter, Purpose } from '../../src/limiter/index.js'
import { RUNS_LIMIT } from '../../src/protocol/limits.js'
import type { ManualClock } from '../support/index.js'

const { requests: LIMIT, windowMs: WINDOW_MS } = RUNS_LIMIT

interface Bench {
  readonly clock: ManualClock
  readonly limiters: readonly Limiter[]
}

const request = fc.record({
  by: fc.nat(),
  askedAtMs: fc.integer({ min: 0, max: 15_000 }),
  purpose: fc.constantFrom<Purpose>('create', 'status'),
  latencyMs: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 400 }), fc.integer({ min: 1, max: 12_000 })),
  /** Where between its sending and its answer the service counts it. */
  countedAt: fc.double({ min: 0, max: 1, noNaN: true }),
})

export function itKeepsTheLimit(create: () => Bench, numRuns: number): void {
  it('grants twenty in any ten seconds, whatever the latencies are, and wherever in them a request counts', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(request, { minLength: 21, maxLength: 70 }), async (requests) => {
        const { clock, limiters } = create()
        const counted: number[] = []
        const sent = requests.map(async ({ by, askedAtMs, purpose, latencyMs, countedAt }) => {
          await clock.sleep(askedAtMs)
          const grant = await limiters[by % limiters.length]?.acquire(purpose)
          counted.push(clock.monotonic() + latencyMs * countedAt)
          await clock.sleep(latencyMs)
          grant?.settle()
        })
        await clock.advance(300_000)
        await Promise.all(sent)
        const instants = counted.toSorted((a, b) => a - b)
        expect(instants).toHaveLength(requests.length)
        for (const [index, instant] of instants.slice(LIMIT).entries())
          expect(instant - (instants[index] ?? 0)).toBeGreaterThanOrEqual(WINDOW_MS)
      }),
      { numRuns },
    )
  })

  it('grants no fewer: with immediate responses, twenty every ten seconds', async () => {
    const { clock, limiters } = create()
    const grantedAtMs: number[] = []
    const sent = Array.from({ length: 4 * LIMIT }, async (_, at) => {
      const grant = await limiters[at % limiters.length]?.acquire('status')
      grantedAtMs.push(clock.monotonic())
      grant?.settle()
    })
    await clock.runUntil(Promise.all(sent))
    expect(grantedAtMs.toSorted((a, b) => a - b)).toEqual(
      [0, 10_000, 20_000, 30_000].flatMap((ms) => Array.from({ length: LIMIT }, () => ms)),
    )
  })
}
