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
import type { Disarm } from '../../host/clock.js'
import { removeFolder } from '../../host/own-folder.js'
import { retryErrors, stepOf } from '../../host/retry.js'
import { describeReason, isSystemError } from '../../host/system-error.js'
import { JobDetached, RendererCrashed, RunCanceled, STOP_GRACE_MS } from '../engines/engine.js'
import { StorageUnavailable } from '../files/contract.js'
import { isDiskUnusable, type Log, silentLog } from '../log.js'
import type { Metrics } from '../metrics/index.js'
import type { ServedModel } from '../models/served-model.js'
import type { ReferenceLoader } from '../references/reference-loader.js'
import type { Claims, RunQueue } from '../store/contract.js'
import type { RenderState, StoredOutput, StoredRun } from '../stored-run.js'
import { type CanceledRuns, createCanceledRuns } from './canceled-runs.js'
import { type RenderParts, type RenderRecorders, removeOutputs, render, withReferences } from './render.js'
import {
  crashLimitFor,
  createPersist,
  DeadlinePassed,
  failureOf,
  MAX_REFUSALS,
  NOT_RECORDED,
  type Persist,
} from './run-failure.js'
import type { WorkerLease } from './worker-lease.js'

const REAP_INTERVAL_MS = 1_000
export const RENDER_DEADLINE_MS = 15 * 60_000
/** Time that `close` waits for engines, storage and database, after the time for answers to creates. */
const CLOSE_GRACE_MS = 1_000

/** Pauses between the tries to store a result on a disk that is full or damaged. */
const DISK_STEPS_MS = [1_000, 2_000, 5_000, 10_000, 30_000, 60_000]

/** A claimed run with the job that this worker has stored for it. */
type HeldRun = { -readonly [Name in keyof StoredRun]: StoredRun[Name] }

interface QueuedRun {
  readonly id: string
  readonly model: string
}

export interface Worker {
  /** Starts to claim runs. With `requested`, claims only runs that were created or polled through this process. */
  start(claims?: Claims): void
  /** Returns the runs of expired workers to the queue. After `start`, this happens once a second. */
  reap(): Promise<void>
  /** Must be called after a run was queued. */
  wake(run: QueuedRun): void
  /** Must be called when a client polls a queued run. Matters only with `requested`. */
  request(run: QueuedRun): void
  /** Returns the progress of a run that this worker renders, if its engine reports any. */
  renderStateOf(id: string): RenderState | undefined
  /** Must be called after a run was canceled. After `start`, this happens once a second. */
  stopCanceled(): void
  /** Aborts all renders; this does not count as a crash. Resolves at most one second after the grace. */
  close(grace?: CreateGrace): Promise<void>
}

/** What creates in flight at a provider get when the worker stops. */
export interface CreateGrace {
  /** Time for the answers. Default: 2.5 s. */
  readonly graceMs?: number | undefined
  /** Called once if a create has no answer yet. */
  onGrace?(): void
}

export interface WorkerOptions extends RenderParts {
  readonly references: ReferenceLoader
  readonly store: RunQueue
  readonly lease: WorkerLease
  readonly concurrency: number
  readonly timeRender?: Metrics['timeRender'] | undefined
  /** Default: renders into files. */
  readonly renderRun?: typeof render
  readonly log?: Log
}

interface WorkerState {
  readonly options: WorkerOptions
  readonly log: Log
  readonly renderRun: typeof render
  readonly timeRender: Metrics['timeRender']
  readonly persist: Persist
  readonly canceledRuns: CanceledRuns
  /** Names of the models that servers render. */
  readonly remote: ReadonlySet<string>
  readonly closing: AbortController
  readonly active: Set<Promise<void>>
  /** Ids and models of the only runs that are claimed with `requested`. */
  readonly requested: Map<string, string>
  /** Claimed runs that use a slot. */
  readonly rendering: Set<HeldRun>
  /** Ids of claimed runs whose end is not recorded. */
  readonly held: Set<string>
  readonly renderStates: Map<string, RenderState>
  claims: Claims | undefined
  claiming: Promise<void> | undefined
  claimAgain: boolean
  /** Whether the next round first returns the runs of claims with a lost response to the queue. */
  isReturnDue: boolean
  disarm: Disarm
  stopListening: () => void
  /** Aborts all renders when the lease is lost. Replaced at each loss, so that later renders are not aborted. */
  tenure: AbortController
}

export function createWorker(options: WorkerOptions): Worker {
  const state = createState(options)
  const { canceledRuns, closing } = state
  const { store, lease, clock, onError } = options
  lease.onLost(async () => {
    state.tenure.abort(new JobDetached('The lease of this worker was lost.'))
    state.tenure = new AbortController()
    await Promise.all(state.active)
  })
  return {
    start(which = 'all') {
      if (state.claims !== undefined) return
      state.claims = which
      if (which === 'all')
        state.stopListening = store.onQueued?.(() => fillSlots(state)) ?? state.stopListening
      keepReaping(state)
    },
    reap: () => reapWorkers(state),
    wake: (run) => wake(state, run),
    stopCanceled: () => void (state.claims !== undefined && canceledRuns.stop().catch(onError)),
    request: (run) => state.claims === 'requested' && wake(state, run),
    renderStateOf: (id) => state.renderStates.get(id),
    async close({ graceMs = STOP_GRACE_MS, onGrace } = {}) {
      closing.abort()
      if ([...state.rendering].some(({ job }) => job?.intent && !job.handle)) onGrace?.()
      state.tenure.abort(new JobDetached('The service stops.', graceMs))
      state.stopListening()
      state.disarm()
      const stopped = async () => {
        await state.claiming
        await Promise.all(state.active)
      }
      // Do not wait longer for a render that does not stop: after the lease is released, it cannot record anything.
      await settlesWithin(graceMs + CLOSE_GRACE_MS, stopped(), clock)
      // Fails if a run could not remove its folder. Such a folder is logged, and a later start removes it.
      await rmdir(options.workFolder).catch(() => {})
    },
  }
}

function createState(options: WorkerOptions): WorkerState {
  const { clock, onError, lease, models, log = silentLog, renderRun = render } = options
  const { timeRender = (_kind, rendering) => rendering } = options
  const closing = new AbortController()
  const state: WorkerState = {
    options,
    log,
    renderRun,
    timeRender,
    persist: createPersist(clock, onError),
    canceledRuns: createCanceledRuns({
      ...options,
      worker: lease.id,
      closing: closing.signal,
      claimsEnded: () => state.claiming,
    }),
    remote: new Set(models.filter(({ isRemote }) => isRemote).map(({ document: { name } }) => name)),
    closing,
    active: new Set(),
    requested: new Map(),
    rendering: new Set(),
    held: new Set(),
    renderStates: new Map(),
    claims: undefined,
    claiming: undefined,
    claimAgain: false,
    isReturnDue: false,
    disarm: () => {},
    stopListening: () => {},
    tenure: new AbortController(),
  }
  return state
}

/** Names of the models whose runs may be claimed now. Runs of a model with a problem stay in the queue. */
const claimableModels = (state: WorkerState): readonly string[] =>
  state.options.models
    .filter((model) => model.problem === undefined && hasFreeSlot(state, model))
    .map(({ document: { name } }) => name)

/** Models that servers render have only their own slots, so that a server that is loading or down stops no other model. */
function hasFreeSlot(
  { rendering, remote, options: { concurrency } }: WorkerState,
  { document: { name }, isRemote, concurrency: ofModel }: ServedModel,
): boolean {
  const runs = [...rendering]
  const limit = ofModel ?? (isRemote ? concurrency : Number.POSITIVE_INFINITY)
  const onNode = runs.filter(({ model }) => !remote.has(model)).length
  return runs.filter(({ model }) => model === name).length < limit && (isRemote || onNode < concurrency)
}

/**
 * Claims runs until all slots are in use. Only one round runs at a time; a call during a round starts another round.
 */
function fillSlots(state: WorkerState): void {
  if (state.claims === undefined || state.closing.signal.aborted) return
  if (!state.isReturnDue && claimableModels(state).length === 0) return
  state.claimAgain = true
  state.claiming ??= claimRuns(state)
    .catch(state.options.onError)
    .finally(() => {
      state.claiming = undefined
      if (state.claimAgain) fillSlots(state)
    })
}

function wake(state: WorkerState, { id, model }: QueuedRun): void {
  if (state.claims === 'requested') state.requested.set(id, model)
  if (claimableModels(state).includes(model)) fillSlots(state)
}

async function claimRuns(state: WorkerState): Promise<void> {
  const { store, lease, clock } = state.options
  const { requested, remote } = state
  state.claimAgain = false
  await lease.acquire()
  if (state.isReturnDue) await store.returnRuns(lease.id, [...state.held])
  state.isReturnDue = false
  for (;;) {
    const claimable = claimableModels(state)
    if (claimable.length === 0 || state.closing.signal.aborted) return
    const asked = [...requested].flatMap(([id, model]) => (claimable.includes(model) ? id : []))
    const only = state.claims === 'requested' ? asked : undefined
    if (only?.length === 0) return
    const request = { worker: lease.id, nowMs: clock.now(), models: claimable, separate: [...remote], only }
    const run = await store.claimRun(request)
    if (run === undefined) {
      // None of these runs is in the queue.
      for (const id of only ?? []) requested.delete(id)
      return
    }
    requested.delete(run.id)
    begin(state, run)
  }
}

/** Renders a claimed run in the background, and then fills its slot. */
function begin(state: WorkerState, claimedRun: StoredRun): void {
  const { rendering, held, active } = state
  const run: HeldRun = { ...claimedRun }
  rendering.add(run)
  held.add(run.id)
  const work = state.canceledRuns
    .hold(run.id, state.tenure.signal, (signal) => processRun(state, run, signal))
    // When the service closes, a failure that could not be recorded is no error: the run returns to the queue.
    .catch((error) => {
      if (error !== state.closing.signal.reason) state.options.onError(error)
    })
    .finally(() => {
      rendering.delete(run)
      held.delete(run.id)
      state.renderStates.delete(run.id)
      active.delete(work)
      fillSlots(state)
    })
  active.add(work)
}

async function processRun(state: WorkerState, run: HeldRun, signal: AbortSignal): Promise<void> {
  const { options, log, timeRender, renderRun, closing } = state
  const { clock } = options
  const limitMs = options.engine.limitMs?.(run.model) ?? RENDER_DEADLINE_MS
  const limit = { timeoutMs: limitMs, reason: () => new DeadlinePassed(limitMs), clock, signal }
  const startedAtMs = clock.monotonic()
  const fields = { run: run.id, kind: run.kind, model: run.model }
  log.info(fields, 'run started')
  try {
    // The stored input of this run is corrupt.
    if (run.failure !== undefined) throw new Error(run.failure.message)
    const attempt = () =>
      withReferences(run, options, signal, (references) =>
        timeRender(
          run.kind,
          renderRun(run, references, { ...options, ...recordersOf(state, run, signal) }, limit),
        ),
      )
    // The server still has the result of its job, which may have been paid for.
    const outputs = await retryErrors(attempt, {
      pauseMs: (error, number) =>
        run.job?.handle !== undefined && isDiskUnusable(error) ? stepOf(DISK_STEPS_MS, number) : undefined,
      onRetry: (error) => options.onError(unstored(run, error)),
      clock,
      signal,
    })
    if (await finish(state, run, outputs))
      log.info({ ...fields, ms: Math.round(clock.monotonic() - startedAtMs) }, 'run succeeded')
  } catch (error) {
    // After an abort, no failure is recorded: the runs return to the queue when the lease is released, or
    // returned already when it was lost.
    if (!signal.aborted) await recordFailure(state, run, error)
    else if (signal.reason instanceof RunCanceled) log.info(fields, 'run canceled')
    else if (!closing.signal.aborted) log.info(fields, 'run left to another worker')
  }
}

const unstored = ({ id }: HeldRun, error: unknown): StorageUnavailable =>
  new StorageUnavailable(`The result of ${id} cannot be stored: ${describeReason(error)}. Trying again.`, {
    cause: error,
  })

/** What a render tells and stores before its run has ended. */
function recordersOf(state: WorkerState, run: HeldRun, signal: AbortSignal): RenderRecorders {
  const { persist, options } = state
  const { store, onError } = options
  return {
    onProgress: (fraction) => noteProgress(state, run, fraction),
    onPosition: (position) =>
      void state.renderStates.set(run.id, { ...state.renderStates.get(run.id), queue_position: position }),
    enterOutputs: (outputs) =>
      persist(() => store.addOutputFiles(claimed(state, run), outputs), {
        maxRefusals: MAX_REFUSALS,
        signal,
      }).catch((error) => {
        signal.throwIfAborted()
        onError(error)
        throw new Error('The outputs of this run could not be recorded.')
      }),
    async saveJob(job) {
      const save = () => store.saveJob(claimed(state, run), job)
      // After an abort, there is time for one try.
      const isSaved = await (signal.aborted ? save() : persist(save, { maxRefusals: MAX_REFUSALS, signal }))
      if (!isSaved) throw new JobDetached('Another worker has taken the run over.')
      run.job = job
    },
    async adoptJob(handle) {
      const adopt = () => store.adoptJob(claimed(state, run), handle)
      const adopted = await persist(adopt, { maxRefusals: MAX_REFUSALS, signal })
      if (adopted === 'taken') return false
      if (!adopted) throw new JobDetached('Another worker has taken the run over.')
      run.job = { ...run.job, handle }
      return true
    },
  }
}

function noteProgress({ renderStates, log }: WorkerState, run: StoredRun, fraction: number): void {
  const last = renderStates.get(run.id)?.progress ?? 0
  // Also skips a value that is not a number.
  if (!(fraction > last && fraction <= 1)) return
  renderStates.set(run.id, { ...renderStates.get(run.id), progress: fraction })
  const tens = Math.floor(fraction * 10)
  const about = { run: run.id, model: run.model, percent: tens * 10 }
  if (tens > Math.floor(last * 10)) log.debug(about, 'run progress')
}

const claimed = ({ options: { lease, clock } }: WorkerState, { id, startedAtMs }: StoredRun) => ({
  ...{ id, startedAtMs, owner: lease.id, nowMs: clock.now() },
})

/**
 * Records how a run ended. After `MAX_REFUSALS` refusals, fails the run with `NOT_RECORDED`.
 * Returns undefined when the run no longer belongs to this worker.
 */
async function record<Value>(
  state: WorkerState,
  run: StoredRun,
  write: () => Promise<Value>,
): Promise<Value | 'not_recorded' | undefined> {
  const { persist, closing, options } = state
  const { signal } = state.tenure
  try {
    return await persist(write, { maxRefusals: MAX_REFUSALS, signal: closing.signal })
  } catch (error) {
    closing.signal.throwIfAborted()
    options.onError(error)
  }
  // Until its end is recorded, which may take long, the run uses no slot.
  state.rendering.delete(run)
  fillSlots(state)
  const fail = () => options.store.failRun(claimed(state, run), NOT_RECORDED)
  if (!(await persist(fail, { maxRefusals: Number.POSITIVE_INFINITY, signal }))) return undefined
  state.log.info({ run: run.id, kind: run.kind, code: NOT_RECORDED.code }, 'run failed')
  return 'not_recorded'
}

/** Returns whether the run was recorded as succeeded. */
async function finish(
  state: WorkerState,
  run: StoredRun,
  outputs: readonly StoredOutput[],
): Promise<boolean> {
  const { store, outputs: files } = state.options
  const isRecorded = await record(state, run, () => store.finishRun(claimed(state, run), outputs))
  // False: the lease had expired, and another worker took over the run. The outputs of that worker are used.
  if (isRecorded === false || isRecorded === 'not_recorded') await removeOutputs(outputs, files)
  return isRecorded === true
}

async function recordFailure(state: WorkerState, run: StoredRun, error: unknown): Promise<void> {
  const { store, onError } = state.options
  if (error instanceof RendererCrashed) {
    onError(error)
    await record(state, run, () => store.recordCrash(claimed(state, run), crashLimitFor(error)))
    return
  }
  const failure = failureOf(error)
  // Undefined: another worker has taken over the run and deleted its folder, which may have caused this error.
  const ended = await record(state, run, () => store.failRun(claimed(state, run), failure))
  if (ended === undefined || ended === 'not_recorded') return
  state.log.info({ run: run.id, kind: run.kind, code: failure.code }, 'run failed')
  if (isSystemError(error)) onError(error)
}

async function reapWorkers(state: WorkerState): Promise<void> {
  const { lease, workFolder, onError } = state.options
  state.isReturnDue = true
  const reaped = await lease.reapExpiredWorkers()
  fillSlots(state)
  for (const id of reaped) await removeFolder(join(dirname(workFolder), id)).catch(onError)
}

function keepReaping(state: WorkerState): void {
  const { clock, onError } = state.options
  const { signal } = state.closing
  Promise.all([reapWorkers(state), state.canceledRuns.stop()])
    .catch((error) => signal.aborted || onError(error))
    .finally(() => {
      if (!signal.aborted) state.disarm = clock.alarm(REAP_INTERVAL_MS, () => keepReaping(state))
    })
}
