/** How a run is followed, by table: every answer to a status request, and what follows from it. */
import { describe, expect, it } from 'vitest'
import type { StatusOutcome } from '../../src/client/status.js'
import { RushesError } from '../../src/errors.js'
import type { RunState } from '../../src/protocol/run-state.js'
import { beginFollow, type Follow, follow } from '../../src/runs/follow.js'

const state = (status: string, phase: RunState['phase'], times: Partial<RunState> = {}): StatusOutcome => ({
  kind: 'state',
  state: {
    id: 'r1',
    status,
    phase,
    urls: [],
    failure: undefined,
    createdAt: undefined,
    finishedAt: undefined,
    service: {},
    ...times,
  },
})
const RUNNING = state('processing', 'running')
const SUCCEEDED = state('succeeded', 'succeeded')
const error = (httpStatus: number, code = 'service_error') =>
  new RushesError(code, 'no', { httpStatus, exitCode: 8 })
const refused = (httpStatus: number, code?: string): StatusOutcome => ({
  kind: 'final',
  error: error(httpStatus, code),
})
const trouble = (retryAfterMs = 0): StatusOutcome => ({ kind: 'error', error: error(500), retryAfterMs })

const CREATED = beginFollow(0, 0)
const FOREIGN = beginFollow(undefined, 0)
const at = (nowMs: number) => ({ nowMs, load: 0 })

describe('one status request', () => {
  it.each<[string, Follow, StatusOutcome, number, object]>([
    [
      'running: again in 1 to 1.2 s',
      CREATED,
      RUNNING,
      1_000,
      { is: 'again', inMs: { min: 1_000, max: 1_200 }, state: { phase: 'running' } },
    ],
    ['succeeded', CREATED, SUCCEEDED, 1_000, { is: 'ended' }],
    ['failed', CREATED, state('failed', 'failed'), 1_000, { is: 'ended' }],
    [
      'trouble: again in 1 s',
      CREATED,
      trouble(),
      1_000,
      { is: 'again', inMs: { min: 1_000, max: 1_000 }, error: {} },
    ],
    [
      'or in what the service asks for',
      CREATED,
      trouble(9_000),
      1_000,
      { is: 'again', inMs: { min: 9_000, max: 9_000 }, error: {} },
    ],
    ['a refusal', CREATED, refused(401), 1_000, { is: 'gave up' }],
    [
      'a 404 of a run just created',
      CREATED,
      refused(404, 'run_not_found'),
      9_999,
      { is: 'again', inMs: { min: 1_000, max: 1_000 }, error: {} },
    ],
    [
      'whatever its body says',
      CREATED,
      refused(404),
      9_999,
      { is: 'again', inMs: { min: 1_000, max: 1_000 }, error: {} },
    ],
    ['but not after 10 s', CREATED, refused(404), 10_000, { is: 'gave up' }],
    ['nor of a run of another process', FOREIGN, refused(404), 1_000, { is: 'gave up' }],
    ['another refusal is not excused', CREATED, refused(403), 1_000, { is: 'gave up' }],
  ])('%s', (_, before, outcome, nowMs, step) => {
    expect(follow(before, outcome, at(nowMs)).step).toMatchObject(step)
  })

  it('of a run that succeeded without URLs is repeated three times, then the run has ended', () => {
    const late = state('succeeded', 'succeeded', { withoutUrls: 'output.urls is missing' })
    let known = CREATED
    const steps = [1, 2, 4, 8].map((second) => {
      const { after, step } = follow(known, late, at(second * 1_000))
      known = after
      return step
    })
    const again = (ms: number) => ({ is: 'again', inMs: { min: ms, max: ms }, state: { phase: 'succeeded' } })
    expect(steps).toMatchObject([again(1_000), again(2_000), again(4_000), { is: 'ended' }])
  })

  it('gives up after six tries and two minutes, and says so', () => {
    let known = CREATED
    const steps = [20, 40, 60, 80, 100, 120].map((second) => {
      const { after, step } = follow(known, trouble(), at(second * 1_000))
      known = after
      return step
    })
    expect(steps.map(({ is }) => is)).toEqual([...Array.from({ length: 5 }, () => 'again'), 'gave up'])
    expect(steps.at(-1)).toMatchObject({ error: { message: 'no. No valid response for two minutes.' } })
  })

  it('has full patience again after every good answer', () => {
    const { after } = follow(follow(CREATED, trouble(), at(60_000)).after, RUNNING, at(70_000))
    expect(after).toMatchObject({ failures: 0, wakingMs: 0 })
  })
})
