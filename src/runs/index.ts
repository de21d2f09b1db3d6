/**
 * Creates, follows and downloads the runs of every command. One schedule decides which request is sent next under the
 * rate limit. The engine prints nothing and reads no files: it calls a function of the row at each event. A row that
 * depends on other rows is added when they have ended: `end` returns it.
 *
 *     rows ─► schedule ─► create ─► follow ─► end (download) ─► further rows
 */
import type { RushesError } from '../errors.js'
import { asRushesError, Interruption, type Interrupts } from '../host/interrupts.js'
import { RUNS_LIMIT } from '../protocol/limits.js'
import type { RunState } from '../protocol/run-state.js'
import { type CreateParts, type CreateRequest, createRun, isServiceDown, type Submitted } from './create.js'
import {
  createRunFollower,
  type FollowedRun,
  type FollowParts,
  type KnownRun,
  type RunFollower,
} from './follow.js'
import type { Recorder } from './recorder.js'
import { type Pace, type Polled, type PollOptions, runSchedule, type Task } from './schedule.js'

/** One run, from its create to its outputs. Its functions never reject, except for `request`. */
export interface Row {
  /** Groups runs: runs of one model have similar durations. */
  readonly model: string
  /** Length of the longest chain of rows that wait for its output. Default: 0. */
  readonly chainLength?: number
  /** The existing run. If undefined, `request` returns its create. */
  readonly run?: KnownRun
  /** Called when the create is due. If it rejects, the create is refused with its error. */
  request?(): Promise<CreateRequest>
  /** Called with the outcome of the create. `isLast`: the command sends no further creates because of this outcome. */
  onSubmitted?(submitted: Submitted, isLast: boolean): Promise<void>
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

export interface RunsOptions extends Pace {
  readonly rows: readonly Row[]
  readonly isLocal?: boolean
  readonly client: FollowParts['client'] & CreateParts['client'] & { load(): number }
  readonly recorder: FollowParts['recorder'] & CreateParts['recorder'] & Pick<Recorder, 'durations'>
  readonly interrupts: Interrupts
  /** Whether this error of a create stops further creates. */
  stopsCreating(error: RushesError): boolean
  /** Whether further creates may be sent; called before each. Default: always. */
  mayCreate?(): boolean
  /** Called once, if a signal arrives while a create has no response. */
  onGrace(): void
}

interface Engine {
  readonly options: RunsOptions
  /** The rows that are followed. */
  readonly followed: Map<Row, RunFollower>
  /** Ends of rows. Awaited last, so that an exception in one row does not leave the others running. */
  readonly ending: Promise<unknown>[]
  /** The error of each create that was answered. Undefined for one that was accepted. */
  readonly outcomes: (RushesError | undefined)[]
  /** The service has returned the status of at least one run. */
  isServiceAnswering: boolean
  isGraceNoted: boolean
  /** The outcome of a create has stopped further ones. */
  isStopped: boolean
}

/** Resolves when each row has ended or will never start. Rejects with the signal's reason, after all work has ended. */
export async function carryOut(options: RunsOptions): Promise<void> {
  const { client, recorder } = options
  const engine: Engine = {
    options,
    followed: new Map(),
    ending: [],
    outcomes: [],
    isServiceAnswering: false,
    isGraceNoted: false,
    isStopped: false,
  }
  try {
    await runSchedule({
      ...options,
      tasks: tasksOf(engine, options.rows),
      limit: RUNS_LIMIT,
      load: client.load,
      durationsOf: recorder.durations,
      mayCreate: () => mayCreate(engine),
    })
  } catch (thrown) {
    if (thrown instanceof Interruption)
      for (const [row, follower] of engine.followed) stop(engine, row, follower, { is: 'signal', by: thrown })
    throw thrown
  } finally {
    await allEnded(engine.ending)
  }
}

const mayCreate = ({ isStopped, options }: Engine): boolean => !isStopped && options.mayCreate?.() !== false

const tasksOf = (engine: Engine, rows: readonly Row[]): readonly Task[] =>
  rows.flatMap((row) => taskOf(engine, row) ?? [])

function taskOf(engine: Engine, row: Row): Task | undefined {
  const group = { group: row.model, chainLength: row.chainLength ?? 0 }
  const task: Task = {
    ...group,
    poll: (pollOptions) => poll(engine, row, pollOptions),
    expire: () => expire(engine, row),
  }
  if (row.run === undefined) return { ...task, create: () => create(engine, row) }
  const follower = follow(engine, row, row.run)
  if (row.run.state !== undefined) {
    engine.ending.push(fetchOnce(engine, row, follower, engine.options.signal))
    return undefined
  }
  if (!row.isOnce) return task
  return {
    ...group,
    async poll({ signal }) {
      await fetchOnce(engine, row, follower, signal)
      return { is: 'over' }
    },
  }
}

async function create(engine: Engine, row: Row): Promise<number | 'not followed' | undefined> {
  const submitted = await createRun({ ...engine.options, onGrace: () => noteGrace(engine) }, async () => {
    if (row.request === undefined) throw new Error('a row has a run, or the request that creates it')
    const request = await row.request()
    return {
      ...request,
      // Other creates may have stopped this one while it waited for the rate limiter.
      beforeSend: async () => (await request.beforeSend?.()) !== false && mayCreate(engine),
    }
  })
  const error = 'error' in submitted ? submitted.error : undefined
  if (submitted.is !== 'unsent') engine.outcomes.push(error)
  const isLast =
    error !== undefined && (engine.options.stopsCreating(error) || isServiceDown(engine.outcomes))
  engine.isStopped ||= isLast
  await row.onSubmitted?.(submitted, isLast)
  if (submitted.is !== 'created') return undefined
  if (row.isFollowed === false) return 'not followed'
  follow(engine, row, submitted.run)
  return submitted.run.answeredAtMs
}

function noteGrace(engine: Engine): void {
  if (!engine.isGraceNoted) engine.options.onGrace()
  engine.isGraceNoted = true
}

function follow({ options, followed }: Engine, row: Row, known: KnownRun): RunFollower {
  const follower = createRunFollower(options, known)
  followed.set(row, follower)
  return follower
}

function end({ followed, ending }: Engine, row: Row, run: FollowedRun): Promise<readonly Row[]> {
  followed.delete(row)
  const ended = row.end(run)
  ended.catch(() => {})
  ending.push(ended)
  return ended
}

function stop(engine: Engine, row: Row, follower: RunFollower, reason: StopReason, state?: RunState): void {
  // Only its URLs were missing, so it is not called running.
  if (follower.endedWithoutUrls !== undefined) {
    end(engine, row, follower.ended(follower.endedWithoutUrls))
    return
  }
  const error = row.errorAt(reason, follower.errorAtLimit)
  engine.followed.delete(row)
  if (error !== undefined) end(engine, row, follower.stopped(error, state))
}

async function poll(engine: Engine, row: Row, pollOptions: PollOptions): Promise<Polled> {
  const follower = engine.followed.get(row)
  if (follower === undefined) return { is: 'over' }
  const step = await follower.poll(pollOptions)
  const state = step.is === 'over' ? step.run.state : step.state
  engine.isServiceAnswering ||= state !== undefined
  if (state !== undefined) row.onStatus(state)
  if (step.is === 'error') row.onStatusError?.(step.error)
  if (step.is !== 'over') return step
  const next = end(engine, row, step.run)
  return {
    is: 'over',
    durationMs: step.durationMs,
    ...(row.chainLength ? { next: next.then((rows) => tasksOf(engine, rows)) } : {}),
  }
}

/** Sends no request if the state is already known. */
async function fetchOnce(
  engine: Engine,
  row: Row,
  follower: RunFollower,
  signal: AbortSignal,
): Promise<void> {
  try {
    const state = follower.known.state ?? (await follower.fetch(signal))
    row.onStatus(state)
    if (state.phase === 'running') stop(engine, row, follower, { is: 'not finished', state }, state)
    else end(engine, row, follower.ended(state))
  } catch (thrown) {
    if (thrown instanceof Interruption) stop(engine, row, follower, { is: 'signal', by: thrown })
    else end(engine, row, follower.stopped(asRushesError(thrown)))
  }
}

function expire(engine: Engine, row: Row): void {
  const follower = engine.followed.get(row)
  const reason = { is: 'time limit', isServiceAnswering: engine.isServiceAnswering } as const
  if (follower !== undefined) stop(engine, row, follower, reason)
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
