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
import { type CanceledJob, JobDetached, RunCanceled, STOP_GRACE_MS } from '../engines/engine.js'
import type { ServedModel } from '../models/served-model.js'
import { newWorkerId } from '../rules/secrets.js'
import type { Claims, HeldRun, RenderState } from '../store/run.js'
import { Attempt, type AttemptOptions, CRASH_LIMIT } from './attempt.js'
import { createStopCanceled } from './canceled-runs.js'

const POLL_MS = 500
/** A third of a lease. */
const RENEW_MS = 5_000
/** Later than this, the worker was late: its process or the database stood still. */
const MAX_RENEWAL_MS = RENEW_MS + 1_000
/** Time that `close` waits for engines, storage and database, after the time for answers to creates. */
const CLOSE_GRACE_MS = 1_000
/** Time that `close` waits for the answer to a create. */
export const CREATE_GRACE_MS = 10_000

interface QueuedRun {
  readonly id: string
  readonly model: string
}

/** What creates in flight at a provider get when the worker stops. */
export interface CreateGrace {
  /** Time for the answers. Default: 10 s. */
  readonly graceMs?: number | undefined
  /** Called once if a create has no answer yet. */
  onGrace?(): void
}

interface WorkerOptions extends AttemptOptions {
  /** The models that the engine renders. */
  readonly models: readonly ServedModel[]
  /** Returns the model that a run carries. Undefined: runs have the `models` of their names. */
  readonly modelOf?:
    | ((run: Pick<CanceledJob, 'model' | 'document'>) => Promise<ServedModel | undefined>)
    | undefined
  readonly concurrency: number
  /** Called once for each model whose runs this node cannot render. */
  readonly onUnserved?: ((message: string) => void) | undefined
}

export const createWorker = (options: WorkerOptions): Worker => new Worker(options)

export class Worker {
  readonly id = newWorkerId()
  /** Aborted when the worker stops. */
  readonly closing: AbortSignal
  readonly #options: WorkerOptions
  readonly #stopCanceled: () => Promise<void>
  readonly #stop = new AbortController()
  readonly #held = new Map<string, Attempt>()
  readonly #active = new Set<Promise<void>>()
  /** Ids and models of the only runs that are claimed with `requested`. */
  readonly #requested = new Map<string, string>()
  /** Models that this node does not have, and that queued runs carry. By name, as the first run in the queue has it. */
  #others: ReadonlyMap<string, ServedModel> = new Map()
  /** Names of the models that `onUnserved` was called for. */
  readonly #unserved = new Set<string>()
  #claims: Claims | undefined
  #claiming: Promise<void> | undefined
  #claimAgain = false
  #disarmPoll: Disarm = () => {}
  #disarmRenewal: Disarm = () => {}
  #renewedAtMs: number
  /** Before this time, a worker that was late itself or has just started takes no runs back from others. */
  #judgesFromMs: number

  constructor(options: WorkerOptions) {
    const { clock, workFolder } = options
    this.#options = { ...options, workFolder: join(workFolder, this.id) }
    this.closing = this.#stop.signal
    this.#stopCanceled = createStopCanceled({
      ...options,
      modelOf: (run) => this.#modelOf(run),
      worker: this.id,
      closing: this.closing,
      claimsEnded: () => this.#claiming,
      held: this.#held,
    })
    this.#renewedAtMs = clock.monotonic()
    this.#judgesFromMs = clock.monotonic() + RENEW_MS
  }

  /** Starts to claim runs. With `requested`, claims only runs that were created or polled through this process. */
  start(claims: Claims = 'all'): void {
    if (this.#claims !== undefined) return
    this.#claims = claims
    this.#keepRenewing()
    this.#keepPolling()
  }

  /** Must be called after a run was queued. */
  wake({ id, model }: QueuedRun): void {
    if (this.#claims === 'requested') this.#requested.set(id, model)
    // Models that this node does not have are found by the next poll.
    if (this.#claimableModels().includes(model)) this.fillSlots()
  }

  /** Must be called when a client polls a queued run. Matters only with `requested`. */
  request(run: QueuedRun): void {
    if (this.#claims === 'requested') this.wake(run)
  }

  /** Returns the progress of a run that this worker renders. */
  renderStateOf(id: string): RenderState | undefined {
    return this.#held.get(id)?.state
  }

  /** Must be called after a run was canceled. After `start`, this happens twice a second. */
  stopCanceled(): void {
    if (this.#claims !== undefined) this.#stopCanceled().catch(this.#options.onError)
  }

  /** Aborts all renders, and returns their runs to the queue; this does not count as a crash. */
  async close({ graceMs, onGrace }: CreateGrace = {}): Promise<void> {
    const { clock, store, workFolder, onError } = this.#options
    if (this.closing.aborted) return
    const attempts = [...this.#held.values()]
    const isCreating = attempts.some(({ run: { job } }) => job?.intent && !job.handle)
    if (isCreating) onGrace?.()
    const waitMs = graceMs ?? (isCreating ? CREATE_GRACE_MS : STOP_GRACE_MS)
    const reason = new JobDetached('The service stops.', waitMs)
    this.#stop.abort(reason)
    this.#disarmPoll()
    for (const { stop } of attempts) stop.abort(reason)
    const stopped = async () => {
      await this.#claiming
      await Promise.all(this.#active)
    }
    // Do not wait longer for a render that does not stop: after the release, it cannot record anything.
    await settlesWithin(waitMs + CLOSE_GRACE_MS, stopped(), clock)
    this.#disarmRenewal()
    if (this.#claims !== undefined) await store.releaseRuns(this.id).catch(onError)
    // Fails if a run could not remove its folder. Such a folder is logged, and a later start removes it.
    await rmdir(workFolder).catch(() => {})
  }

  /** The models that the engine renders, and those that queued runs carry. */
  #models(): readonly ServedModel[] {
    return [...this.#options.models, ...this.#others.values()]
  }

  async #modelOf(run: Pick<CanceledJob, 'model' | 'document'>): Promise<ServedModel | undefined> {
    const { modelOf, models } = this.#options
    return modelOf === undefined ? modelNamed(models, run.model) : await modelOf(run)
  }

  /** Names of the models whose runs may be claimed now. Runs of a model with a problem stay in the queue. */
  #claimableModels(): readonly string[] {
    return this.#models()
      .filter((model) => model.problem === undefined && this.#hasFreeSlot(model))
      .map(({ document: { name } }) => name)
  }

  /** Models that servers render have only their own slots, so that a server that is loading or down stops no other model. */
  #hasFreeSlot({ document: { name }, isRemote = false, concurrency: ofModel }: ServedModel): boolean {
    const { concurrency } = this.#options
    const attempts = [...this.#held.values()].filter(({ hasSlot }) => hasSlot)
    const limit = ofModel ?? (isRemote ? concurrency : Number.POSITIVE_INFINITY)
    const onNode = attempts.filter((attempt) => !attempt.isRemote).length
    const ofThis = attempts.filter(({ run }) => run.model === name).length
    return ofThis < limit && (isRemote || onNode < concurrency)
  }

  /** Finds the models that queued runs carry, and that this node does not have. */
  async #findOthers(): Promise<void> {
    const { store, models, modelOf, onUnserved } = this.#options
    const only = this.#claims === 'requested' ? [...this.#requested.keys()] : undefined
    if (modelOf === undefined || only?.length === 0) return
    const own = models.map(({ document: { name } }) => name)
    const others = new Map<string, ServedModel>()
    for (const { id, model, document } of await store.findOthers(own, only)) {
      const found = await modelOf({ model, document })
      if (found !== undefined) others.set(model, found)
      if ((found !== undefined && found.problem === undefined) || this.#unserved.has(model)) continue
      this.#unserved.add(model)
      const reason = found?.problem ?? `this service does not have its model ${model}`
      onUnserved?.(`${id} stays queued: ${reason}`)
    }
    this.#others = others
  }

  /** Claims runs until all slots are in use. Only one round runs at a time; a call during a round starts another round. */
  fillSlots(): void {
    if (this.#claims === undefined || this.closing.aborted) return
    if (this.#claimableModels().length === 0) return
    this.#claimAgain = true
    this.#claiming ??= this.#claimRuns()
      .catch(this.#options.onError)
      .finally(() => {
        this.#claiming = undefined
        if (this.#claimAgain) this.fillSlots()
      })
  }

  async #claimRuns(): Promise<void> {
    const { store, clock } = this.#options
    this.#claimAgain = false
    for (;;) {
      const models = this.#claimableModels()
      if (models.length === 0 || this.closing.aborted) return
      const asked = [...this.#requested].flatMap(([id, model]) => (models.includes(model) ? id : []))
      const only = this.#claims === 'requested' ? asked : undefined
      if (only?.length === 0) return
      const run = await store.claimRun({ worker: this.id, nowMs: clock.now(), models, only })
      // If no run was found, none of these is in the queue.
      for (const id of run === undefined ? (only ?? []) : [run.id]) this.#requested.delete(id)
      if (run === undefined) return
      this.#begin(run)
    }
  }

  /** Renders a claimed run in the background, and then fills its slot. */
  #begin(run: HeldRun): void {
    const { onError } = this.#options
    const { closing } = this
    const { isRemote = false } = modelNamed(this.#models(), run.model) ?? {}
    const attempt = new Attempt(run, isRemote, this, this.#options)
    const { stop } = attempt
    // After its lease ran out, a run can come back to its own worker: ends the earlier attempt.
    this.#held.get(run.id)?.stop.abort(leaseLost())
    this.#held.set(run.id, attempt)
    if (closing.aborted) stop.abort(closing.reason)
    const work = this.#modelOf(run)
      .then((model) => attempt.process(model))
      // Not reported: a write that was given up because the worker stops, or no longer has the run.
      .catch((error) => {
        if (error !== closing.reason && error !== stop.signal.reason) onError(error)
      })
      .finally(() => {
        if (this.#held.get(run.id) === attempt) this.#held.delete(run.id)
        this.#active.delete(work)
        if (stop.signal.reason instanceof RunCanceled) this.stopCanceled()
        this.fillSlots()
      })
    this.#active.add(work)
  }

  /**
   * Renews the leases of the held runs, including leases that ran out. Aborts the renders of runs that another worker has taken.
   * A run whose claim got no response is not held, so its lease runs out.
   */
  async renew(): Promise<void> {
    const { store, clock } = this.#options
    const attempts = [...this.#held.values()]
    const ids = attempts.map(({ run }) => run.id)
    const startedMs = clock.monotonic()
    // Also without runs, to find out whether the database can be written.
    const kept = await store.renewRuns(this.id, ids)
    if (this.#isLate()) this.#judgesFromMs = clock.monotonic() + RENEW_MS
    this.#renewedAtMs = startedMs
    for (const { run, stop, isEnding } of attempts)
      if (!isEnding && kept.get(run.id) !== run.attempt) stop.abort(leaseLost())
  }

  #isLate(): boolean {
    return this.#options.clock.monotonic() - this.#renewedAtMs > MAX_RENEWAL_MS
  }

  /** Renewals start every 5 s, however long one takes. */
  #keepRenewing(): void {
    const { clock, onError } = this.#options
    this.#disarmRenewal = clock.alarm(RENEW_MS, () => {
      if (this.closing.aborted && this.#active.size === 0) return
      this.#keepRenewing()
      this.renew().catch(onError)
    })
  }

  async #poll(): Promise<void> {
    const { store, clock } = this.#options
    if (!this.#isLate() && clock.monotonic() >= this.#judgesFromMs)
      await store.takeBack(CRASH_LIMIT, clock.now())
    await this.#findOthers()
    this.fillSlots()
    await this.#stopCanceled()
  }

  #keepPolling(): void {
    const { clock, onError } = this.#options
    const { closing } = this
    this.#poll()
      .catch((error) => closing.aborted || onError(error))
      .finally(() => {
        if (!closing.aborted) this.#disarmPoll = clock.alarm(POLL_MS, () => this.#keepPolling())
      })
  }
}

const modelNamed = (models: readonly ServedModel[], name: string): ServedModel | undefined =>
  models.find(({ document }) => document.name === name)

const leaseLost = () => new JobDetached('The lease of this run was lost.')
