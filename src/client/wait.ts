/** Waiting for one run: status requests at a pace, with patience, up to a limit. */
import { RushesError, usageError } from '../errors.js'
import { withTimeout } from '../host/abort.js'
import { jittered } from '../host/backoff.js'
import type { Clock, Disarm } from '../host/clock.js'
import { checkRunId } from '../protocol/id.js'
import type { RunState } from '../protocol/run-state.js'
import { fetchStatus, type StatusEngine } from './fetch-status.js'
import { beginFollow, errorAtLimit, type Follow, type FollowStep, follow } from './follow.js'
import { FIRST_POLL_MS } from './pace.js'

export interface WaitOptions {
  /** Counted from `countedFromMs`, else from `createdAtMs`, else from the start of the wait. Undefined: no limit. */
  readonly timeoutMs?: number | undefined
  readonly countedFromMs?: number | undefined
  /** Monotonic instant of the 201, when this process created the run. */
  readonly createdAtMs?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** A status request had no usable answer; the wait continues. */
  onTrouble?(error: RushesError): void
}

export interface WaitEngine extends FollowEngine {
  /** In [0, 1). */
  random(): number
}

export interface FollowEngine extends StatusEngine {
  /** `send` with its own turn under the rate limit; `onSend` is called directly before the request is sent. */
  sendAs?(purpose: 'create' | 'status', onSend: () => void): StatusEngine['send']
}

/** One run that is followed, one status request at a time. */
export interface Follower {
  /**
   * One status request; rejects with the signal's reason alone. An urgent one has its turn among the creates, which
   * otherwise all go first.
   */
  poll(signal?: AbortSignal, options?: { readonly isUrgent?: boolean }): Promise<FollowStep>
  /** The error of a wait that ends at its limit with `limit`: of a service that never answered it is another one. */
  errorAtLimit(limit: RushesError): RushesError
}

/** `createdAtMs`: monotonic instant of the 201, when this process created the run. */
export function createFollower(engine: FollowEngine, id: string, createdAtMs: number | undefined): Follower {
  const { clock, limiter } = engine
  let known: Follow = beginFollow(createdAtMs, clock.monotonic())
  let silence: Silence | undefined
  return {
    async poll(signal, { isUrgent = false } = {}) {
      const onSend = () => {
        silence?.end()
        silence = listen(clock)
      }
      const send = engine.sendAs?.(isUrgent ? 'create' : 'status', onSend) ?? engine.send
      const outcome = await fetchStatus({ ...engine, send }, id, signal).finally(() => silence?.end())
      silence = undefined
      const { after, step } = follow(known, outcome, { nowMs: clock.monotonic(), load: limiter.load() })
      known = after
      return step
    },
    errorAtLimit(limit) {
      const trouble = known.trouble ?? (silence?.isLong() ? noAnswer(engine, id) : undefined)
      return errorAtLimit({ ...known, trouble }, limit)
    },
  }
}

interface Silence {
  /** Whether the request has been unanswered for at least a second in which this process could have read the answer. */
  isLong(): boolean
  end(): void
}

const SILENCE_STEP_MS = 250
const MIN_SILENT_STEPS = 4

/**
 * At the limit, a request that was sent a moment ago says nothing about the service, nor does one that was sent long ago
 * while this process was busy or suspended: however long that was, it counts as one step.
 */
function listen(clock: Pick<Clock, 'alarm'>): Silence {
  let steps = 0
  let disarm: Disarm
  const step = () => {
    disarm = clock.alarm(SILENCE_STEP_MS, () => {
      if (++steps < MIN_SILENT_STEPS) step()
    })
  }
  step()
  return { isLong: () => steps >= MIN_SILENT_STEPS, end: () => disarm() }
}

const noAnswer = ({ baseUrl }: FollowEngine, id: string): RushesError =>
  new RushesError('network', `${new URL(baseUrl).host} did not answer within the timeout.`, {
    runId: id,
    hint: 'Check the service URL and the network, or wait longer with --timeout.',
  })

/**
 * Every state that a status request shows, ending with the final one. Throws the error that ended the wait: a
 * `wait_timeout` (the run continues), a refusal, or the last trouble when patience is exhausted.
 */
export async function* states(
  engine: WaitEngine,
  id: string,
  options: WaitOptions = {},
): AsyncGenerator<RunState> {
  const { clock, random } = engine
  const { createdAtMs, timeoutMs = Number.POSITIVE_INFINITY } = options
  checkRunId(id)
  // NaN would be no limit.
  if (!(timeoutMs >= 0)) throw usageError('timeoutMs must be a number of milliseconds, 0 or more.')
  const startedAtMs = options.countedFromMs ?? createdAtMs ?? clock.monotonic()
  const follower = createFollower(engine, id, createdAtMs)
  /** The limit covers sleeps and requests: a request that hangs does not extend it. */
  const withinLimit = <Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> =>
    withTimeout(work, {
      timeoutMs: Math.max(0, timeoutMs - (clock.monotonic() - startedAtMs)),
      reason: () => follower.errorAtLimit(limitPassed(id, timeoutMs)),
      clock,
      signal: options.signal,
    })
  let pauseMs = createdAtMs === undefined ? 0 : FIRST_POLL_MS - (clock.monotonic() - createdAtMs)
  for (;;) {
    const step = await withinLimit(async (signal) => {
      if (pauseMs > 0) await clock.sleep(pauseMs, signal)
      return follower.poll(signal)
    })
    if (step.is === 'gave up') throw step.error
    if (step.is === 'trouble') {
      options.onTrouble?.(step.error)
      pauseMs = step.againInMs
      continue
    }
    yield step.state
    if (step.is === 'ended') return
    pauseMs = jittered({ min: step.next.soonestMs, max: step.next.latestMs }, random())
  }
}

/** The error of a wait whose limit has passed. */
export const limitPassed = (id: string, timeoutMs: number): RushesError =>
  new RushesError('wait_timeout', `${id} is still running after ${limitText(timeoutMs)}.`, {
    runId: id,
  })

const limitText = (durationMs: number): string =>
  durationMs < 1_000 ? `${Math.round(durationMs)} ms` : `${Math.round(durationMs / 1_000)} s`

/** The final state, of success or failure. Throws as `states` does. */
export async function wait(engine: WaitEngine, id: string, options?: WaitOptions): Promise<RunState> {
  let last: RunState | undefined
  for await (const state of states(engine, id, options)) last = state
  if (last === undefined) throw new Error('a wait ended without a state')
  return last
}
