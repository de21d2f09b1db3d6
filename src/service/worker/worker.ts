/**
 * Claims runs from the queue and renders up to `concurrency` runs at once. A create wakes the worker; a create in
 * another process wakes it if the database sends a notification. Once a second, the worker reaps expired workers and
 * checks the queue.
 *
 *   queued ──claim──▶ processing ──▶ succeeded
 *      ▲                  ├────────▶ canceled     a user; stopped by `canceled-runs.ts`
 *      │                  ├────────▶ failed       engine error, time limit, third crash, result not recordable
 *      └──────────────────┘ the service closes (not counted), the renderer crashes or the lease is lost (counted)
 */
import { rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { settlesWithin } from '../../host/abort.js'
import type { Clock, Disarm } from '../../host/clock.js'
import { removeFolder } from '../../host/own-folder.js'
import { isSystemError } from '../../host/system-error.js'
import {
  JobDetached,
  type JobHandle,
  RendererCrashed,
  RunCanceled,
  type StoredJob,
} from '../engines/engine.js'
import { type Log, silentLog } from '../log.js'
import type { Metrics } from '../metrics/index.js'
import type { ServedModel } from '../models/served-model.js'
import type { ReferenceLoader } from '../references/reference-loader.js'
import type { Claims, Store } from '../store/contract.js'
import type { StoredOutput, StoredRun } from '../stored-run.js'
import { createCanceledRuns } from './canceled-runs.js'
import { type RenderOptions, removeOutputs, render, withReferences } from './render.js'
import {
  crashLimitFor,
  createPersist,
  DeadlinePassed,
  failureOf,
  MAX_REFUSALS,
  NOT_RECORDED,
} from './run-failure.js'
import type { WorkerLease } from './worker-lease.js'

const REAP_INTERVAL_MS = 1_000
export const RENDER_DEADLINE_MS = 15 * 60_000
/** Time that `close` waits for aborted engines, for the storage and for the database. */
const CLOSE_GRACE_MS = 3_500

type QueuedRun = Pick<StoredRun, 'id' | 'model'>

export interface Worker {
  /** Starts to claim runs. With `requested`, claims only runs that were created or polled through this process. */
  start(claims?: Claims): void
  /** Returns the runs of expired workers to the queue. After `start`, this happens once a second. */
  reap(): Promise<void>
  /** Must be called after a run was queued. */
  wake(run: QueuedRun): void
  /** Must be called when a client polls a queued run. Matters only with `requested`. */
  request(run: QueuedRun): void
  /** Returns the progress, up to 1, of a run that this worker renders. */
  progressOf(id: string): number | undefined
  /** Returns the number of jobs before a run that this worker renders, in the queue of a server. */
  positionOf(id: string): number | undefined
  /** Must be called after a run was canceled. After `start`, this happens once a second. */
  stopCanceled(): void
  /** Aborts all renders; this does not count as a crash. Resolves within four seconds. */
  close(): Promise<void>
}

export interface WorkerOptions
  extends Omit<
    RenderOptions,
    'clock' | 'enterOutputs' | 'saveJob' | 'adoptJob' | 'onProgress' | 'onPosition'
  > {
  readonly references: ReferenceLoader
  readonly store: Pick<
    Store,
    | 'claimRun'
    | 'returnRuns'
    | 'saveJob'
    | 'adoptJob'
    | 'addOutputFiles'
    | 'finishRun'
    | 'failRun'
    | 'recordCrash'
    | 'onQueued'
    | 'findStopping'
    | 'settleCanceled'
  >
  readonly lease: WorkerLease
  readonly clock: Clock
  readonly concurrency: number
  readonly timeRender?: Metrics['timeRender'] | undefined
  /** Default: renders into files. */
  readonly renderRun?: typeof render
  readonly log?: Pick<Log, 'info' | 'debug'>
}

export function createWorker(options: WorkerOptions): Worker {
  const { store, lease, models, clock, concurrency, onError, log = silentLog, renderRun = render } = options
  const owner = lease.id
  const { timeRender = (_kind, rendering) => rendering } = options
  const persist = createPersist(clock, onError)
  const closing = new AbortController()
  const active = new Set<Promise<void>>()
  /** Ids and models of the only runs that are claimed with `requested`. */
  const requested = new Map<string, string>()
  /** Claimed runs that use a slot. */
  const rendering = new Set<StoredRun>()
  /** Ids of claimed runs whose end is not recorded. */
  const held = new Set<string>()
  const progressById = new Map<string, number>()
  const positionById = new Map<string, number>()
  let claims: Claims | undefined
  let claiming: Promise<void> | undefined
  let claimAgain = false
  /** Whether the next round first returns the runs of claims with a lost response to the queue. */
  let isReturnDue = false
  let disarm: Disarm = () => {}
  let stopListening = () => {}
  /** Aborts all renders when the lease is lost. Replaced at each loss, so that later renders are not aborted. */
  let tenure = new AbortController()
  const canceledRuns = createCanceledRuns({
    ...options,
    worker: lease.id,
    claimsEnded: () => claiming,
  })

  const remote = new Set(models.filter(({ isRemote }) => isRemote).map(({ document: { name } }) => name))

  /** Models that servers render have only their own slots, so that a server that is loading or down stops no other model. */
  function hasFreeSlot({ document: { name }, isRemote, concurrency: ofModel }: ServedModel): boolean {
    const runs = [...rendering]
    const limit = ofModel ?? (isRemote ? concurrency : Number.POSITIVE_INFINITY)
    const onNode = runs.filter(({ model }) => !remote.has(model)).length
    return runs.filter(({ model }) => model === name).length < limit && (isRemote || onNode < concurrency)
  }

  /** Names of the models whose runs may be claimed now. */
  const claimableModels = (): readonly string[] =>
    models.filter(hasFreeSlot).map(({ document: { name } }) => name)

  lease.onLost(async () => {
    tenure.abort(new JobDetached('The lease of this worker was lost.'))
    tenure = new AbortController()
    await Promise.all(active)
  })

  /**
   * Claims runs until all slots are in use. Only one round runs at a time; a call during a round starts another round.
   */
  function fillSlots(): void {
    if (claims === undefined || closing.signal.aborted) return
    if (!isReturnDue && claimableModels().length === 0) return
    claimAgain = true
    claiming ??= claimRuns()
      .catch(onError)
      .finally(() => {
        claiming = undefined
        if (claimAgain) fillSlots()
      })
  }

  function wake({ id, model }: QueuedRun): void {
    if (claims === 'requested') requested.set(id, model)
    if (claimableModels().includes(model)) fillSlots()
  }

  async function claimRuns(): Promise<void> {
    claimAgain = false
    await lease.acquire()
    if (isReturnDue) await store.returnRuns(lease.id, [...held])
    isReturnDue = false
    for (;;) {
      const claimable = claimableModels()
      if (claimable.length === 0 || closing.signal.aborted) return
      const asked = [...requested].flatMap(([id, model]) => (claimable.includes(model) ? id : []))
      const only = claims === 'requested' ? asked : undefined
      if (only?.length === 0) return
      const request = { worker: lease.id, nowMs: clock.now(), models: claimable, separate: [...remote], only }
      const run = await store.claimRun(request)
      if (run === undefined) {
        // None of these runs is in the queue.
        for (const id of only ?? []) requested.delete(id)
        return
      }
      requested.delete(run.id)
      rendering.add(run)
      held.add(run.id)
      const work = canceledRuns
        .hold(run.id, tenure.signal, (signal) => processRun(run, signal))
        .catch(onError)
        .finally(() => {
          rendering.delete(run)
          held.delete(run.id)
          progressById.delete(run.id)
          positionById.delete(run.id)
          active.delete(work)
          fillSlots()
        })
      active.add(work)
    }
  }

  async function processRun(run: StoredRun, signal: AbortSignal): Promise<void> {
    const limitMs = options.engine.limitMs?.(run.model) ?? RENDER_DEADLINE_MS
    const limit = { timeoutMs: limitMs, reason: () => new DeadlinePassed(limitMs), clock, signal }
    const startedAtMs = clock.monotonic()
    const fields = { run: run.id, kind: run.kind, model: run.model }
    log.info(fields, 'run started')
    const onProgress = (fraction: number) => {
      const last = progressById.get(run.id) ?? 0
      // Also skips a value that is not a number.
      if (!(fraction > last && fraction <= 1)) return
      progressById.set(run.id, fraction)
      const tens = Math.floor(fraction * 10)
      const about = { run: run.id, model: run.model, percent: tens * 10 }
      if (tens > Math.floor(last * 10)) log.debug(about, 'run progress')
    }
    const onPosition = (position: number) => void positionById.set(run.id, position)
    const enterOutputs = (outputs: readonly StoredOutput[]) =>
      persist(() => store.addOutputFiles(claimed(run), outputs), { maxRefusals: MAX_REFUSALS, signal }).catch(
        (error) => {
          signal.throwIfAborted()
          onError(error)
          throw new Error('The outputs of this run could not be recorded.')
        },
      )
    const saveJob = async (job: StoredJob) => {
      const save = () => store.saveJob(claimed(run), job)
      // After an abort, there is time for one try.
      const isSaved = await (signal.aborted ? save() : persist(save, { maxRefusals: MAX_REFUSALS, signal }))
      if (!isSaved) throw new JobDetached('Another worker has taken the run over.')
    }
    const adoptJob = async (handle: JobHandle) => {
      const adopt = () => store.adoptJob(claimed(run), handle)
      const adopted = await persist(adopt, { maxRefusals: MAX_REFUSALS, signal })
      if (adopted === 'taken') return false
      if (!adopted) throw new JobDetached('Another worker has taken the run over.')
      return true
    }
    try {
      // The stored input of this run is corrupt.
      if (run.failure !== undefined) throw new Error(run.failure.message)
      const outputs = await withReferences(run, options, signal, (references) =>
        timeRender(
          run.kind,
          renderRun(
            run,
            references,
            { ...options, enterOutputs, saveJob, adoptJob, onProgress, onPosition },
            limit,
          ),
        ),
      )
      if (await finish(run, outputs))
        log.info({ ...fields, ms: Math.round(clock.monotonic() - startedAtMs) }, 'run succeeded')
    } catch (error) {
      // After an abort there is no failure to record: the runs return to the queue when the lease is released, or
      // returned already when it was lost.
      if (!signal.aborted) await recordFailure(run, error)
      else if (signal.reason instanceof RunCanceled) log.info(fields, 'run canceled')
      else if (!closing.signal.aborted) log.info(fields, 'run left to another worker')
    }
  }

  const claimed = ({ id, startedAtMs }: StoredRun) => ({ id, owner, startedAtMs, nowMs: clock.now() })

  /**
   * Records how a run ended. After `MAX_REFUSALS` refusals, fails the run with `NOT_RECORDED`.
   * Returns undefined when the run no longer belongs to this worker.
   */
  async function record<Value>(
    run: StoredRun,
    write: () => Promise<Value>,
  ): Promise<Value | 'not_recorded' | undefined> {
    const { signal } = tenure
    try {
      return await persist(write, { maxRefusals: MAX_REFUSALS, signal: closing.signal })
    } catch (error) {
      closing.signal.throwIfAborted()
      onError(error)
    }
    // Until its end is recorded, which may take long, the run uses no slot.
    rendering.delete(run)
    fillSlots()
    const fail = () => store.failRun(claimed(run), NOT_RECORDED)
    if (!(await persist(fail, { maxRefusals: Number.POSITIVE_INFINITY, signal }))) return undefined
    log.info({ run: run.id, kind: run.kind, code: NOT_RECORDED.code }, 'run failed')
    return 'not_recorded'
  }

  /** Returns whether the run was recorded as succeeded. */
  async function finish(run: StoredRun, outputs: readonly StoredOutput[]): Promise<boolean> {
    const isRecorded = await record(run, () => store.finishRun(claimed(run), outputs))
    // False: the lease had expired, and another worker took over the run. The outputs of that worker are used.
    if (isRecorded === false || isRecorded === 'not_recorded') await removeOutputs(outputs, options.outputs)
    return isRecorded === true
  }

  async function recordFailure(run: StoredRun, error: unknown): Promise<void> {
    if (error instanceof RendererCrashed) {
      onError(error)
      await record(run, () => store.recordCrash(claimed(run), crashLimitFor(error)))
      return
    }
    const failure = failureOf(error)
    // Undefined: another worker has taken over the run and deleted its folder, which may have caused this error.
    const ended = await record(run, () => store.failRun(claimed(run), failure))
    if (ended === undefined || ended === 'not_recorded') return
    log.info({ run: run.id, kind: run.kind, code: failure.code }, 'run failed')
    if (isSystemError(error)) onError(error)
  }

  async function reapWorkers(): Promise<void> {
    isReturnDue = true
    const reaped = await lease.reapExpiredWorkers()
    fillSlots()
    for (const id of reaped) await removeFolder(join(dirname(options.workFolder), id)).catch(onError)
  }

  function keepReaping(): void {
    Promise.all([reapWorkers(), canceledRuns.stop()])
      .catch((error) => closing.signal.aborted || onError(error))
      .finally(() => {
        if (!closing.signal.aborted) disarm = clock.alarm(REAP_INTERVAL_MS, keepReaping)
      })
  }

  return {
    start(which = 'all') {
      if (claims !== undefined) return
      claims = which
      if (which === 'all') stopListening = store.onQueued?.(fillSlots) ?? stopListening
      keepReaping()
    },
    reap: reapWorkers,
    wake,
    stopCanceled: () => void (claims !== undefined && canceledRuns.stop().catch(onError)),
    request: (run) => claims === 'requested' && wake(run),
    progressOf: (id) => progressById.get(id),
    positionOf: (id) => positionById.get(id),
    async close() {
      closing.abort()
      tenure.abort(new JobDetached('The service stops.'))
      stopListening()
      disarm()
      const stopped = async () => {
        await claiming
        await Promise.all(active)
      }
      // Do not wait longer for a render that does not stop: after the lease is released, it cannot record anything.
      await settlesWithin(CLOSE_GRACE_MS, stopped(), clock)
      // Fails if a run could not remove its folder. Such a folder is logged, and a later start removes it.
      await rmdir(options.workFolder).catch(() => {})
    },
  }
}
