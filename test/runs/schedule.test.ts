import { describe, expect, it } from 'vitest'
import { type InFlight, nextOf, paceOf, type ScheduleState } from '../../src/runs/next.js'
import { runSchedule, type Task } from '../../src/runs/schedule.js'
import { createManualClock, type ManualClock } from '../support/clock.js'

const NEXT = { soonestMs: 1_000, latestMs: 2_000 }
const BUDGET = { requests: 20, windowMs: 10_000 }

const flying = (more: Partial<InFlight> = {}): InFlight => ({
  createdAtMs: 0,
  polledAtMs: undefined,
  dueAtMs: 0,
  isPolled: false,
  durationsMs: [],
  chainLength: 0,
  ...more,
})

const next = (more: Partial<ScheduleState>) =>
  nextOf(
    {
      toCreate: 0,
      nextChainLength: 0,
      isExpecting: false,
      unanswered: 0,
      isAccepted: true,
      inFlight: [],
      concurrency: undefined,
      lastPollAtMs: undefined,
      createsSincePoll: 0,
      load: 1,
      nowMs: 20_000,
      ...more,
    },
    BUDGET,
  )

const CREATING: Partial<ScheduleState> = { toCreate: 9, unanswered: 2, createsSincePoll: 1 }
/** Of a model that takes 15 s, in which 30 requests fit; twice as many runs may wait. */
const old = (count: number, more: Partial<InFlight> = {}): readonly InFlight[] =>
  Array<InFlight>(count).fill(
    flying({ createdAtMs: -60_000, durationsMs: [15_000, 15_000, 15_000], ...more }),
  )

const WAIT_FOR_ANSWER = { do: 'wait', ms: Number.POSITIVE_INFINITY }
const CREATE = { do: 'create' }
const poll = (index: number) => ({ do: 'poll', index, isUrgent: false })
const urgentPoll = (index: number) => ({ do: 'poll', index, isUrgent: true })

describe('what is next', () => {
  it.each<[string, Partial<ScheduleState>, object]>([
    ['nothing is left', {}, { do: 'end' }],
    ['further runs may come', { isExpecting: true }, WAIT_FOR_ANSWER],
    [
      'a run with a longer chain behind it than the next create goes before it',
      { ...CREATING, nextChainLength: 1, inFlight: [...old(1), ...old(1, { chainLength: 2 })] },
      urgentPoll(1),
    ],
    [
      'with an equal one it does not',
      { ...CREATING, nextChainLength: 2, inFlight: old(1, { chainLength: 2 }) },
      CREATE,
    ],
    [
      'nor while it has hardly ended',
      {
        ...CREATING,
        inFlight: [flying({ chainLength: 5, polledAtMs: 19_000, durationsMs: [90_000, 90_000, 90_000] })],
      },
      CREATE,
    ],
    [
      'of those that have probably ended, the longest chain',
      { inFlight: [...old(1), ...old(1, { chainLength: 1 })] },
      poll(1),
    ],
    [
      'looks that would delay the creates of a chain wait',
      { load: 0.8, inFlight: [flying({ chainLength: 1, polledAtMs: 19_000 })] },
      { do: 'wait', ms: 500 },
    ],
    [
      'others do not',
      {
        load: 0.8,
        inFlight: [
          flying({ polledAtMs: 10_000 }),
          flying({ isPolled: true, chainLength: 1 }),
          flying({ isPolled: true }),
        ],
      },
      poll(0),
    ],
    ['the first create goes alone', { toCreate: 9, isAccepted: false }, CREATE],
    ['and is waited for', { toCreate: 9, unanswered: 1, isAccepted: false }, WAIT_FOR_ANSWER],
    ['then four are unanswered', { toCreate: 9, unanswered: 3 }, CREATE],
    ['at most', { toCreate: 9, unanswered: 4 }, WAIT_FOR_ANSWER],
    ['creates go before looks', { toCreate: 9, inFlight: [flying()] }, CREATE],
    ['also while they wait', { toCreate: 9, unanswered: 4, inFlight: [flying()] }, WAIT_FOR_ANSWER],
    ['a cap keeps creates back', { toCreate: 9, concurrency: 1, inFlight: [flying()] }, poll(0)],
    ['unanswered ones count', { toCreate: 9, concurrency: 2, unanswered: 1, inFlight: [flying()] }, poll(0)],
    ['nobody is looked at twice at once', { inFlight: [flying({ isPolled: true })] }, WAIT_FOR_ANSWER],
    [
      'nobody is asked about before it is due',
      { inFlight: [flying({ createdAtMs: 19_500, dueAtMs: 20_500 })] },
      { do: 'wait', ms: 500 },
    ],
    ['between creates, one that has probably ended', { ...CREATING, inFlight: old(61) }, urgentPoll(0)],
    ['in turn with them', { ...CREATING, createsSincePoll: 0, inFlight: old(61) }, CREATE],
    [
      'only while more runs wait than fit into the time of the last one',
      { ...CREATING, inFlight: old(60) },
      CREATE,
    ],
    [
      'nor for one that has hardly ended',
      { ...CREATING, inFlight: old(61, { createdAtMs: 19_000 }) },
      CREATE,
    ],
    [
      'nor for a fifth one at once',
      { ...CREATING, inFlight: [...old(4, { isPolled: true }), ...old(57)] },
      CREATE,
    ],
    [
      'nor before any was ever done',
      { inFlight: [flying({ createdAtMs: 10_000, durationsMs: [40_000, 30_000, 50_000] })] },
      { do: 'wait', ms: 11_000 },
    ],
    [
      'the oldest look first',
      { inFlight: [flying({ polledAtMs: 18_000 }), flying({ polledAtMs: 12_000 })] },
      poll(1),
    ],
    [
      'the likeliest first',
      {
        inFlight: [
          flying({ durationsMs: [60_000, 60_000, 60_000] }),
          flying({ durationsMs: [9_000, 9_000, 9_000] }),
        ],
      },
      poll(1),
    ],
    [
      'looks are spread',
      { inFlight: [flying({ polledAtMs: 10_000 })], lastPollAtMs: 19_800 },
      { do: 'wait', ms: 300 },
    ],
    [
      'not while half of the budget is free',
      { inFlight: [flying({ polledAtMs: 10_000 })], lastPollAtMs: 19_800, load: 0.5 },
      poll(0),
    ],
    [
      'sure ones are not',
      { inFlight: [flying({ durationsMs: Array.from({ length: 20 }, () => 5_000) })], lastPollAtMs: 19_999 },
      poll(0),
    ],
    [
      'four looks at once',
      { inFlight: [...Array.from({ length: 4 }, () => flying({ isPolled: true })), flying()] },
      WAIT_FOR_ANSWER,
    ],
  ])('%s', (_, situation, expected) => {
    expect(next(situation)).toEqual(expected)
  })
})

describe('the pace of a model', () => {
  it('uses a default until three runs have ended', () => {
    expect(paceOf([5_000, 6_000])).toEqual({ tooYoungMs: 0, medianMs: 30_000, slowMs: 30_000 })
    expect(paceOf([6_000, 7_000, 5_000])).toEqual({ tooYoungMs: 3_500, medianMs: 6_000, slowMs: 7_000 })
  })
})

describe('the loop', () => {
  type Options = Parameters<typeof runSchedule>[0]
  const schedule = (clock: ManualClock, tasks: readonly Task[], more: Partial<Options> = {}) =>
    runSchedule({
      tasks,
      clock,
      limit: BUDGET,
      load: () => 1,
      durationsOf: () => [],
      random: () => 0,
      mayCreate: () => true,
      signal: new AbortController().signal,
      ...more,
    })

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
          return name === 'refused' ? undefined : createdAtMs
        },
        async poll() {
          await clock.sleep(50)
          const isOver = clock.monotonic() - createdAtMs >= doneAfterMs
          seen.push(`${isOver ? 'over' : 'look'} ${name}`)
          return isOver ? { is: 'over' } : { is: 'running', next: NEXT }
        },
      }
    }
    await clock.runUntil(schedule(clock, [task('a', 500), task('refused', 0), task('b', 3_000)]))
    expect(seen.filter((each) => each.startsWith('create'))).toEqual([
      'create a',
      'create refused',
      'create b',
    ])
    expect(seen.filter((each) => each.startsWith('over')).sort()).toEqual(['over a', 'over b'])
    expect(seen.filter((each) => each.includes('refused'))).toHaveLength(1)
    expect(seen.length).toBeLessThan(12)
  })

  it('waits for tasks that come later, and creates the longest chain first', async () => {
    const clock = createManualClock()
    const seen: string[] = []
    const task = (name: string, chainLength: number, next?: () => Promise<readonly Task[]>): Task => ({
      group: 'one',
      chainLength,
      async create() {
        seen.push(name)
        return clock.monotonic()
      },
      poll: async () => (next === undefined ? { is: 'over' } : { is: 'over', next: next() }),
    })
    const delayed = async (ms: number, ...tasks: readonly Task[]) => {
      await clock.sleep(ms)
      return tasks
    }
    const chain = task('chain', 2, () =>
      delayed(
        60_000,
        task('link', 1, () => delayed(5_000, task('end', 0))),
      ),
    )
    await clock.runUntil(schedule(clock, [task('single', 0), task('other', 0), chain]))
    expect(seen[0]).toBe('chain')
    expect(seen.slice(-2)).toEqual(['link', 'end'])
    expect([...seen].sort()).toEqual(['chain', 'end', 'link', 'other', 'single'])
  })

  it('ends without the tasks that its signal kept back, and fails when they cannot be known', async () => {
    const clock = createManualClock()
    const stop = new AbortController()
    const isBegun = { poll: 0 }
    const late: Task = { group: 'one', poll: async () => ({ is: 'over', durationMs: isBegun.poll++ }) }
    const ending = (next: Promise<readonly Task[]>): Task => ({
      group: 'one',
      poll: async () => ({ is: 'over', next }),
    })
    const later = clock.sleep(2_000).then(() => [late])
    const ended = expect(
      schedule(clock, [ending(later)], { timeoutMs: 5_000, signal: stop.signal }),
    ).rejects.toThrow('enough')
    await clock.advance(1_000)
    stop.abort(new Error('enough'))
    await clock.advance(10_000)
    await ended
    expect(isBegun.poll).toBe(0)
    const broken = Promise.reject(new Error('broken'))
    await expect(schedule(clock, [ending(broken)], { timeoutMs: 5_000 })).rejects.toThrow('broken')
  })

  it('ends by its signal, and creates nothing that it may not', async () => {
    const clock = createManualClock()
    const stop = new AbortController()
    const never: Task = { group: 'one', poll: async () => ({ is: 'running', next: NEXT }) }
    const ended = expect(schedule(clock, [never], { signal: stop.signal })).rejects.toThrow('enough')
    await clock.advance(10_000)
    stop.abort(new Error('enough'))
    await ended
    let created = 0
    const refused: Task = { ...never, create: async () => created++ }
    await schedule(clock, [refused], { mayCreate: () => false })
    expect(created).toBe(0)
  })

  it('lets a run expire, counted from its creation, and ignores what its last request then brings', async () => {
    const clock = createManualClock()
    const ended: string[] = []
    const task: Task = {
      group: 'one',
      create: async () => {
        await clock.sleep(700)
        // The 201 was read before the lock file was written.
        return clock.monotonic() - 200
      },
      async poll({ signal }) {
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        ended.push(`answered at ${clock.monotonic()}`)
        return { is: 'over', durationMs: 1 }
      },
      expire: () => ended.push(`expired at ${clock.monotonic()}`),
    }
    const work = schedule(clock, [task, task], { timeoutMs: 5_000 })
    await clock.advance(10_000)
    await work
    expect(ended).toEqual(['expired at 5500', 'answered at 5500', 'expired at 6200', 'answered at 6200'])
  })

  describe('with a timeout that passed while the process was suspended', () => {
    const NIGHT_MS = 8 * 3_600_000

    /** `after`: the result of the requests sent after the gap. */
    async function suspended(after: Awaited<ReturnType<Task['poll']>>) {
      const clock = createManualClock()
      let nightMs = 0
      const sleeping: ManualClock = { ...clock, monotonic: () => clock.monotonic() + nightMs } as ManualClock
      const seen: string[] = []
      const task: Task = {
        group: 'one',
        async poll() {
          await clock.sleep(100)
          seen.push(nightMs === 0 ? 'before' : 'after')
          return nightMs === 0 ? { is: 'running', next: NEXT } : after
        },
        expire: () => seen.push('expired'),
      }
      const work = schedule(sleeping, [task], { timeoutMs: 60_000 })
      await clock.advance(4_500)
      nightMs = NIGHT_MS
      await clock.advance(60_000)
      await work
      return seen.filter((each) => each !== 'before')
    }

    it('polls a run once more, which may have ended', async () => {
      expect(await suspended({ is: 'over' })).toEqual(['after'])
    })

    it('lets a run expire that is still running after that request', async () => {
      expect(await suspended({ is: 'running', next: NEXT })).toEqual(['after', 'expired'])
    })

    it('lets it expire half a minute later where the service does not answer', async () => {
      const seen = await suspended({ is: 'error', againInMs: 10_000 })
      expect(seen).toEqual(['after', 'after', 'after', 'expired'])
    })
  })

  it('lets ten thousand runs expire together, and then asks once what is next', async () => {
    const clock = createManualClock()
    const many = 10_000
    let expired = 0
    let asked = 0
    const task: Task = {
      group: 'one',
      async poll({ signal }) {
        await clock.sleep(2_000, signal)
        return { is: 'running', next: NEXT }
      },
      expire: () => expired++,
    }
    const load = () => {
      asked++
      return 1
    }
    const work = schedule(clock, Array<Task>(many).fill(task), { timeoutMs: 5_000, load })
    await clock.advance(4_999)
    expect(clock.alarms).toHaveLength(1)
    asked = 0
    await clock.advance(1)
    await work
    expect(expired).toBe(many)
    expect(asked).toBeLessThan(5)
    expect(clock.alarms).toEqual([])
  })

  it('waits for the creates that are under way when it is ended', async () => {
    const clock = createManualClock()
    const stop = new AbortController()
    let isAnswered = false
    const task: Task = {
      group: 'one',
      create: async () => {
        await clock.sleep(5_000)
        isAnswered = true
        return undefined
      },
      poll: async () => ({ is: 'over' }),
    }
    const work = schedule(clock, [task], { signal: stop.signal }).catch(() => isAnswered)
    await clock.advance(1_000)
    stop.abort(new Error('enough'))
    await clock.advance(10_000)
    expect(await work).toBe(true)
  })

  it.each([
    ['learns from runs that ended how long the others take', 8_000, 4],
    ['learns nothing where that is not known', undefined, 20],
  ])('%s', async (_, durationMs, mostPolls) => {
    const clock = createManualClock()
    const polls = new Map<number, number>()
    const task = (at: number): Task => {
      let createdAtMs = 0
      return {
        group: 'one',
        create: async () => {
          createdAtMs = clock.monotonic()
          return createdAtMs
        },
        async poll() {
          polls.set(at, (polls.get(at) ?? 0) + 1)
          return clock.monotonic() - createdAtMs >= 8_000
            ? { is: 'over', durationMs }
            : { is: 'running', next: NEXT }
        },
      }
    }
    await clock.runUntil(
      schedule(
        clock,
        Array.from({ length: 6 }, (_, at) => task(at)),
        { concurrency: 1 },
      ),
    )
    // From the fourth on, no request before 0.7 of the usual time.
    expect(polls.get(0)).toBeGreaterThan(6)
    for (const at of [3, 4, 5]) expect(polls.get(at)).toBeLessThanOrEqual(mostPolls)
    if (durationMs === undefined) expect(polls.get(5)).toBe(polls.get(0))
  })
})
