/** Waits for one run: sleeps between its status requests, up to a time limit. For the library. */
import { RushesError, usageError } from '../errors.js'
import { withTimeout } from '../host/abort.js'
import { LAST_REQUEST_MS, limitAlarm } from '../host/limit-alarm.js'
import { jittered } from '../host/retry.js'
import { checkRunId } from '../protocol/id.js'
import { POLL_INTERVAL_MS } from '../protocol/limits.js'
import { type RunState, withoutUrls } from '../protocol/run-state.js'
import { createFollower, type FollowEngine, type FollowStep } from './follow.js'

export interface WaitOptions {
  /** Counted from `countedFromMs`, else from `createdAtMs`, else from the start of the wait. Undefined: no limit. */
  readonly timeoutMs?: number | undefined
  readonly countedFromMs?: number | undefined
  /** Monotonic time of the 201, if this process created the run. */
  readonly createdAtMs?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Called after a status request without a valid response. The wait continues. */
  onTrouble?(error: RushesError): void
}

export interface WaitEngine extends FollowEngine {
  /** Returns a number in [0, 1). */
  random(): number
}

/** Resolves with the final state, succeeded or failed. Throws like `states`. */
export async function wait(engine: WaitEngine, id: string, options?: WaitOptions): Promise<RunState> {
  let last: RunState | undefined
  for await (const state of states(engine, id, options)) last = state
  if (last === undefined) throw new Error('a wait ended without a state')
  return last
}

/**
 * Yields the state of each status request, up to the final one. Throws the error that ended the wait: a `wait_timeout`
 * (the run continues), a refusal, or the last error after too many failures.
 */
export async function* states(
  engine: WaitEngine,
  id: string,
  options: WaitOptions = {},
): AsyncGenerator<RunState> {
  const { clock, random } = engine
  const { createdAtMs, timeoutMs = Number.POSITIVE_INFINITY } = options
  checkRunId(id)
  // Written this way to reject NaN too, which would mean no limit.
  if (!(timeoutMs >= 0)) throw usageError('timeoutMs must be a number of milliseconds, 0 or more.')
  const startedAtMs = options.countedFromMs ?? createdAtMs ?? clock.monotonic()
  const follower = createFollower(engine, id, createdAtMs)
  let wasSuspended = false
  const alarm = (ms: number, ring: () => void) =>
    limitAlarm(clock, ms, (is) => {
      wasSuspended = is
      ring()
    })
  /** The limit covers sleeps and requests: a request that hangs does not extend it. */
  const withinLimit = (work: (signal: AbortSignal) => Promise<FollowStep>): Promise<FollowStep> =>
    withTimeout(work, {
      timeoutMs: Math.max(0, timeoutMs - (clock.monotonic() - startedAtMs)),
      reason: () => follower.errorAtLimit(limitPassed(id, timeoutMs)),
      clock: { alarm },
      signal: options.signal,
    }).catch(lastRequest)
  /** A run whose limit passed in a gap may have ended long ago: asks for it once more. */
  async function lastRequest(limit: unknown): Promise<FollowStep> {
    if (!wasSuspended || options.signal?.aborted) throw limit
    const { signal } = options
    const step = await withTimeout((either) => follower.poll(either), {
      timeoutMs: LAST_REQUEST_MS,
      reason: () => limit,
      clock,
      signal,
    })
    if (step.is === 'ended') return step
    throw limit
  }
  let pauseMs = createdAtMs === undefined ? 0 : POLL_INTERVAL_MS.min - (clock.monotonic() - createdAtMs)
  for (;;) {
    const step = await withinLimit(async (signal) => {
      if (pauseMs > 0) await clock.sleep(pauseMs, signal)
      return follower.poll(signal)
    })
    if (step.is === 'gave up') throw step.error
    if (step.is === 'error') {
      options.onTrouble?.(step.error)
      pauseMs = step.againInMs
      continue
    }
    if (step.is === 'ended' && step.state.withoutUrls !== undefined) throw withoutUrls(step.state)
    yield step.state
    if (step.is === 'ended') return
    pauseMs = jittered({ min: step.next.soonestMs, max: step.next.latestMs }, random())
  }
}

/** Returns the error of a wait that has reached its limit. */
const limitPassed = (id: string, timeoutMs: number): RushesError =>
  new RushesError('wait_timeout', `${id} is still running after ${limitText(timeoutMs)}.`, { runId: id })

const limitText = (durationMs: number): string =>
  durationMs < 1_000 ? `${Math.round(durationMs)} ms` : `${Math.round(durationMs / 1_000)} s`
