/** Waits for one run, for the library: the states of its status requests, up to the final one. */

import { RushesError, usageError } from '../errors.js'
import { checkRunId } from '../protocol/id.js'
import type { RunState } from '../protocol/run-state.js'
import { stillRunning, withoutUrls } from './follow.js'
import type { RunsSession } from './run.js'
import { carryOut } from './schedule.js'

export interface WaitOptions {
  /** Counted from the start of the wait. Undefined: no limit. */
  readonly timeoutMs?: number | undefined
  /** Monotonic time of the 201, if this process created the run. */
  readonly createdAtMs?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** Called after a status request without a valid response. The wait continues. */
  onTrouble?(error: RushesError): void
}

export type WaitSession = Pick<RunsSession, 'client' | 'clock' | 'random'>

/** Resolves with the final state, succeeded or failed. Throws like `states`. */
export async function wait(session: WaitSession, id: string, options?: WaitOptions): Promise<RunState> {
  let last: RunState | undefined
  for await (const state of states(session, id, options)) last = state
  if (last === undefined) throw new Error('a wait ended without a state')
  return last
}

/**
 * Yields the state of each status request, up to the final one. Throws the error that ended the wait: a `wait_timeout`
 * (the run continues), a refusal, or the last error after too many failures; or the signal's reason.
 */
export async function* states(
  session: WaitSession,
  id: string,
  options: WaitOptions = {},
): AsyncGenerator<RunState> {
  const { timeoutMs, signal, createdAtMs } = options
  checkRunId(id)
  // Written this way to reject NaN too, which would mean no limit.
  if (timeoutMs !== undefined && !(timeoutMs >= 0))
    throw usageError('timeoutMs must be a number of milliseconds, 0 or more.')
  signal?.throwIfAborted()
  const never = new AbortController().signal
  const countedFromMs = session.clock.monotonic()
  const events = carryOut(
    [{ name: id, begin: () => ({ is: 'follow', run: { id }, createdAtMs, countedFromMs }) }],
    {
      ...session,
      journal: undefined,
      policy: 'best effort',
      address: session.client.baseUrl,
      profile: '',
      interrupts: { first: signal ?? never, second: never },
      timeoutMs: timeoutMs === Number.POSITIVE_INFINITY ? undefined : timeoutMs,
      stopsCreates: () => true,
    },
  )
  for await (const event of events) {
    if (event.is === 'error') options.onTrouble?.(event.error)
    if (event.is === 'status' && event.state.withoutUrls === undefined) yield event.state
    if (event.is !== 'ended') continue
    const { result, run } = event
    if (result.is === 'running') {
      signal?.throwIfAborted()
      const message = stillRunning(id, timeoutMs ?? 0, false)
      throw result.error ?? new RushesError('wait_timeout', message, { runId: id })
    }
    if (result.is !== 'failed' || run.state?.phase === 'failed') return
    throw run.state?.withoutUrls === undefined ? result.error : withoutUrls(run.state)
  }
}
