/** Following one run, with the journal: what every status request shows is recorded. `run`, `wait` and `batch` use it. */
import type { Client, FollowStep } from '../../client/index.js'
import { RushesError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import type { RunState } from '../../protocol/run-state.js'
import { shortened } from '../../protocol/text.js'
import type { KnownRun } from './known-run.js'
import type { Recorder } from './record.js'

export interface FollowParts {
  readonly client: Pick<Client, 'follow'>
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly recorder: Pick<Recorder, 'recordStatus' | 'recordNotFound'>
}

/** The end of a run's following. */
export interface FollowedRun {
  readonly known: KnownRun
  /** From the last status request that had a usable answer. */
  readonly state: RunState | undefined
  /** Why there is nothing to deliver. */
  readonly error: RushesError | undefined
  /** ISO 8601 in UTC: when the end was noticed. */
  readonly finishedAt: string | undefined
  /** From the sending of the create until then. */
  readonly elapsedMs: number | undefined
}

export type RunStep =
  | Exclude<FollowStep, { readonly is: 'ended' | 'gave up' }>
  | { readonly is: 'over'; readonly run: FollowedRun; readonly durationMs?: number | undefined }

export interface RunFollower {
  readonly known: KnownRun
  /** One status request. Rejects with the signal's reason alone. */
  poll(options: { readonly signal: AbortSignal; readonly isUrgent: boolean }): Promise<RunStep>
  /** For a state that was fetched in another way: the run has ended. */
  ended(state: RunState, durationMs?: number): FollowedRun
  /** The run is not followed any more, for this reason. */
  stopped(error: RushesError): FollowedRun
  /** See `Follower` of the client. */
  errorAtLimit(limit: RushesError): RushesError
}

export function createRunFollower({ client, clock, recorder }: FollowParts, known: KnownRun): RunFollower {
  const follower = client.follow(known.id, known.answeredAtMs)
  let last: RunState | undefined

  const stopped = (error: RushesError): FollowedRun => ({
    known,
    state: last,
    error,
    finishedAt: undefined,
    elapsedMs: undefined,
  })

  function ended(state: RunState, durationMs?: number): FollowedRun {
    const elapsedMs = elapsedOf(known, clock)
    recorder.recordStatus({ state, elapsedMs, tookMs: durationMs })
    const error = state.phase === 'failed' ? runFailed(state) : undefined
    return { known, state, error, finishedAt: new Date(clock.now()).toISOString(), elapsedMs }
  }

  return {
    known,
    ended,
    stopped,
    errorAtLimit: follower.errorAtLimit,
    async poll({ signal, isUrgent }) {
      const step = await follower.poll(signal, { isUrgent })
      if (step.is === 'trouble') return step
      if (step.is === 'gave up') {
        if (step.error.code === 'run_not_found') recorder.recordNotFound(step.error, known.id)
        return { is: 'over', run: stopped(step.error) }
      }
      const { state } = step
      if (step.is === 'ended')
        return { is: 'over', run: ended(state, step.durationMs), durationMs: step.durationMs }
      if (state.status !== last?.status) recorder.recordStatus({ state })
      last = state
      return step
    },
  }
}

const elapsedOf = (
  { sentAtMs, createdAt, elapsedMs }: KnownRun,
  clock: Pick<Clock, 'now' | 'monotonic'>,
): number | undefined => {
  if (elapsedMs !== undefined) return elapsedMs
  if (sentAtMs !== undefined) return clock.monotonic() - sentAtMs
  return createdAt === undefined ? undefined : Math.max(0, clock.now() - Date.parse(createdAt))
}

const runFailed = (state: RunState): RushesError =>
  new RushesError(
    'run_failed',
    `The run ${/^failed$/i.test(state.status) ? 'failed' : `ended with the status ${state.status}`}: ${state.failure === undefined ? 'the service gave no reason.' : shortened(state.failure, 2_000)}`,
    {
      runId: state.id,
      hint: 'Nothing was downloaded. Your account shows whether it was charged.',
    },
  )
