/** Follows one run to its end, and records each status from the service in the journal. */
import type { ApiClient, FollowStep } from '../client/index.js'
import { RushesError } from '../errors.js'
import type { Clock } from '../host/clock.js'
import type { JournalRun } from '../journal/index.js'
import { endErrorOf, type RunState } from '../protocol/run-state.js'
import type { Recorder } from './recorder.js'

/** An existing run, with all that the command knows about it before following it. */
export interface KnownRun {
  readonly id: string
  /** Name of its row in a manifest. */
  readonly name?: string | undefined
  readonly kind?: string | undefined
  readonly model?: string | undefined
  /** The input as sent, with each data: URL replaced by its hash. */
  readonly input?: unknown
  /** Body of the 201 response to the create. */
  readonly service?: unknown
  /** Monotonic times in milliseconds. Set if this process created the run. */
  readonly sentAtMs?: number | undefined
  readonly answeredAtMs?: number | undefined
  /** ISO 8601 in UTC. */
  readonly createdAt?: string | undefined
  /** Duration of a run that an earlier command followed to its end. */
  readonly elapsedMs?: number | undefined
  /** State from a status request of this command. */
  readonly state?: RunState | undefined
  /** Whether an earlier command has seen that the run succeeded without URLs: they are not waited for again. */
  readonly isWithoutUrls?: boolean | undefined
}

/** Returns a run that an earlier command created, from its row in the journal. */
export const knownRun = (id: string, run: JournalRun | undefined): KnownRun =>
  run === undefined
    ? { id }
    : {
        id,
        name: run.name,
        kind: run.kind,
        model: run.model,
        input: run.input,
        createdAt: new Date(run.createdAtMs).toISOString(),
        elapsedMs: run.elapsedMs,
        isWithoutUrls: run.phase === 'succeeded' && run.urls.length === 0,
      }

/** Result of following a run. */
export interface FollowedRun {
  readonly known: KnownRun
  /** State from the last status request with a valid response. */
  readonly state: RunState | undefined
  /** Reason why there are no outputs to download. */
  readonly error: RushesError | undefined
  /** Time at which this command saw the end of the run. ISO 8601 in UTC. */
  readonly finishedAt: string | undefined
  /** Time from sending the create to `finishedAt`. */
  readonly elapsedMs: number | undefined
}

type RunStep =
  | Exclude<FollowStep, { readonly is: 'ended' | 'gave up' }>
  | { readonly is: 'over'; readonly run: FollowedRun; readonly durationMs?: number | undefined }

export interface FollowParts {
  /** Runs of the embedded service: no account is charged for them. */
  readonly isLocal?: boolean
  readonly client: Pick<ApiClient, 'follow' | 'get'>
  readonly clock: Clock
  readonly recorder: Pick<Recorder, 'recordStatus' | 'recordNotFound'>
}

export interface RunFollower {
  readonly known: KnownRun
  /** Sends one status request. Rejects only with the signal's reason. */
  poll(options: { readonly signal: AbortSignal; readonly isUrgent: boolean }): Promise<RunStep>
  /** Fetches the state with the retries of the client. Rejects with the client's error. */
  fetch(signal: AbortSignal): Promise<RunState>
  /** Returns the result of a run that has ended with this state. */
  ended(state: RunState, durationMs?: number): FollowedRun
  /** Returns the result of a run that is no longer followed because of this error. */
  stopped(error: RushesError, state?: RunState): FollowedRun
  /** Returns the error for a timeout: see `Follower` of the client. */
  errorAtLimit(limit: RushesError): RushesError
  /** The run has succeeded, and this command is waiting for its URLs. */
  readonly endedWithoutUrls: RunState | undefined
}

export function createRunFollower(
  { client, clock, recorder, isLocal }: FollowParts,
  known: KnownRun,
): RunFollower {
  const follower = client.follow(known.id, known.answeredAtMs)
  let last: RunState | undefined

  const stopped = (error: RushesError, state = last): FollowedRun => ({
    known,
    state,
    error,
    finishedAt: undefined,
    elapsedMs: undefined,
  })

  /**
   * Records that the service does not know the run. Not called for a 404 right after the create, which may be the last
   * response before a timeout.
   */
  function noteRefusal(error: unknown): void {
    if (error instanceof RushesError && error.code === 'run_not_found')
      recorder.recordNotFound(error, known.id)
  }

  function ended(state: RunState, durationMs?: number): FollowedRun {
    const elapsedMs = elapsedOf(known, clock)
    recorder.recordStatus({ state, elapsedMs, tookMs: durationMs })
    const error = endErrorOf(state, isLocal === true)
    return { known, state, error, finishedAt: new Date(clock.now()).toISOString(), elapsedMs }
  }

  return {
    known,
    get endedWithoutUrls() {
      return last?.withoutUrls === undefined ? undefined : last
    },
    ended,
    stopped,
    errorAtLimit: follower.errorAtLimit,
    async fetch(signal) {
      try {
        return await client.get(known.id, signal, (state) => recorder.recordStatus({ state }))
      } catch (error) {
        noteRefusal(error)
        throw error
      }
    },
    async poll({ signal, isUrgent }) {
      const step = await follower.poll(signal, { isUrgent })
      if (step.is === 'error') {
        if (step.state === undefined) return step
        if (known.isWithoutUrls) return { is: 'over', run: ended(step.state) }
        // Recorded at once: the run is paid for, and has ended.
        recorder.recordStatus({ state: step.state, elapsedMs: elapsedOf(known, clock) })
        last = step.state
        return step
      }
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

const elapsedOf = ({ sentAtMs, createdAt, elapsedMs }: KnownRun, clock: Clock): number | undefined => {
  if (elapsedMs !== undefined) return elapsedMs
  if (sentAtMs !== undefined) return clock.monotonic() - sentAtMs
  return createdAt === undefined ? undefined : Math.max(0, clock.now() - Date.parse(createdAt))
}
