/** Follows one run to its end, and keeps the journal up to date: every status that the service shows is recorded. */
import type { ApiClient, FollowStep } from '../client/index.js'
import { RushesError } from '../errors.js'
import type { Clock } from '../host/clock.js'
import type { JournalRun } from '../journal/index.js'
import type { RunState } from '../protocol/run-state.js'
import { shortened } from '../protocol/text.js'
import type { Recorder } from './recorder.js'

/** A run that exists, with what a command knows of it before it follows it. */
export interface KnownRun {
  readonly id: string
  readonly kind?: string | undefined
  readonly model?: string | undefined
  /** As it was sent; data: URLs as their hashes. */
  readonly input?: unknown
  /** The body of the 201. */
  readonly service?: unknown
  /** Monotonic instants, when this process created it. */
  readonly sentAtMs?: number | undefined
  readonly answeredAtMs?: number | undefined
  /** ISO 8601. */
  readonly createdAt?: string | undefined
  /** Of a run whose end an earlier command has seen. */
  readonly elapsedMs?: number | undefined
  /** From a status request that was just made. */
  readonly state?: RunState | undefined
}

/** A run that an earlier command created, by its row of the journal. */
export const knownRun = (id: string, run: JournalRun | undefined): KnownRun =>
  run === undefined
    ? { id }
    : {
        id,
        kind: run.kind,
        model: run.model,
        input: run.input,
        createdAt: new Date(run.createdAtMs).toISOString(),
        elapsedMs: run.elapsedMs,
      }

/** A run that is no longer followed. */
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

export interface FollowParts {
  readonly client: Pick<ApiClient, 'follow' | 'get'>
  readonly clock: Pick<Clock, 'now' | 'monotonic'>
  readonly recorder: Pick<Recorder, 'recordStatus' | 'recordNotFound'>
}

export interface RunFollower {
  readonly known: KnownRun
  /** One status request. Rejects with the signal's reason alone. */
  poll(options: { readonly signal: AbortSignal; readonly isUrgent: boolean }): Promise<RunStep>
  /** The state as one status request shows it, with the client's retries. Rejects with its error. */
  fetch(signal: AbortSignal): Promise<RunState>
  /** The run has ended with this state. */
  ended(state: RunState, durationMs?: number): FollowedRun
  /** The run is no longer followed, for this reason. */
  stopped(error: RushesError, state?: RunState): FollowedRun
  /** See `Follower` of the client. */
  errorAtLimit(limit: RushesError): RushesError
}

export function createRunFollower({ client, clock, recorder }: FollowParts, known: KnownRun): RunFollower {
  const follower = client.follow(known.id, known.answeredAtMs)
  let last: RunState | undefined

  const stopped = (error: RushesError, state = last): FollowedRun => ({
    known,
    state,
    error,
    finishedAt: undefined,
    elapsedMs: undefined,
  })

  /** Not for a 404 right after the create, which a time limit may end with. */
  function noteRefusal(error: unknown): void {
    if (error instanceof RushesError && error.code === 'run_not_found')
      recorder.recordNotFound(error, known.id)
  }

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
    async fetch(signal) {
      try {
        return await client.get(known.id, signal)
      } catch (error) {
        noteRefusal(error)
        throw error
      }
    },
    async poll({ signal, isUrgent }) {
      const step = await follower.poll(signal, { isUrgent })
      if (step.is === 'error') return step
      if (step.is === 'gave up') {
        noteRefusal(step.error)
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

function runFailed(state: RunState): RushesError {
  const end = /^failed$/i.test(state.status) ? 'failed' : `ended with the status ${state.status}`
  const reason = state.failure === undefined ? 'the service gave no reason.' : shortened(state.failure, 2_000)
  return new RushesError('run_failed', `The run ${end}: ${reason}`, {
    runId: state.id,
    hint: 'Nothing was downloaded. Your account shows whether it was charged.',
  })
}
