/**
 * Claims runs from the queue and renders up to `concurrency` runs at once. A worker has a run by a lease in its row: 15 s by
 * the database's clock, renewed every 5 s. Twice a second, it takes back runs whose lease ran out, and asks for work.
 *
 *   queued ──claim──▶ processing ──▶ succeeded
 *      ▲                  ├────────▶ canceled     a user; stopped by `canceled-runs.ts`
 *      │                  ├────────▶ failed       engine error, time limit, third crash, result not recordable
 *      └──────────────────┘ the service closes (not counted), the renderer crashes or the lease runs out (counted)
 */
import { rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { settlesWithin } from '../../host/abort.js'
import type { Disarm } from '../../host/clock.js'
import { retryErrors, stepOf } from '../../host/retry.js'
import { describeReason, isSystemError } from '../../host/system-error.js'
import type { Kind } from '../../protocol/models.js'
import {
  type CanceledJob,
  JobDetached,
  type JobIntent,
  RendererCrashed,
  RunCanceled,
  STOP_GRACE_MS,
} from '../engines/engine.js'
import { StorageUnavailable } from '../files/contract.js'
import type { ServedModel } from '../models/served-model.js'
import type { ReferenceLoader } from '../references/reference-loader.js'
import { newWorkerId } from '../rules/secrets.js'
import type { Store } from '../store/index.js'
import { MIN_CREATE_LEASE_MS } from '../store/queue.js'
import type { ClaimedRun, Claims, HeldRun, RenderState, StoredOutput } from '../store/run.js'
import { type CanceledRuns, createCanceledRuns } from './canceled-runs.js'
import { isDiskUnusable, type Log, silentLog } from './log.js'
import { type RenderParts, type RenderRecorders, removeOutputs, render, withReferences } from './render.js'
import {
  CRASH_LIMIT,
  crashLimitFor,
  createPersist,
  DeadlinePassed,
  failureOf,
  MAX_REFUSALS,
  NOT_RECORDED,
  type Persist,
} from './run-failure.js'

const POLL_MS = 500
/** A third of a lease. */
const RENEW_MS = 5_000
/** Later than this, the worker was late: its process or the database stood still. */
const MAX_RENEWAL_MS = RENEW_MS + 1_000
export const RENDER_DEADLINE_MS = 15 * 60_000
/** Time that `close` waits for engines, storage and database, after the time for answers to creates. */
const CLOSE_GRACE_MS = 1_000
/** Time that `close` waits for the answer to a create. */
export const CREATE_GRACE_MS = 10_000

/** Pauses between the tries to store a result on a disk that is full or damaged. */
const DISK_STEPS_MS = [1_000, 2_000, 5_000, 10_000, 30_000, 60_000]

interface QueuedRun {
  readonly id: string
  readonly model: string
}

export interface Worker {
  readonly id: string
  /** Starts to claim runs. With `requested`, claims only runs that were created or polled through this process. */
  start(claims?: Claims): void
  /** Must be called after a run was queued. */
  wake(run: QueuedRun): void
  /** Must be called when a client polls a queued run. Matters only with `requested`. */
  request(run: QueuedRun): void
  /** Returns the progress of a run that this worker renders, if its engine reports any. */
  renderStateOf(id: string): RenderState | undefined
  /** Must be called after a run was canceled. After `start`, this happens twice a second. */
  stopCanceled(): void
  /** Aborts all renders, and returns their runs to the queue; this does not count as a crash. */
  close(grace?: CreateGrace): Promise<void>
}

/** What creates in flight at a provider get when the worker stops. */
export interface CreateGrace {
  /** Time for the answers. Default: 10 s. */
  readonly graceMs?: number | undefined
  /** Called once if a create has no answer yet. */
  onGrace?(): void
}

export interface WorkerOptions extends RenderParts {
  /** The models that the engine renders. */
  readonly models: readonly ServedModel[]
  /** Returns the model that a run carries. Undefined: runs have the `models` of their names. */
  readonly modelOf?:
    | ((run: Pick<CanceledJob, 'model' | 'document'>) => Promise<ServedModel | undefined>)
    | undefined
  readonly references: ReferenceLoader
  readonly store: Store
  readonly concurrency: number
  /** Measures the render of one run. */
  /** Called once for each model whose runs this node cannot render. */
  readonly onUnserved?: ((message: string) => void) | undefined
  readonly timeRender?: (<Value>(kind: Kind, render: Promise<Value>) => Promise<Value>) | undefined
  /** Default: renders into files. */
  readonly renderRun?: typeof render
  readonly log?: Log
}

/** A claimed run. `lost`: aborted when it no longer belongs to this worker. */
interface Attempt {
  readonly run: HeldRun
  /** Of its model. */
  isRemote: boolean
  readonly lost: AbortController
  /** Whether it still uses a slot. Not while its end cannot be recorded. */
  hasSlot: boolean
  /** Whether its end is being recorded, so that a renewal may not find it. */
  isEnding: boolean
}

class WorkerState {
  readonly id = newWorkerId()
  readonly options: WorkerOptions
  readonly log: Log
  readonly persist: Persist
  readonly canceledRuns: CanceledRuns
  readonly closing = new AbortController()
  readonly active = new Set<Promise<void>>()
  /** Ids and models of the only runs that are claimed with `requested`. */
  readonly requested = new Map<string, string>()
  readonly held = new Map<string, Attempt>()
  readonly renderStates = new Map<string, RenderState>()
  /** Models that this node does not have, and that queued runs carry. By name, as the first run in the queue has it. */
  others: ReadonlyMap<string, ServedModel> = new Map()
  readonly reported = new Set<string>()
  claims: Claims | undefined
  claiming: Promise<void> | undefined
  claimAgain = false
  disarmPoll: Disarm = () => {}
  disarmRenewal: Disarm = () => {}
  renewedAtMs: number
  /** Who was late itself, or has just started, takes no run of others back before this time. */
  judgesFromMs: number

  constructor(options: WorkerOptions) {
    const { clock, onError, log = silentLog } = options
    this.options = { ...options, workFolder: join(options.workFolder, this.id) }
    this.log = log
    this.persist = createPersist(clock, onError)
    this.canceledRuns = createCanceledRuns({
      ...options,
      modelOf: (run) => modelOf(this, run),
      worker: this.id,
      closing: this.closing.signal,
      claimsEnded: () => this.claiming,
    })
    this.renewedAtMs = clock.monotonic()
    this.judgesFromMs = clock.monotonic() + RENEW_MS
  }
}

export function createWorker(options: WorkerOptions): Worker {
  const state = new WorkerState(options)
  const { canceledRuns, closing } = state
  const { onError } = options
  return {
    id: state.id,
    start(which = 'all') {
      if (state.claims !== undefined) return
      state.claims = which
      keepRenewing(state)
      keepPolling(state)
    },
    wake: (run) => wake(state, run),
    stopCanceled: () => void (state.claims !== undefined && canceledRuns.stop().catch(onError)),
    request: (run) => state.claims === 'requested' && wake(state, run),
    renderStateOf: (id) => state.renderStates.get(id),
    async close(grace) {
      if (!closing.signal.aborted) await close(state, grace)
    },
  }
}

async function close(state: WorkerState, { graceMs, onGrace }: CreateGrace = {}): Promise<void> {
  const { options, closing, held, active } = state
  const { clock, store, onError } = options
  closing.abort()
  state.disarmPoll()
  const isCreating = [...held.values()].some(({ run }) => run.job?.intent && !run.job.handle)
  if (isCreating) onGrace?.()
  const waitMs = graceMs ?? (isCreating ? CREATE_GRACE_MS : STOP_GRACE_MS)
  for (const { lost } of held.values()) lost.abort(new JobDetached('The service stops.', waitMs))
  const stopped = async () => {
    await state.claiming
    await Promise.all(active)
  }
  // Do not wait longer for a render that does not stop: after the release, it cannot record anything.
  await settlesWithin(waitMs + CLOSE_GRACE_MS, stopped(), clock)
  state.disarmRenewal()
  if (state.claims !== undefined) await store.releaseRuns(state.id).catch(onError)
  // Fails if a run could not remove its folder. Such a folder is logged, and a later start removes it.
  await rmdir(options.workFolder).catch(() => {})
}

const modelOf = async (
  { options: { modelOf: carried, models } }: WorkerState,
  run: Pick<CanceledJob, 'model' | 'document'>,
): Promise<ServedModel | undefined> =>
  carried === undefined ? models.find(({ document }) => document.name === run.model) : await carried(run)

/** Names of the models whose runs may be claimed now. Runs of a model with a problem stay in the queue. */
const claimableModels = (state: WorkerState): readonly string[] =>
  [...state.options.models, ...state.others.values()]
    .filter((model) => model.problem === undefined && hasFreeSlot(state, model))
    .map(({ document: { name } }) => name)

/** Models that servers render have only their own slots, so that a server that is loading or down stops no other model. */
function hasFreeSlot(
  { held, options: { concurrency } }: WorkerState,
  { document: { name }, isRemote = false, concurrency: ofModel }: ServedModel,
): boolean {
  const attempts = [...held.values()].filter(({ hasSlot }) => hasSlot)
  const limit = ofModel ?? (isRemote ? concurrency : Number.POSITIVE_INFINITY)
  const onNode = attempts.filter((attempt) => !attempt.isRemote).length
  const ofThis = attempts.filter(({ run }) => run.model === name).length
  return ofThis < limit && (isRemote || onNode < concurrency)
}

const modelNamed = ({ options, others }: WorkerState, name: string): ServedModel | undefined =>
  options.models.find(({ document }) => document.name === name) ?? others.get(name)

/** Finds the models that queued runs carry, and that this node does not have. */
async function findOthers(state: WorkerState): Promise<void> {
  const { options, claims, requested, reported, log } = state
  const { store, models, modelOf: carried } = options
  if (carried === undefined) return
  const own = models.map(({ document: { name } }) => name)
  const only = claims === 'requested' ? [...requested.keys()] : undefined
  if (only?.length === 0) return
  const others = new Map<string, ServedModel>()
  for (const { id, model, document } of await store.findOthers(own, only)) {
    const found = await carried({ model, document })
    if (found !== undefined) others.set(model, found)
    if ((found !== undefined && found.problem === undefined) || reported.has(model)) continue
    reported.add(model)
    const reason = found?.problem ?? `this service does not have its model ${model}`
    options.onUnserved?.(`${id} stays queued: ${reason}`)
    log.debug({ run: id, model }, 'run stays queued: this service cannot render its model')
  }
  state.others = others
}

/** Claims runs until all slots are in use. Only one round runs at a time; a call during a round starts another round. */
function fillSlots(state: WorkerState): void {
  if (state.claims === undefined || state.closing.signal.aborted) return
  if (claimableModels(state).length === 0) return
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
  // A poll asks for the models that this node does not have.
  if (claimableModels(state).includes(model)) fillSlots(state)
}

async function claimRuns(state: WorkerState): Promise<void> {
  const { store, clock } = state.options
  const { requested } = state
  state.claimAgain = false
  for (;;) {
    const models = claimableModels(state)
    if (models.length === 0 || state.closing.signal.aborted) return
    const asked = [...requested].flatMap(([id, model]) => (models.includes(model) ? id : []))
    const only = state.claims === 'requested' ? asked : undefined
    if (only?.length === 0) return
    const run = await store.claimRun({ worker: state.id, nowMs: clock.now(), models, only })
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
function begin(state: WorkerState, run: HeldRun): void {
  const { held, active, closing } = state
  // A run that comes back to its own worker has another attempt: the one before is over.
  held.get(run.id)?.lost.abort(new JobDetached('The lease of this run was lost.'))
  const { isRemote = false } = modelNamed(state, run.model) ?? {}
  const attempt: Attempt = { run, isRemote, lost: new AbortController(), hasSlot: true, isEnding: false }
  held.set(run.id, attempt)
  if (closing.signal.aborted) attempt.lost.abort(new JobDetached('The service stops.'))
  const work = state.canceledRuns
    .hold(run.id, attempt.lost.signal, (signal) => processRun(state, attempt, signal))
    // When the service closes, a failure that could not be recorded is no error: the run returns to the queue.
    .catch((error) => {
      if (error !== closing.signal.reason) state.options.onError(error)
    })
    .finally(() => {
      if (held.get(run.id) === attempt) held.delete(run.id)
      state.renderStates.delete(run.id)
      active.delete(work)
      fillSlots(state)
    })
  active.add(work)
}

async function processRun(state: WorkerState, attempt: Attempt, signal: AbortSignal): Promise<void> {
  const { options, log, closing } = state
  const { clock, timeRender = (_kind, rendering) => rendering, renderRun = render } = options
  const { run } = attempt
  const model = await modelOf(state, run)
  const limitMs = model?.limitMs ?? options.engine.limitMs?.(run.model) ?? RENDER_DEADLINE_MS
  const schema = model?.document.input
  const limit = { timeoutMs: limitMs, reason: () => new DeadlinePassed(limitMs), clock, signal }
  const startedAtMs = clock.monotonic()
  const fields = { run: run.id, kind: run.kind, model: run.model }
  log.info(fields, 'run started')
  try {
    // The stored input of this run is corrupt.
    if (run.failure !== undefined) throw new Error(run.failure.message)
    const renderOnce = () =>
      withReferences(run, { ...options, schema }, signal, (references) =>
        timeRender(
          run.kind,
          renderRun(run, references, { ...options, schema, ...recordersOf(state, attempt, signal) }, limit),
        ),
      )
    // The server still has the result of its job, which may have been paid for.
    const outputs = await retryErrors(renderOnce, {
      pauseMs: (error, number) =>
        run.job?.handle !== undefined && isDiskUnusable(error) ? stepOf(DISK_STEPS_MS, number) : undefined,
      onRetry: (error) => options.onError(unstored(run, error)),
      clock,
      signal,
    })
    if (await finish(state, attempt, outputs))
      log.info({ ...fields, ms: Math.round(clock.monotonic() - startedAtMs) }, 'run succeeded')
  } catch (error) {
    // After an abort, no failure is recorded: the run returns to the queue when it is released, or is another worker's.
    if (!signal.aborted) await recordFailure(state, attempt, error)
    else if (signal.reason instanceof RunCanceled) log.info(fields, 'run canceled')
    else if (!closing.signal.aborted) log.info(fields, 'run left to another worker')
  }
}

const unstored = ({ id }: HeldRun, error: unknown): StorageUnavailable =>
  new StorageUnavailable(`The result of ${id} cannot be stored: ${describeReason(error)}. Trying again.`, {
    cause: error,
  })

/** What a render tells and stores before its run has ended. */
function recordersOf(state: WorkerState, { run }: Attempt, signal: AbortSignal): RenderRecorders {
  const { persist, options } = state
  const { store } = options
  /** After an abort, there is time for one try. */
  const stored = <Value>(write: () => Promise<Value>): Promise<Value> =>
    signal.aborted ? write() : persist(write, { maxRefusals: MAX_REFUSALS, signal })
  return {
    onProgress(progress) {
      const last = state.renderStates.get(run.id)
      // Not for a value that is not a number.
      if (progress > (last?.progress ?? 0) && progress <= 1)
        state.renderStates.set(run.id, { ...last, progress })
    },
    onPosition: (position) =>
      void state.renderStates.set(run.id, { ...state.renderStates.get(run.id), queue_position: position }),
    onCharged: (cost) => {
      run.cost = cost
    },
    async saveJob(job) {
      const { intent, handle } = job
      const isSaved =
        intent !== undefined && handle === undefined
          ? await saveIntent(state, run, intent, stored)
          : await stored(() => store.saveJob(claimed(state, run), job, run.job?.intent))
      if (!isSaved) throw new JobDetached('Another worker has taken the run over.')
      run.job = job
    },
  }
}

/** Saves the intent of a create, which may then be sent: at least 10 s of lease are left. */
async function saveIntent(
  state: WorkerState,
  run: HeldRun,
  intent: JobIntent,
  stored: <Value>(write: () => Promise<Value>) => Promise<Value>,
): Promise<boolean> {
  const { store, clock } = state.options
  let leftMs: number | undefined
  for (let attempt = 1; attempt <= 2 && leftMs === undefined; attempt++) {
    // The lease may have run out while the database, or this process, stood still.
    if (attempt > 1) await renew(state)
    const startedMs = clock.monotonic()
    const remainingMs = await stored(() => store.saveIntent(claimed(state, run), intent))
    // The lease counts from before the question.
    leftMs = remainingMs && remainingMs - (clock.monotonic() - startedMs)
    if (leftMs !== undefined && leftMs < MIN_CREATE_LEASE_MS) {
      if (!(await stored(() => store.saveJob(claimed(state, run), {}, intent)))) return false
      leftMs = undefined
    }
  }
  return leftMs !== undefined
}

const claimed = (state: WorkerState, { id, attempt }: HeldRun): ClaimedRun => ({
  ...{ id, attempt, owner: state.id, nowMs: state.options.clock.now() },
})

/**
 * Records how a run ended. After `MAX_REFUSALS` refusals, fails the run with `NOT_RECORDED`.
 * Returns undefined when the run no longer belongs to this worker.
 */
async function record<Value>(
  state: WorkerState,
  attempt: Attempt,
  write: () => Promise<Value>,
): Promise<Value | 'not_recorded' | undefined> {
  const { persist, closing, options } = state
  const { run, lost } = attempt
  attempt.isEnding = true
  try {
    return await persist(write, { maxRefusals: MAX_REFUSALS, signal: closing.signal })
  } catch (error) {
    closing.signal.throwIfAborted()
    options.onError(error)
  }
  // Until its end is recorded, which may take long, the run uses no slot.
  attempt.hasSlot = false
  fillSlots(state)
  const fail = () => options.store.failRun(claimed(state, run), NOT_RECORDED)
  if (!(await persist(fail, { maxRefusals: Number.POSITIVE_INFINITY, signal: lost.signal }))) return undefined
  state.log.info({ run: run.id, kind: run.kind, code: NOT_RECORDED.code }, 'run failed')
  return 'not_recorded'
}

/** Stores what the provider charged with the job, before the run ends. */
async function keepCost(state: WorkerState, { run }: Attempt): Promise<void> {
  const { cost, job } = run
  if (cost !== undefined) await state.options.store.saveJob(claimed(state, run), { ...job, cost })
}

/** Returns whether the run was recorded as succeeded. */
async function finish(
  state: WorkerState,
  attempt: Attempt,
  outputs: readonly StoredOutput[],
): Promise<boolean> {
  const { store, outputs: files } = state.options
  const isRecorded = await record(state, attempt, async () => {
    await keepCost(state, attempt)
    return await store.finishRun(claimed(state, attempt.run), outputs)
  })
  // False: the lease had run out, and another worker took over the run. The outputs of that worker are used.
  if (isRecorded === false || isRecorded === 'not_recorded') await removeOutputs(outputs, files)
  return isRecorded === true
}

async function recordFailure(state: WorkerState, attempt: Attempt, error: unknown): Promise<void> {
  const { store, onError } = state.options
  const { run } = attempt
  if (error instanceof RendererCrashed) {
    onError(error)
    await record(state, attempt, () => store.recordCrash(claimed(state, run), crashLimitFor(error)))
    return
  }
  const failure = failureOf(error)
  // Undefined: another worker has taken over the run and deleted its folder, which may have caused this error.
  const ended = await record(state, attempt, async () => {
    await keepCost(state, attempt)
    return await store.failRun(claimed(state, run), failure)
  })
  if (ended === undefined || ended === 'not_recorded') return
  state.log.info({ run: run.id, kind: run.kind, code: failure.code }, 'run failed')
  if (isSystemError(error)) onError(error)
}

/**
 * Renews the leases of the runs that this worker knows; a claim whose answer was lost runs out. A lease that ran out is
 * renewed too while nobody has taken the run. Aborts the runs that others have.
 */
async function renew(state: WorkerState): Promise<void> {
  const { store, clock } = state.options
  const before = [...state.held.values()]
  const startedMs = clock.monotonic()
  // Also without runs: it shows whether the database writes.
  const kept = await store.renewRuns(
    state.id,
    before.map(({ run }) => run.id),
  )
  if (isLate(state)) state.judgesFromMs = clock.monotonic() + RENEW_MS
  state.renewedAtMs = startedMs
  for (const attempt of before)
    if (!attempt.isEnding && kept.get(attempt.run.id) !== attempt.run.attempt)
      attempt.lost.abort(new JobDetached('The lease of this run was lost.'))
}

const isLate = ({ options, renewedAtMs }: WorkerState): boolean =>
  options.clock.monotonic() - renewedAtMs > MAX_RENEWAL_MS

function keepRenewing(state: WorkerState): void {
  const { clock, onError } = state.options
  const isOver = () => state.closing.signal.aborted && state.active.size === 0
  // Renewals start every 5 s, however long one takes.
  state.disarmRenewal = clock.alarm(RENEW_MS, () => {
    if (isOver()) return
    keepRenewing(state)
    renew(state).catch(onError)
  })
}

async function poll(state: WorkerState): Promise<void> {
  const { store, clock } = state.options
  if (!isLate(state) && clock.monotonic() >= state.judgesFromMs)
    await store.takeBack(CRASH_LIMIT, clock.now())
  await findOthers(state)
  fillSlots(state)
  await state.canceledRuns.stop()
}

function keepPolling(state: WorkerState): void {
  const { clock, onError } = state.options
  const { signal } = state.closing
  poll(state)
    .catch((error) => signal.aborted || onError(error))
    .finally(() => {
      if (!signal.aborted) state.disarmPoll = clock.alarm(POLL_MS, () => keepPolling(state))
    })
}
