/** What a run that is followed leaves in the journal, and how it ends. */
import { describe, expect, it } from 'vitest'
import type { FollowStep } from '../../src/client/index.js'
import { createRunFollower, type KnownRun } from '../../src/runs/follow.js'
import { createManualClock } from '../support/clock.js'
import { runState } from '../support/runs.js'

const LATE = runState({ status: 'succeeded', phase: 'succeeded', withoutUrls: 'output.urls is missing' })
const WAITING = { is: 'error', againInMs: 1_000, state: LATE } as unknown as FollowStep
const POLL = { signal: new AbortController().signal, isUrgent: false }

/** `steps`: the results of the status requests. */
function followed(steps: readonly FollowStep[], known: KnownRun = { id: 'run_1' }, isLocal = false) {
  const recorded: string[] = []
  const left = [...steps]
  const follower = createRunFollower(
    {
      client: {
        follow: () => ({ poll: async () => left.shift() as FollowStep, errorAtLimit: (limit) => limit }),
        get: () => expect.unreachable(),
      },
      clock: createManualClock(),
      recorder: {
        recordStatus: ({ state }) => void recorded.push(`${state.status} ${state.urls}`.trim()),
        recordNotFound() {},
      },
      isLocal,
    },
    known,
  )
  return { follower, recorded }
}

describe('a run that succeeded without URLs', () => {
  it('records success at its first response, while its URLs are still requested', async () => {
    const { follower, recorded } = followed([WAITING])
    expect(await follower.poll(POLL)).toMatchObject({ is: 'error', againInMs: 1_000 })
    expect(recorded).toEqual(['succeeded'])
    expect(follower.endedWithoutUrls).toBe(LATE)
  })

  it('succeeds when its URLs arrive late', async () => {
    const urls = ['https://cdn.example/1.png']
    const state = runState({ status: 'succeeded', phase: 'succeeded', urls })
    const { follower, recorded } = followed([WAITING, { is: 'ended', state, durationMs: undefined }])
    await follower.poll(POLL)
    expect(await follower.poll(POLL)).toMatchObject({
      is: 'over',
      run: { error: undefined, state: { urls } },
    })
    expect(recorded).toEqual(['succeeded', `succeeded ${urls}`])
  })

  it('ends with an error that gives the reason of the service and no command that pays again', async () => {
    const state = { ...LATE, failure: 'blocked by moderation' }
    const { follower } = followed([{ is: 'ended', state, durationMs: undefined }])
    const step = await follower.poll(POLL)
    const error = step.is === 'over' ? step.run.error : undefined
    expect(error).toMatchObject({ code: 'bad_response', exitCode: 8, runId: 'run_1' })
    expect(error?.message).toBe(
      'The run ended (succeeded) without a file: output.urls is missing. The service says: blocked by moderation',
    )
    expect(error?.hint).not.toMatch(/again\b.*pay/)
  })

  it('ends at once when the journal knows that its URLs never came', async () => {
    const { follower } = followed([WAITING], { id: 'run_1', isWithoutUrls: true })
    expect(await follower.poll(POLL)).toMatchObject({ is: 'over', run: { error: { exitCode: 8 } } })
  })
})

describe('a failed run', () => {
  const hintOf = async (failure: string | undefined, isLocal = false) => {
    const state = runState({ status: 'failed', phase: 'failed', failure, service: { refunded: true } })
    const { follower } = followed([{ is: 'ended', state, durationMs: undefined }], { id: 'run_1' }, isLocal)
    const step = await follower.poll(POLL)
    return step.is === 'over' ? step.run.error?.hint : undefined
  }

  it.each<[string, string | undefined, boolean, boolean]>([
    ['may have been charged', 'no', false, true],
    ['of the embedded service is not charged to an account', undefined, true, false],
    ['without a reason may have been charged', undefined, false, true],
    ['whose error says so was refunded', 'Render failed; credits refunded.', false, false],
    ['whose error says so was not refunded', 'This run will not be refunded.', false, false],
  ])('%s', async (_, failure, isLocal, mayBeCharged) => {
    const hint = await hintOf(failure, isLocal)
    expect(hint).toContain('Nothing was downloaded.')
    expect(hint?.includes('Your account shows whether it was charged')).toBe(mayBeCharged)
  })
})
