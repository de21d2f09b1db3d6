/**
 * Creates, follows and downloads the runs of every command. One schedule decides which request is sent next under the
 * rate limit. The engine prints nothing and reads no files: it calls a function of the row at each event. A row that
 * depends on other rows is added when they have ended: `end` returns it.
 *
 *     rows ─► schedule ─► create ─► follow ─► end (download) ─► further rows
 */
import type { RushesError } from '../errors.js'
import { asRushesError, Interruption } from '../host/interrupts.js'
import { RUNS_LIMIT } from '../protocol/limits.js'
import type { RunState } from '../protocol/run-state.js'
import {
  createRunFollower,
  type FollowedRun,
  type FollowParts,
  type KnownRun,
  type RunFollower,
} from './follow.js'
import type { Recorder } from './recorder.js'
import { type Polled, type PollOptions, runSchedule, type ScheduleOptions, type Task } from './schedule.js'

/** One run, from its create to its outputs. Its functions never reject. */
export interface Row {
  /** Groups runs: runs of one model have similar durations. */
  readonly model: string
  /** Length of the longest chain of rows that wait for its output. Default: 0. */
  readonly chainLength?: number
  /** The existing run. If undefined, `create` sends it. */
  readonly run?: KnownRun
  /** Resolves with undefined if there is no run to follow; the row reports the reason. */
  create?(): Promise<KnownRun | undefined>
  /** Default: true. If false, the run is only created. */
  readonly isFollowed?: boolean
  /** Sends a single status request. A run that has not ended is then an error (stop reason `not finished`). */
  readonly isOnce?: boolean
  /** Called with each status received. */
  onStatus(state: RunState): void
  /** Called after a status request without a valid response. It is retried. */
  onStatusError?(error: RushesError): void
  /**
   * Returns the error of a run that is no longer followed although it has not ended. `errorAtLimit` replaces the
   * timeout error if the service never answered about this run. Undefined leaves the row as it is, for example after a
   * signal: `end` is then not called.
   */
  errorAt(stop: StopReason, errorAtLimit: (limit: RushesError) => RushesError): RushesError | undefined
  /** Called when the run is no longer followed: downloads its outputs. Resolves with the rows that can start now. */
  end(run: FollowedRun): Promise<readonly Row[]>
}

export type StopReason =
  /** `isServiceAnswering`: the service has returned the status of at least one run. */
  | { readonly is: 'time limit'; readonly isServiceAnswering: boolean }
  | { readonly is: 'not finished'; readonly state: RunState }
  | { readonly is: 'signal'; readonly by: Interruption }

export interface RunsOptions
  extends Pick<ScheduleOptions, 'random' | 'concurrency' | 'timeoutMs' | 'mayCreate' | 'signal'> {
  readonly rows: readonly Row[]
  readonly isLocal?: boolean
  readonly client: FollowParts['client'] & { load(): number }
  readonly recorder: FollowParts['recorder'] & Pick<Recorder, 'durations'>
  readonly clock: FollowParts['clock'] & ScheduleOptions['clock']
}

/** Resolves when each row has ended or will never start. Rejects with the signal's reason, after all work has ended. */
export async function carryOut(options: RunsOptions): Promise<void> {
  const { client, clock, recorder, signal, isLocal = false } = options
  const followed = new Map<Row, RunFollower>()
  const ending: Promise<unknown>[] = []
  let isServiceAnswering = false

  function follow(row: Row, known: KnownRun): RunFollower {
    const follower = createRunFollower({ client, clock, recorder, isLocal }, known)
    followed.set(row, follower)
    return follower
  }

  function end(row: Row, run: FollowedRun): Promise<readonly Row[]> {
    followed.delete(row)
    const ended = row.end(run)
    // Awaited in `finally`, so that an exception in one row does not leave the others running.
    ended.catch(() => {})
    ending.push(ended)
    return ended
  }

  function stop(row: Row, follower: RunFollower, reason: StopReason, state?: RunState): void {
    // Only its URLs were missing, so it is not called running.
    if (follower.endedWithoutUrls !== undefined) {
      end(row, follower.ended(follower.endedWithoutUrls))
      return
    }
    const error = row.errorAt(reason, follower.errorAtLimit)
    followed.delete(row)
    if (error !== undefined) end(row, follower.stopped(error, state))
  }

  async function poll(row: Row, pollOptions: PollOptions): Promise<Polled> {
    const follower = followed.get(row)
    if (follower === undefined) return { is: 'over' }
    const step = await follower.poll(pollOptions)
    const state = step.is === 'over' ? step.run.state : step.state
    isServiceAnswering ||= state !== undefined
    if (state !== undefined) row.onStatus(state)
    if (step.is === 'error') row.onStatusError?.(step.error)
    if (step.is !== 'over') return step
    const next = end(row, step.run)
    return {
      is: 'over',
      durationMs: step.durationMs,
      ...(row.chainLength ? { next: next.then(tasksOf) } : {}),
    }
  }

  /** Sends no request if the state is already known. */
  async function fetchOnce(row: Row, follower: RunFollower, requestSignal: AbortSignal): Promise<void> {
    try {
      const state = follower.known.state ?? (await follower.fetch(requestSignal))
      row.onStatus(state)
      if (state.phase === 'running') stop(row, follower, { is: 'not finished', state }, state)
      else end(row, follower.ended(state))
    } catch (thrown) {
      if (thrown instanceof Interruption) stop(row, follower, { is: 'signal', by: thrown })
      else end(row, follower.stopped(asRushesError(thrown)))
    }
  }

  const tasksOf = (rows: readonly Row[]): readonly Task[] => rows.flatMap(taskOf)

  function taskOf(row: Row): readonly Task[] {
    const task = { group: row.model, chainLength: row.chainLength ?? 0 }
    if (row.run === undefined)
      return [
        {
          ...task,
          async create() {
            const known = await row.create?.()
            if (known !== undefined && row.isFollowed === false) return 'not followed'
            if (known !== undefined) follow(row, known)
            return known?.answeredAtMs
          },
          poll: (pollOptions) => poll(row, pollOptions),
          expire: () => expire(row),
        },
      ]
    const follower = follow(row, row.run)
    if (row.run.state !== undefined) {
      ending.push(fetchOnce(row, follower, signal))
      return []
    }
    if (!row.isOnce)
      return [{ ...task, poll: (pollOptions) => poll(row, pollOptions), expire: () => expire(row) }]
    return [
      {
        ...task,
        async poll({ signal: requestSignal }) {
          await fetchOnce(row, follower, requestSignal)
          return { is: 'over' }
        },
      },
    ]
  }

  function expire(row: Row): void {
    const follower = followed.get(row)
    if (follower !== undefined) stop(row, follower, { is: 'time limit', isServiceAnswering })
  }

  try {
    await runSchedule({
      ...options,
      tasks: tasksOf(options.rows),
      limit: RUNS_LIMIT,
      load: client.load,
      durationsOf: recorder.durations,
    })
  } catch (thrown) {
    if (thrown instanceof Interruption)
      for (const [row, follower] of followed) stop(row, follower, { is: 'signal', by: thrown })
    throw thrown
  } finally {
    await allEnded(ending)
  }
}

/**
 * Waits until each promise has settled, including promises added during the wait. Then rejects with the first error.
 */
async function allEnded(ending: readonly Promise<unknown>[]): Promise<void> {
  const errors: unknown[] = []
  for (let index = 0; index < ending.length; index++)
    await ending[index]?.catch((error: unknown) => errors.push(error))
  if (errors.length > 0) throw errors[0]
}
