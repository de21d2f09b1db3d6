/** The life of a run, with a client of a few functions: whole commands are in test/cli. */
import { describe, expect, it } from 'vitest'
import type { FollowStep } from '../../src/client/index.js'
import { EXIT, RushesError } from '../../src/errors.js'
import { createInterrupts } from '../../src/host/interrupts.js'
import type { RunState } from '../../src/protocol/run-state.js'
import type { FollowedRun } from '../../src/runs/follow.js'
import { carryOut, type Row, type RunsOptions, type StopReason } from '../../src/runs/index.js'
import { createManualClock } from '../support/clock.js'

const NOT_FOUND = new RushesError('run_not_found', 'no such run', {
  exitCode: EXIT.notFound,
  httpStatus: 404,
})
const LIMIT = new RushesError('wait_timeout', 'the limit passed')
const RUNNING = { id: 'a', status: 'processing', phase: 'running', urls: [] } as unknown as RunState
const ENDED = { ...RUNNING, status: 'succeeded', phase: 'succeeded' } as unknown as RunState

/** Carries out rows on a manual clock. The client and the recorder fail the test unless `parts` replaces their functions. */
async function carriedOut(
  rows: readonly Row[],
  parts: Partial<Pick<RunsOptions, 'timeoutMs' | 'stopsCreating'>> & {
    readonly client?: Partial<RunsOptions['client']>
    readonly recorder?: Partial<RunsOptions['recorder']>
  },
): Promise<void> {
  const clock = createManualClock()
  const interrupts = createInterrupts()
  const fails = () => expect.unreachable()
  const played = carryOut({
    ...{ rows, clock, interrupts, timeoutMs: parts.timeoutMs },
    signal: interrupts.first,
    random: () => 0.5,
    stopsCreating: parts.stopsCreating ?? (() => false),
    onGrace() {},
    client: { load: () => 0, create: fails, get: fails, follow: fails, ...parts.client },
    recorder: {
      ...{ note: fails, durations: () => [], recordStatus() {}, recordNotFound() {} },
      ...parts.recorder,
    },
  })
  if (parts.timeoutMs !== undefined) await clock.advance(parts.timeoutMs + 1)
  await clock.runUntil(played)
}

/** `stepsOf`: the results of the status requests of a run; the last one repeats. Returns the runs recorded as not found. */
async function play(
  rows: readonly Row[],
  stepsOf: (id: string) => readonly FollowStep[],
  timeoutMs?: number,
) {
  const notFound: string[] = []
  await carriedOut(rows, {
    timeoutMs,
    client: {
      follow(id) {
        const steps = [...stepsOf(id)]
        return {
          poll: async () => (steps.length > 1 ? steps.shift() : steps[0]) as FollowStep,
          errorAtLimit: () => NOT_FOUND,
        }
      },
    },
    recorder: { recordNotFound: (_error, id) => void notFound.push(id) },
  })
  return notFound
}

function rowOf(id: string, more: Partial<Row> = {}) {
  const ended: FollowedRun[] = []
  const stops: StopReason[] = []
  const row: Row = {
    model: 'acme/still-1',
    run: { id },
    onStatus() {},
    errorAt(stop, errorAtLimit) {
      stops.push(stop)
      return errorAtLimit(LIMIT)
    },
    async end(run) {
      ended.push(run)
      return []
    },
    ...more,
  }
  return { row, ended, stops }
}

const NO_ANSWER: FollowStep = { is: 'error', error: NOT_FOUND, againInMs: 1_000 }

describe('a time limit', () => {
  it('records no run as lost when it passes while a replica does not know the run yet', async () => {
    const { row, ended } = rowOf('a')
    expect(await play([row], () => [NO_ANSWER], 5_000)).toEqual([])
    expect(ended.map(({ error }) => error)).toEqual([NOT_FOUND])
  })

  it('has the error of its own run, and says whether the service answered for another one', async () => {
    const running: FollowStep = { is: 'running', state: RUNNING, next: { soonestMs: 1_000, latestMs: 1_000 } }
    const rows = [rowOf('silent'), rowOf('running')]
    await play(
      rows.map(({ row }) => row),
      (id) => (id === 'running' ? [running] : [NO_ANSWER]),
      5_000,
    )
    expect(rows.map(({ stops }) => stops)).toEqual(
      rows.map(() => [{ is: 'time limit', isServiceAnswering: true }]),
    )
  })
})

it('a run that the service gave up is recorded', async () => {
  const { row } = rowOf('a')
  expect(await play([row], () => [{ is: 'gave up', error: NOT_FOUND }])).toEqual(['a'])
})

it('an exception in the end of one row waits for the ends of the others', async () => {
  const isDone: string[] = []
  const failing = rowOf('a', { end: () => Promise.reject(new Error('a bug')) })
  const slow = rowOf('b', {
    async end() {
      for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
      isDone.push('b')
      return []
    },
  })
  const ended: FollowStep = { is: 'ended', state: ENDED, durationMs: undefined }
  await expect(play([failing.row, slow.row], () => [ended])).rejects.toThrow('a bug')
  expect(isDone).toEqual(['b'])
})

it('rows that an end returns are carried out', async () => {
  const next = rowOf('b')
  const first = rowOf('a', { chainLength: 1, end: async () => [next.row] })
  await play([first.row], () => [{ is: 'ended', state: ENDED, durationMs: undefined }])
  expect(next.ended).toHaveLength(1)
})

describe('a create that is refused for good', () => {
  const REFUSED = new RushesError('insufficient_balance', 'no credits', { exitCode: EXIT.account })
  const INVALID = new RushesError('invalid_input', 'no prompt', { exitCode: EXIT.refused })

  /** Creates a, b and c. b is refused for good, before `c` continues. Returns what was sent, and all outcomes. */
  async function playRefusal(c: (send: () => Promise<void>, isRefused: Promise<void>) => Promise<void>) {
    const sent: string[] = []
    const outcomes: (readonly [string, string, boolean])[] = []
    let refuse = () => {}
    const isRefused = new Promise<void>((resolve) => {
      refuse = resolve
    })
    const rows = ['a', 'b', 'c'].map((name): Row => {
      const request = { body: Buffer.from(name), intent: { kind: 'image', model: 'm', input: {} } }
      return {
        ...rowOf(name).row,
        run: undefined as never,
        isFollowed: false,
        request: async () => request,
        async onSubmitted({ is }, isLast) {
          outcomes.push([name, is, isLast])
          if (is === 'refused') refuse()
        },
      }
    })
    await carriedOut(rows, {
      stopsCreating: ({ exitCode }) => exitCode === EXIT.account,
      client: {
        async create(body, options) {
          const name = String(body)
          const send = async () => {
            await options?.beforeSend?.()
            sent.push(name)
          }
          await (name === 'c' ? c(send, isRefused) : send())
          if (name === 'b') throw REFUSED
          return { id: name, body: {} }
        },
      },
      recorder: {
        note: () => ({ sending() {}, unsent() {}, answered() {}, accepted() {}, unknown: () => undefined }),
      },
    })
    return { sent, outcomes }
  }

  it('keeps back a create that waits for the rate limiter', async () => {
    const { sent, outcomes } = await playRefusal(async (send, isRefused) => {
      await isRefused
      await send()
    })
    expect(sent).toEqual(['a', 'b'])
    expect(outcomes).toEqual([
      ['a', 'created', false],
      ['b', 'refused', true],
      ['c', 'unsent', false],
    ])
  })

  it('ends the creates, which a later refusal for its own input does not', async () => {
    const { outcomes } = await playRefusal(async (send, isRefused) => {
      await send()
      await isRefused
      throw INVALID
    })
    expect(outcomes).toEqual([
      ['a', 'created', false],
      ['b', 'refused', true],
      ['c', 'refused', false],
    ])
  })
})
