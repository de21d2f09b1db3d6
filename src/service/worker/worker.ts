/**
 * Claims runs from the queue and renders them, up to `concurrency` at once. A create wakes it, also a create in another
 * process if the database announces it. Once a second it reaps expired workers and checks the queue.
 *
 *   queued ──claim──▶ processing ──▶ succeeded
 *      ▲                  ├────────▶ failed       engine error, time limit, third crash, an end that cannot be recorded
 *      └──────────────────┘ the service closes (not counted), the renderer crashes or the lease is lost (counted)
 */

import { rmdir } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { settlesWithin } from '../../host/abort.js'
import type { Clock, Disarm } from '../../host/clock.js'
import { removeFolder } from '../../host/own-folder.js'
import { retry, stepOf } from '../../host/retry.js'
import { isSystemError } from '../../host/system-error.js'
import { RendererCrashed } from '../engines/engine.js'
import { type Log, silentLog } from '../log.js'
import type { Metrics } from '../metrics/index.js'
import type { ReferenceLoader } from '../references/reference-loader.js'
import type { ClaimedRun, Claims, Store } from '../store/contract.js'
import type { StoredOutput, StoredRun } from '../stored-run.js'
import { createPreparation } from './preparation.js'
import { type RenderOptions, removeOutputs, render } from './render.js'
import {
  crashLimitFor,
  DeadlinePassed,
  failureOf,
  isRefusal,
  MAX_REFUSALS,
  NOT_RECORDED,
} from './run-failure.js'
import type { WorkerLease } from './worker-lease.js'

const REAP_INTERVAL_MS = 1_000
export const RENDER_DEADLINE_MS = 15 * 60_000
const MAX_PREFERRED = 1_000
/** Preferred runs per claim: those that were polled last. */
const MAX_ASKED = 100
/** For aborted engines, and for storage or a database that does not respond. */
const CLOSE_GRACE_MS = 3_500
const RECORD_STEPS_MS = [250, 500, 1_000, 2_000, 5_000] as const

export interface Worker {
  /** `requested`: only runs that were created or polled in this process. */
  start(claims?: Claims): void
  /** Returns the runs of expired workers to the queue. `start` does so once a second. */
  reap(): Promise<void>
  /** Called after this run was queued. */
  wake(id: string): void
  /** A client polls this run: claim it before others of its account. */
  prefer(id: string): void
  /** Aborts all renders, without counting a crash; resolves within four seconds. */
  close(): Promise<void>
}

export interface WorkerOptions extends Omit<RenderOptions, 'clock' | 'enterOutputs'> {
  readonly references: ReferenceLoader
  readonly store: Pick<
    Store,
    'claimRun' | 'addOutputFiles' | 'finishRun' | 'failRun' | 'recordCrash' | 'onQueued'
  >
  readonly lease: WorkerLease
  readonly clock: Clock
  readonly concurrency: number
  readonly timeRender?: Metrics['timeRender'] | undefined
  readonly log?: Pick<Log, 'info'>
}

export function createWorker(options: WorkerOptions): Worker {
  const { store, lease, clock, concurrency, onError, log = silentLog } = options
  const { timeRender = (_kind, rendering) => rendering } = options
  const closing = new AbortController()
  const active = new Set<Promise<void>>()
  const preferred = new Set<string>()
  let claims: Claims | undefined
  let claiming: Promise<void> | undefined
  let claimAgain = false
  let disarm: Disarm = () => {}
  let stopListening = () => {}
  /** Aborts the renders of this tenure of the lease. */
  let tenure = new AbortController()

  const preparation = createPreparation({ ...options, onPrepared: fillSlots })
  /** Count of the runs whose end cannot be recorded. */
  let unrecorded = 0
  /** Unrecorded runs and runs in preparation have no slot. */
  const mayClaim = (): boolean =>
    active.size - preparation.size - unrecorded < concurrency && !preparation.isFull

  lease.onLost(async () => {
    tenure.abort(new Error('The lease of this worker was lost.'))
    tenure = new AbortController()
    await Promise.all(active)
  })

  /** One round of claims at a time, so that `concurrency` holds; a call during a round starts another one after it. */
  function fillSlots(): void {
    // A render that ends calls this again, so nothing is lost while every slot is taken.
    if (claims === undefined || closing.signal.aborted || !mayClaim()) return
    claimAgain = true
    claiming ??= claimRuns()
      .catch(onError)
      .finally(() => {
        claiming = undefined
        if (claimAgain) fillSlots()
      })
  }

  async function claimRuns(): Promise<void> {
    claimAgain = false
    await lease.acquire()
    while (mayClaim() && !closing.signal.aborted) {
      const asked = [...preferred].slice(-MAX_ASKED)
      const { fullAccounts } = preparation
      const run = await store.claimRun(lease.id, asked, clock.now(), claims, fullAccounts)
      if (run === undefined) {
        // The preferred runs of these accounts may still be queued.
        if (fullAccounts.length > 0) return
        // None of them is queued.
        for (const id of asked) preferred.delete(id)
        if (preferred.size === 0) return
        continue
      }
      preferred.delete(run.id)
      const work = processRun(run)
        .catch(onError)
        .finally(() => {
          active.delete(work)
          fillSlots()
        })
      active.add(work)
    }
  }

  async function processRun(run: StoredRun): Promise<void> {
    const limitMs = options.engine.limitMs?.(run.kind) ?? RENDER_DEADLINE_MS
    const { signal } = tenure
    const limit = { timeoutMs: limitMs, reason: () => new DeadlinePassed(limitMs), clock, signal }
    const startedAtMs = clock.monotonic()
    const fields = { run: run.id, kind: run.kind, model: run.model }
    log.info(fields, 'run started')
    const enterOutputs = (outputs: readonly StoredOutput[]) =>
      persist(() => store.addOutputFiles(claimed(run), outputs), { maxRefusals: MAX_REFUSALS, signal }).catch(
        (error) => {
          signal.throwIfAborted()
          onError(error)
          throw new Error('The outputs of this run could not be recorded.')
        },
      )
    try {
      // The stored input is corrupt.
      if (run.failure !== undefined) throw new Error(run.failure.message)
      const outputs = await preparation.inSlot(run, signal, (references) =>
        timeRender(run.kind, render(run, references, { ...options, enterOutputs }, limit)),
      )
      if (await finish(run, outputs))
        log.info({ ...fields, ms: Math.round(clock.monotonic() - startedAtMs) }, 'run succeeded')
    } catch (error) {
      // The release of the lease returns all runs to the queue at once; the loss of a lease has done so.
      if (!signal.aborted) await recordFailure(run, error)
      else if (!closing.signal.aborted) log.info(fields, 'run left to another worker')
    }
  }

  const claimed = (run: StoredRun): ClaimedRun => ({ id: run.id, owner: lease.id, nowMs: clock.now() })

  /**
   * Retries after any error, since the run must not stay in `processing`, until the write is refused `maxRefusals` times.
   * When the service closes first, the release of its lease returns the run to the queue.
   */
  function persist<Value>(
    write: () => Promise<Value>,
    { maxRefusals, signal }: { readonly maxRefusals: number; readonly signal: AbortSignal },
  ): Promise<Value> {
    let refusals = 0
    return retry<PromiseSettledResult<Value>, Value>({
      clock,
      signal,
      attempt: async () => (await Promise.allSettled([write()]))[0],
      decide(result, number) {
        if (result.status === 'fulfilled') return { done: result.value }
        if (isRefusal(result.reason)) refusals++
        return refusals < maxRefusals
          ? { retryInMs: stepOf(RECORD_STEPS_MS, number) }
          : { fail: result.reason }
      },
      onRetry: (result) => result.status === 'rejected' && onError(result.reason),
    })
  }

  /**
   * After `MAX_REFUSALS`, fails the run instead, with `NOT_RECORDED` and without a refund. Undefined when the run no
   * longer belongs to this worker.
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
    unrecorded++
    fillSlots()
    try {
      const fail = () => store.failRun(claimed(run), NOT_RECORDED, { refunds: false })
      if (!(await persist(fail, { maxRefusals: Number.POSITIVE_INFINITY, signal }))) return undefined
      log.info({ run: run.id, kind: run.kind, code: NOT_RECORDED.code }, 'run failed')
      return 'not_recorded'
    } finally {
      unrecorded--
    }
  }

  /** Whether the run has succeeded. */
  async function finish(run: StoredRun, outputs: readonly StoredOutput[]): Promise<boolean> {
    const isOwn = await record(run, () => store.finishRun(claimed(run), outputs))
    // False: the lease had expired and another worker took the run over, whose outputs count.
    if (isOwn === false || isOwn === 'not_recorded') await removeOutputs(outputs, options.outputs)
    return isOwn === true
  }

  async function recordFailure(run: StoredRun, error: unknown): Promise<void> {
    if (error instanceof RendererCrashed) {
      onError(error)
      await record(run, () => store.recordCrash(claimed(run), crashLimitFor(error)))
      return
    }
    const failure = failureOf(error)
    // Undefined: another worker has taken the run over, and its folder, so the error is meaningless.
    const ended = await record(run, () => store.failRun(claimed(run), failure))
    if (ended === undefined || ended === 'not_recorded') return
    log.info({ run: run.id, kind: run.kind, code: failure.code }, 'run failed')
    if (isSystemError(error)) onError(error)
  }

  async function reapWorkers(): Promise<void> {
    const reaped = await lease.reapExpiredWorkers()
    fillSlots()
    for (const id of reaped) await removeFolder(join(dirname(options.workFolder), id)).catch(onError)
  }

  function keepReaping(): void {
    reapWorkers()
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
    wake(id) {
      if (claims === 'requested') preferred.add(id)
      fillSlots()
    },
    prefer(id) {
      // Moves it to the end. A run that was polled long ago may belong to another node.
      preferred.delete(id)
      const [oldest] = preferred
      if (claims !== 'requested' && preferred.size >= MAX_PREFERRED && oldest !== undefined)
        preferred.delete(oldest)
      preferred.add(id)
      fillSlots()
    },
    async close() {
      closing.abort()
      tenure.abort()
      stopListening()
      disarm()
      const stopped = async () => {
        await claiming
        await Promise.all(active)
      }
      // Continues without a render that does not stop: after the release of the lease it can record nothing.
      await settlesWithin(CLOSE_GRACE_MS, stopped(), clock)
      // Each run has removed its folder, or logged why it could not; a later start removes those.
      await rmdir(options.workFolder).catch(() => {})
    },
  }
}
