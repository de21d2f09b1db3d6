/** Watching a run that exists, to its final status. What goes wrong becomes part of what was seen. */
import { RushesError } from '../../errors.js'
import type { RunState } from '../../protocol/run.js'
import { shortened } from '../../protocol/text.js'
import { asRushesError, interrupted } from '../process/exit.js'
import { Interruption } from '../process/interrupts.js'
import type { Following, Known } from './follow.js'

export interface Watched {
  readonly known: Known
  readonly state: RunState | undefined
  readonly error: RushesError | undefined
  readonly finishedAt: string | undefined
  readonly elapsedMs: number | undefined
}

/** To the final status, or to what ended the wait. Never rejects. */
export async function watch(following: Following, known: Known): Promise<Watched> {
  const { clock, recorder } = following
  let state: RunState | undefined
  try {
    let going: RunState | undefined
    for await (state of statesOf(following, known)) {
      following.onState(known.id, state)
      if (state.phase !== 'going') break
      if (state.status !== going?.status) recorder.saw({ state })
      going = state
    }
    const elapsedMs = elapsedOf(following, known)
    if (state !== undefined && state.phase !== 'going')
      recorder.saw({ state, elapsedMs, tookMs: tookOf(state, elapsedMs, known, going) })
    return {
      known,
      state,
      error: state?.phase === 'failed' ? runFailed(state) : undefined,
      finishedAt: new Date(clock.now()).toISOString(),
      elapsedMs,
    }
  } catch (thrown) {
    const error = withWayBack(thrown, known.id, following)
    if (error.code === 'run_not_found') recorder.missed(error, known.id)
    return { known, state, error, finishedAt: undefined, elapsedMs: undefined }
  }
}

/** Every state up to the final one, or the one state that a single look shows. */
async function* statesOf({ client, delivery, interrupts, onTrouble }: Following, known: Known) {
  const { id, answeredAtMs: createdAtMs } = known
  const { patience } = delivery
  if (known.state !== undefined) return void (yield known.state)
  if (patience !== 'once') {
    const options = { timeoutMs: patience, createdAtMs, signal: interrupts.first }
    yield* client.states(id, { ...options, onTrouble: (error) => onTrouble(id, error) })
    return
  }
  const state = await client.get(id, interrupts.first)
  yield state
  if (state.phase === 'going')
    throw new RushesError(
      'wait_timeout',
      `The run is not finished (${state.status}); nothing was downloaded.`,
      {
        runId: id,
      },
    )
}

const elapsedOf = ({ clock }: Following, { sentAtMs, createdAt, elapsedMs }: Known): number | undefined => {
  if (elapsedMs !== undefined) return elapsedMs
  if (sentAtMs !== undefined) return clock.monotonic() - sentAtMs
  return createdAt === undefined ? undefined : Math.max(0, clock.now() - Date.parse(createdAt))
}

/** How long the run took: only who has seen it going knows when it ended, unless the service says so. */
function tookOf(
  { createdAt, finishedAt }: RunState,
  elapsedMs: number | undefined,
  { sentAtMs }: Known,
  going: RunState | undefined,
): number | undefined {
  if (createdAt !== undefined && finishedAt !== undefined)
    return Math.max(0, Date.parse(finishedAt) - Date.parse(createdAt))
  return going !== undefined || sentAtMs !== undefined ? elapsedMs : undefined
}

export const runFailed = (state: RunState): RushesError =>
  new RushesError(
    'run_failed',
    `The run ended as ${state.status}: ${state.failure === undefined ? 'the service gives no reason.' : shortened(state.failure, 2_000)}`,
    {
      runId: state.id,
      hint: 'Nothing was downloaded. Whether it was charged is in the account.',
    },
  )

/** The run goes on without us: every message says how to come back to it. */
function withWayBack(thrown: unknown, id: string, { resume }: Following): RushesError {
  const pickUp = `Pick it up with: ${resume(id, 'wait')}`
  if (thrown instanceof Interruption)
    return interrupted(thrown, 'Interrupted; the run goes on.', pickUp).with({ runId: id })
  const error = asRushesError(thrown)
  const isOver = error.httpStatus === 404
  const hint = [error.hint, ...(isOver ? [] : [pickUp])].filter((each) => each !== undefined).join(' ')
  return error.with({ hint: hint === '' ? undefined : hint, runId: id })
}
