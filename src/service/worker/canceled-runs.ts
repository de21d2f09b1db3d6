/**
 * Stops canceled runs. Their status is final already, but the render must be aborted, the job at the provider canceled,
 * and the refund decided. The database tells the worker which runs to stop, so any node can cancel a run.
 */
import { onAbort, settlesWithin } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { type Charge, type Engine, RunCanceled, type StoredJob } from '../engines/engine.js'
import type { ServedModel } from '../models/served-model.js'
import type { StoppingRun } from '../store/contract.js'
import type { RunQueue } from '../store/index.js'

/** Time that the engine has to cancel a job. After it, the charge counts as unknown. */
const MAX_CANCEL_MS = 30_000
/** Time after which a worker ends a run that no worker could stop, for example without the key of its provider. */
const ABANDONED_AFTER_MS = 3_600_000

export interface CanceledRunsOptions {
  readonly store: Pick<RunQueue, 'findStopping' | 'settleCanceled'>
  readonly clock: Clock
  readonly engine: Pick<Engine, 'cancel'>
  modelOf(run: StoppingRun): Promise<ServedModel | undefined>
  readonly worker: string
  /** Aborted when the worker stops: another one then decides on the runs that are left. */
  readonly closing: AbortSignal
  /** Resolves when the claims in progress have ended: a run can be canceled before the response to its claim arrives. */
  claimsEnded(): Promise<void> | undefined
  onError(error: unknown): void
}

export interface CanceledRuns {
  /** Runs `work` with a signal that is aborted with `RunCanceled` when the run is canceled, or with `signal`. */
  hold<Value>(id: string, signal: AbortSignal, work: (signal: AbortSignal) => Promise<Value>): Promise<Value>
  /** Aborts the held runs that were canceled, and settles the others. */
  stop(): Promise<void>
}

interface Decision {
  readonly charge: Charge | undefined
  readonly stored: StoredJob | undefined
}

export function createCanceledRuns(options: CanceledRunsOptions): CanceledRuns {
  const { store, clock, engine, modelOf, worker, closing, claimsEnded } = options
  const onError = (error: unknown) => void (closing.aborted || options.onError(error))
  const held = new Map<string, AbortController>()
  const settling = new Set<string>()
  /** Decisions that are not recorded yet, with the jobs that they are about. The engine knows a charge only once. */
  const decisions = new Map<string, Decision>()

  async function chargeOf(run: StoppingRun): Promise<Charge | undefined> {
    try {
      const canceling = engine.cancel?.(run)
      if (canceling === undefined || (await settlesWithin(MAX_CANCEL_MS, canceling, clock)))
        return await canceling
    } catch (error) {
      closing.throwIfAborted()
      onError(error)
    }
    return 'unknown'
  }

  /** Refunds the run only if the provider certainly did not charge for it. */
  async function settle(run: StoppingRun): Promise<void> {
    if (settling.has(run.id)) return
    settling.add(run.id)
    try {
      const found = await modelOf(run)
      const model = found?.problem === undefined ? found : undefined
      if (model === undefined && clock.now() - run.canceledAtMs < ABANDONED_AFTER_MS) return
      const before = decisions.get(run.id)
      // A worker that still renders the run may have sent it since.
      const isValid =
        before !== undefined &&
        (before.charge !== 'not charged' || JSON.stringify(before.stored) === JSON.stringify(run.stored))
      if (model !== undefined && !isValid)
        decisions.set(run.id, { charge: await chargeOf(run), stored: run.stored })
      const { charge, stored = run.stored } = decisions.get(run.id) ?? {}
      const isFree = !model?.mayCost || charge === 'not charged'
      await store.settleCanceled(run.id, model && isFree, clock.now(), stored)
      decisions.delete(run.id)
    } finally {
      settling.delete(run.id)
    }
  }

  async function stop(): Promise<void> {
    const runs = await store.findStopping(worker)
    if (runs.length > 0) await claimsEnded()
    for (const run of runs) {
      const controller = held.get(run.id)
      if (controller === undefined) settle(run).catch(onError)
      else controller.abort(new RunCanceled())
    }
  }

  return {
    stop,
    async hold(id, signal, work) {
      const controller = new AbortController()
      const forget = onAbort(signal, () => controller.abort(signal.reason))
      held.set(id, controller)
      try {
        return await work(controller.signal)
      } finally {
        forget()
        held.delete(id)
        if (controller.signal.reason instanceof RunCanceled) stop().catch(onError)
      }
    },
  }
}
