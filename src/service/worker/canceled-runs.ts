/**
 * Stops canceled runs: the render is aborted, the job at the provider canceled, and then the refund decided. Until then, the
 * run still counts as processing. The database tells the worker which runs to stop, so any node can cancel a run.
 */
import { settlesWithin } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { stepOf } from '../../host/retry.js'
import { type CancelEnd, type Engine, RunCanceled } from '../engines/engine.js'
import type { ServedModel } from '../models/served-model.js'
import type { Store } from '../store/index.js'
import type { CanceledEnd, StoppingRun } from '../store/run.js'

/** Time that the engine has for one try. */
const MAX_CANCEL_MS = 30_000
/** Pauses between the tries to cancel a job whose server does not confirm it, and their end. */
const CANCEL_STEPS_MS = [1_000, 2_000, 5_000, 10_000, 20_000]
const MAX_STOPPING_MS = 120_000
/** The same for a server that costs nothing. */
const MAX_FREE_STOPPING_MS = 10_000
/** Time after which a worker ends a run that no worker could stop, for example without the key of its provider. */
const ABANDONED_AFTER_MS = 3_600_000

interface CanceledRunsOptions {
  readonly store: Pick<Store, 'findStopping' | 'settleCanceled'>
  readonly clock: Clock
  readonly engine: Pick<Engine, 'cancel'>
  modelOf(run: StoppingRun): Promise<ServedModel | undefined>
  readonly worker: string
  /** Aborted when the worker stops: another one then decides on the runs that are left. */
  readonly closing: AbortSignal
  /** Resolves when the claims in progress have ended: a run can be canceled before the response to its claim arrives. */
  claimsEnded(): Promise<void> | undefined
  /** The runs that the worker renders. */
  readonly held: ReadonlyMap<string, { readonly stop: AbortController }>
  onError(error: unknown): void
}

/** The tries to stop one run. */
interface Tries {
  number: number
  nextAtMs: number
  isRunning: boolean
  /** A decision that could not be recorded, and the job that it is about. */
  decided?: { readonly end: CanceledEnd; readonly job: string }
}

/** Returns a function that aborts the renders of canceled runs, and settles the canceled runs that are not rendered. */
export function createStopCanceled(options: CanceledRunsOptions): () => Promise<void> {
  const { store, clock, worker, closing, claimsEnded, held } = options
  const triesOf = new Map<string, Tries>()

  async function settle(run: StoppingRun): Promise<void> {
    const tries = triesOf.get(run.id) ?? { number: 0, nextAtMs: 0, isRunning: false }
    triesOf.set(run.id, tries)
    if (tries.isRunning || clock.monotonic() < tries.nextAtMs) return
    tries.isRunning = true
    try {
      const job = JSON.stringify(run.stored ?? {})
      // A worker that still renders the run may have sent its create since the decision.
      const end = tries.decided?.job === job ? tries.decided.end : await decide(options, run)
      tries.nextAtMs = clock.monotonic() + stepOf(CANCEL_STEPS_MS, ++tries.number)
      if (end === undefined) return
      tries.decided = { end, job }
      await store.settleCanceled(run.id, end, clock.now(), run.stored)
      triesOf.delete(run.id)
    } catch (error) {
      tries.nextAtMs = 0
      if (!closing.aborted) options.onError(error)
    } finally {
      tries.isRunning = false
    }
  }

  return async () => {
    const runs = await store.findStopping(worker)
    for (const id of triesOf.keys()) if (!runs.some((run) => run.id === id)) triesOf.delete(id)
    if (runs.length > 0) await claimsEnded()
    for (const run of runs) {
      const rendering = held.get(run.id)
      if (rendering === undefined) void settle(run)
      else rendering.stop.abort(new RunCanceled())
    }
  }
}

/** Returns undefined while the job may continue. */
async function decide(options: CanceledRunsOptions, run: StoppingRun): Promise<CanceledEnd | undefined> {
  const { clock, modelOf } = options
  const model = await modelOf(run)
  const isWithin = (ms: number) => clock.now() - run.canceledAtMs < ms
  if (model === undefined || model.problem !== undefined)
    return isWithin(ABANDONED_AFTER_MS) ? undefined : 'unknown'
  const { handle, intent } = run.stored ?? {}
  const costs = model.mayCost || (handle ?? intent)?.place?.costs === true
  const end = await cancelJob(options, run)
  if (end === 'not canceled' && isWithin(costs ? MAX_STOPPING_MS : MAX_FREE_STOPPING_MS)) return undefined
  // Refund only if the provider definitely did not charge for it.
  if (!costs || end === 'not charged') return 'refunded'
  if (end === 'not canceled') return 'unknown'
  return end === 'succeeded' ? 'resumed' : 'kept'
}

/** Returns undefined if there is no job to cancel. */
async function cancelJob(
  { engine, clock, closing, onError }: CanceledRunsOptions,
  run: StoppingRun,
): Promise<CancelEnd | undefined> {
  const unanswered = run.stored?.handle === undefined ? undefined : 'not canceled'
  try {
    const canceling = engine.cancel?.(run)
    if (canceling === undefined) return unanswered
    if (await settlesWithin(MAX_CANCEL_MS, canceling, clock)) return (await canceling) ?? unanswered
  } catch (error) {
    closing.throwIfAborted()
    onError(error)
  }
  return 'not canceled'
}
