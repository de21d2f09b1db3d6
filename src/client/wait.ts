/** Waiting for a run: looks, at a pace, with patience, up to a limit. */
import { RushesError } from '../errors.js'
import type { RunState } from '../protocol/run.js'
import { type LookEngine, type LookOutcome, look } from './fetch-status.js'
import { FIRST_LOOK_MS, nextLookMs, nextTryMs } from './pace.js'
import { afterFailure, isExhausted, type Patience, UNTRIED } from './patience.js'

/** A replica may be behind for that long after the create. */
const REPLICA_LAG_MS = 10_000

export interface WaitOptions {
  /** Counted from `createdAtMs`, else from the start of the wait. Undefined: for ever. */
  readonly timeoutMs?: number | undefined
  /** Monotonic instant of the 201, when this process made the run. */
  readonly createdAtMs?: number | undefined
  readonly signal?: AbortSignal | undefined
  /** A look brought no good answer; the wait goes on. */
  onTrouble?(error: RushesError): void
}

export interface WaitEngine extends LookEngine {
  /** In [0, 1). */
  random(): number
}

/**
 * Every state that a look shows, ending with the final one. Throws the error that ended the wait: a `wait_timeout`
 * (the run goes on), a refusal, or the last trouble when patience is at its end.
 */
export async function* states(
  engine: WaitEngine,
  id: string,
  options: WaitOptions = {},
): AsyncGenerator<RunState> {
  const { clock } = engine
  const startedAtMs = options.createdAtMs ?? clock.monotonic()
  const limit = createLimit(engine, id, startedAtMs, options)
  let patience: Patience = UNTRIED
  let lastGoodMs = clock.monotonic()
  try {
    if (options.createdAtMs !== undefined)
      await limit.sleep(FIRST_LOOK_MS - (clock.monotonic() - startedAtMs))
    for (;;) {
      const outcome = excuseLag(await limit.look(), options.createdAtMs, clock.monotonic())
      if (outcome.kind === 'final') throw outcome.error
      if (outcome.kind === 'state') {
        patience = UNTRIED
        lastGoodMs = clock.monotonic()
        yield outcome.state
        if (outcome.state.phase !== 'going') return
        await limit.sleep(nextLookMs(engine.limiter.load(), engine.random()))
      } else {
        patience = afterFailure(patience, clock.monotonic() - lastGoodMs)
        lastGoodMs = clock.monotonic()
        if (isExhausted(patience)) throw gaveUp(outcome.error)
        options.onTrouble?.(outcome.error)
        await limit.sleep(nextTryMs(patience.failures, outcome.retryAfterMs))
      }
    }
  } finally {
    limit.end()
  }
}

/** A run that this process has just made may not be known everywhere yet. */
function excuseLag(outcome: LookOutcome, createdAtMs: number | undefined, nowMs: number): LookOutcome {
  const lagging =
    outcome.kind === 'final' &&
    outcome.error.httpStatus === 404 &&
    createdAtMs !== undefined &&
    nowMs - createdAtMs < REPLICA_LAG_MS
  return lagging ? { kind: 'trouble', error: outcome.error, retryAfterMs: 0 } : outcome
}

const gaveUp = (error: RushesError): RushesError =>
  error.with({ consequence: 'No good answer for two minutes.' })

const spoken = (durationMs: number): string =>
  durationMs < 1_000 ? `${Math.round(durationMs)} ms` : `${Math.round(durationMs / 1_000)} s`

/** The wait limit, held over sleeps and looks alike: a look that hangs does not stretch it. */
function createLimit(
  engine: WaitEngine,
  id: string,
  startedAtMs: number,
  { timeoutMs, signal }: WaitOptions,
) {
  const { clock } = engine
  const passed = new AbortController()
  const timeout = new RushesError(
    'wait_timeout',
    `The wait limit of ${spoken(timeoutMs ?? 0)} has passed; the run goes on.`,
    { runId: id },
  )
  const leftMs =
    timeoutMs === undefined ? undefined : Math.max(0, timeoutMs - (clock.monotonic() - startedAtMs))
  const disarm = leftMs === undefined ? () => {} : clock.alarm(leftMs, () => passed.abort(timeout))
  const both = signal === undefined ? passed.signal : AbortSignal.any([signal, passed.signal])
  return {
    look: () => look(engine, id, both),
    sleep: (ms: number) => clock.sleep(Math.max(0, ms), both),
    end: disarm,
  }
}

/** The final state, whether good or bad. Throws as `states` does. */
export async function wait(engine: WaitEngine, id: string, options?: WaitOptions): Promise<RunState> {
  let last: RunState | undefined
  for await (const state of states(engine, id, options)) last = state
  if (last === undefined) throw new Error('a wait ended without a state')
  return last
}
