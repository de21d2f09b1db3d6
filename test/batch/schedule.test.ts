import { describe, expect, it } from 'vitest'
import { runSchedule, type Task } from '../../src/batch/schedule/index.js'
import { chance, survival, tooYoungMs } from '../../src/batch/schedule/likelihood.js'
import { type Flying, nextOf, type Situation } from '../../src/batch/schedule/next.js'
import { createManualClock } from '../support/clock.js'

const BUDGET = { requests: 20, windowMs: 10_000 }

const flying = (more: Partial<Flying> = {}): Flying => ({
  createdAtMs: 0,
  lookedAtMs: undefined,
  notBeforeMs: 0,
  isLookedAt: false,
  tookMs: [],
  ...more,
})

const next = (more: Partial<Situation>) =>
  nextOf(
    {
      toCreate: 0,
      unanswered: 0,
      isAnswered: true,
      flying: [],
      concurrency: undefined,
      lastLookAtMs: undefined,
      nowMs: 20_000,
      ...more,
    },
    BUDGET,
  )

describe('what is next', () => {
  it.each<[string, Partial<Situation>, object]>([
    ['nothing is left', {}, { do: 'end' }],
    ['the first create goes alone', { toCreate: 9, isAnswered: false }, { do: 'create' }],
    ['and is waited for', { toCreate: 9, unanswered: 1, isAnswered: false }, { do: 'rest' }],
    ['then four are unanswered', { toCreate: 9, unanswered: 3 }, { do: 'create' }],
    ['at most', { toCreate: 9, unanswered: 4 }, { do: 'rest' }],
    ['creates go before looks', { toCreate: 9, flying: [flying()] }, { do: 'create' }],
    ['also while they wait', { toCreate: 9, unanswered: 4, flying: [flying()] }, { do: 'rest' }],
    ['a cap keeps creates back', { toCreate: 9, concurrency: 1, flying: [flying()] }, { do: 'look', at: 0 }],
    [
      'unanswered ones count',
      { toCreate: 9, concurrency: 2, unanswered: 1, flying: [flying()] },
      { do: 'look', at: 0 },
    ],
    ['nobody is looked at twice at once', { flying: [flying({ isLookedAt: true })] }, { do: 'rest' }],
    [
      'nobody is looked at within its first second',
      { flying: [flying({ createdAtMs: 19_500 })] },
      { do: 'wait', ms: 500 },
    ],
    ['nor too soon again', { flying: [flying({ lookedAtMs: 19_400 })] }, { do: 'wait', ms: 400 }],
    [
      'nor before trouble has passed',
      { flying: [flying({ lookedAtMs: 1_000, notBeforeMs: 23_000 })] },
      { do: 'wait', ms: 3_000 },
    ],
    [
      'nor before any was ever done',
      { flying: [flying({ createdAtMs: 10_000, tookMs: [40_000, 30_000, 50_000] })] },
      { do: 'wait', ms: 11_000 },
    ],
    [
      'the oldest look first',
      { flying: [flying({ lookedAtMs: 18_000 }), flying({ lookedAtMs: 12_000 })] },
      { do: 'look', at: 1 },
    ],
    [
      'the likeliest first',
      { flying: [flying({ tookMs: [60_000, 60_000, 60_000] }), flying({ tookMs: [9_000, 9_000, 9_000] })] },
      { do: 'look', at: 1 },
    ],
    [
      'looks are spread',
      { flying: [flying({ lookedAtMs: 10_000 })], lastLookAtMs: 19_800 },
      { do: 'wait', ms: 300 },
    ],
    [
      'sure ones are not',
      { flying: [flying({ tookMs: Array.from({ length: 20 }, () => 5_000) })], lastLookAtMs: 19_999 },
      { do: 'look', at: 0 },
    ],
    [
      'four looks at once',
      { flying: [...Array.from({ length: 4 }, () => flying({ isLookedAt: true })), flying()] },
      { do: 'rest' },
    ],
  ])('%s', (_, situation, expected) => {
    expect(next(situation)).toEqual(expected)
  })
})

describe('the likelihood', () => {
  it('grows with age, and is nothing for no time', () => {
    expect(chance([], 10_000, 10_000)).toBe(0)
    expect(chance([], 0, 30_000)).toBeCloseTo(0.5)
    expect(chance([5_000, 6_000, 7_000], 0, 8_000)).toBeGreaterThan(0.9 * chance([], 0, 8_000))
    expect(survival([1, 2, 3], 1e9)).toBeGreaterThan(0)
  })

  it('never gives a run of a long tail up', () => {
    const took = [5_000, 6_000, 7_000]
    expect(chance(took, 600_000, 660_000)).toBeGreaterThan(0)
    expect(tooYoungMs([100_000])).toBe(0)
    expect(tooYoungMs(took)).toBe(3_500)
  })
})

describe('the loop', () => {
  it('creates, looks, and ends; what is over is not looked at again', async () => {
    const clock = createManualClock()
    const seen: string[] = []
    const task = (name: string, doneAfterMs: number): Task => {
      let createdAtMs = 0
      return {
        group: 'one',
        async create() {
          seen.push(`create ${name}`)
          await clock.sleep(50)
          createdAtMs = clock.monotonic()
          return name !== 'refused'
        },
        async look() {
          await clock.sleep(50)
          const isOver = clock.monotonic() - createdAtMs >= doneAfterMs
          seen.push(`${isOver ? 'over' : 'look'} ${name}`)
          return isOver ? { is: 'over' } : { is: 'going' }
        },
      }
    }
    const left = await clock.runUntil(
      runSchedule({
        tasks: [task('a', 500), task('refused', 0), task('b', 3_000)],
        clock,
        budget: BUDGET,
        learned: () => [],
        mayCreate: () => true,
        signal: new AbortController().signal,
      }),
    )
    expect(left).toBe(0)
    expect(seen.filter((each) => each.startsWith('create'))).toEqual([
      'create a',
      'create refused',
      'create b',
    ])
    expect(seen.filter((each) => each.startsWith('over')).sort()).toEqual(['over a', 'over b'])
    expect(seen.filter((each) => each.includes('refused'))).toHaveLength(1)
    expect(seen.length).toBeLessThan(12)
  })

  it('ends by its signal, and creates nothing that it may not', async () => {
    const clock = createManualClock()
    const stop = new AbortController()
    const never: Task = { group: 'one', look: async () => ({ is: 'going' }) }
    const options = { clock, budget: BUDGET, learned: () => [], signal: stop.signal }
    const ended = expect(runSchedule({ ...options, tasks: [never], mayCreate: () => true })).rejects.toThrow(
      'enough',
    )
    await clock.advance(10_000)
    stop.abort(new Error('enough'))
    await ended
    const refused: Task = { ...never, create: async () => true }
    expect(
      await runSchedule({
        ...options,
        signal: new AbortController().signal,
        tasks: [refused],
        mayCreate: () => false,
      }),
    ).toBe(1)
  })
})
