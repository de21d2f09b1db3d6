/** How a run is followed, by table: every answer to a status request, and what follows from it. */
import { expect, it } from 'vitest'
import type { StatusOutcome } from '../../src/client/status.js'
import { RushesError } from '../../src/errors.js'
import type { RunState } from '../../src/protocol/run-state.js'
import { beginFollow, type Follow, follow } from '../../src/runs/follow.js'
import { runState } from '../support/runs.js'

const state = (status: string, phase: RunState['phase'], more: Partial<RunState> = {}): StatusOutcome => ({
  kind: 'state',
  state: runState({ status, phase, ...more }),
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
const inSeconds = (seconds: number) => ({ is: 'again', inMs: { min: seconds * 1_000, max: seconds * 1_000 } })

it.each<[string, Follow, StatusOutcome, number, object]>([
  [
    'running: again in 1 to 1.05 s',
    CREATED,
    RUNNING,
    1_000,
    { is: 'again', inMs: { min: 1_000, max: 1_050 }, state: { phase: 'running' } },
  ],
  ['succeeded', CREATED, SUCCEEDED, 1_000, { is: 'ended' }],
  ['failed', CREATED, state('failed', 'failed'), 1_000, { is: 'ended' }],
  ['trouble: again in 1 s', CREATED, trouble(), 1_000, { ...inSeconds(1), error: {} }],
  ['or in what the service asks for', CREATED, trouble(9_000), 1_000, { ...inSeconds(9), error: {} }],
  ['a refusal', CREATED, refused(401), 1_000, { is: 'gave up' }],
  [
    'a 404 of a run just created',
    CREATED,
    refused(404, 'run_not_found'),
    9_999,
    { ...inSeconds(1), error: {} },
  ],
  ['whatever its body says', CREATED, refused(404), 9_999, { ...inSeconds(1), error: {} }],
  ['but not after 10 s', CREATED, refused(404), 10_000, { is: 'gave up' }],
  ['nor of a run of another process', FOREIGN, refused(404), 1_000, { is: 'gave up' }],
  ['another refusal is not excused', CREATED, refused(403), 1_000, { is: 'gave up' }],
])('a status request has its next step: %s', (_, before, outcome, nowMs, step) => {
  expect(follow(before, outcome, at(nowMs)).step).toMatchObject(step)
})

it('a status request of a run that succeeded without URLs is repeated three times, then the run has ended', () => {
  const late = state('succeeded', 'succeeded', { withoutUrls: 'output.urls is missing' })
  let known = CREATED
  const steps = [1, 2, 4, 8].map((second) => {
    const { after, step } = follow(known, late, at(second * 1_000))
    known = after
    return step
  })
  const again = (seconds: number) => ({ ...inSeconds(seconds), state: { phase: 'succeeded' } })
  expect(steps).toMatchObject([again(1), again(2), again(4), { is: 'ended' }])
})

it.each([
  ['five tries in three minutes', 5, 36_000, 'again'],
  ['six tries in three minutes', 6, 36_000, 'gave up'],
  ['six tries in two minutes', 6, 20_000, 'gave up'],
  ['six tries in a little less', 6, 19_999, 'again'],
  ['a hundred tries in a second', 100, 10, 'again'],
  ['one try and a night', 1, 8 * 3_600_000, 'again'],
  ['five tries after a night each, which count as 75 s', 5, 8 * 3_600_000, 'again'],
  ['a clock that went back', 6, -60_000, 'again'],
])(
  'following gives up after six failures and two minutes of waking time: %s (%i × %i ms): %s',
  (_, count, eachMs, is) => {
    let known = FOREIGN
    const steps = Array.from({ length: count }, (_each, index) => {
      const { after, step } = follow(known, trouble(), at((index + 1) * eachMs))
      known = after
      return step.is
    })
    expect(steps).toEqual([...Array(count - 1).fill('again'), is])
  },
)

it('following has full patience again after every good answer', () => {
  const { after } = follow(follow(CREATED, trouble(), at(60_000)).after, RUNNING, at(70_000))
  expect(after).toMatchObject({ failures: 0, wakingMs: 0 })
})
