/**
 * Claims runs from the queue and renders them, up to `concurrency` at once. A create wakes it, also one in another process if the
 * database announces it; once a second it looks for runs whose process has ended, and at the queue.
 *
 *   queued ──claim──▶ processing ──▶ succeeded
 *      ▲                  ├────────▶ failed       the engine's error, the time limit, the third crash
 *      └──────────────────┘ the service closes (not counted), the renderer crashes or the lease is lost (counted)
 */

import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { withTimeout } from '../../host/abort.js'
import { stepOf } from '../../host/backoff.js'
import type { Clock, Disarm } from '../../host/clock.js'
import { retry } from '../../host/retry.js'
import { errorCode, isSystemError } from '../../host/system-error.js'
import { RendererCrashed } from '../engines/renderer-crashed.js'
import { type Log, silentLog } from '../log.js'
import type { Metrics } from '../metrics/index.js'
import type { ClaimedRun, Claims, Store } from '../store/contract.js'
import type { StoredOutput, StoredRun } from '../stored-run.js'
import { type RenderOptions, removeOutputs, render } from './render.js'
import { crashLimitFor, DeadlinePassed, failureOf } from './run-failure.js'
import type { WorkerLease } from './worker-lease.js'

const REAP_INTERVAL_MS = 1_000
export const RENDER_DEADLINE_MS = 15 * 60_000
const MAX_PREFERRED = 1_000
/** How many of them one claim asks for. */
const MAX_ASKED = 100
const PERSIST_STEPS_MS = [250, 500, 1_000, 2_000, 5_000] as const

/** The disk is full, another process has locked the database, or it cannot be reached. */
const mayPass = (error: unknown): boolean =>
  /^(SQLITE_(BUSY|FULL|IOERR|LOCKED)|DATABASE_UNAVAILABLE$)/.test(errorCode(error) ?? '')

type Attempt<Value> = { readonly value: Value } | { readonly error: unknown }

export interface Worker {
  /** `requested`: only the runs that were created in this process, and those that are polled. */
  start(claims?: Claims): void
  /** Returns the renders of processes that have ended to the queue. `start` does so once a second. */
  reap(): Promise<void>
  /** This run was queued. */
  wake(id: string): void
  /** Somebody polls this run: it goes before others of its account. */
  prefer(id: string): void
  /** Aborts what is being rendered, without counting a crash; resolves within a few seconds. */
  close(): Promise<void>
}

export interface WorkerOptions extends Omit<RenderOptions, 'clock'> {
  readonly store: Pick<Store, 'claimRun' | 'finishRun' | 'failRun' | 'recordCrash' | 'onQueued'>
  readonly lease: WorkerLease
  readonly clock: Clock
  readonly concurrency: number
  readonly timeRender?: Metrics['timeRender'] | undefined
  readonly log?: Pick<Log, 'info'>
  onError(error: unknown): void
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

  lease.onLost(async () => {
    tenure.abort(new Error('The lease of this worker was lost.'))
    tenure = new AbortController()
    await Promise.all(active)
  })

  /** One round of claims at a time, so that `concurrency` holds; a call during a round starts another one after it. */
  function fillSlots(): void {
    // A render that ends calls this again, so nothing is lost while every slot is taken.
    if (claims === undefined || closing.signal.aborted || active.size >= concurrency) return
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
    while (active.size < concurrency && !closing.signal.aborted) {
      const asked = [...preferred].slice(0, MAX_ASKED)
      const run = await store.claimRun(lease.id, asked, clock.now(), claims)
      if (run === undefined) {
        // None of them is queued any more.
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
    try {
      const rendering = withTimeout((signal) => render(run, options, signal), limit)
      await finish(run, await timeRender(run.kind, rendering))
      log.info({ ...fields, ms: Math.round(clock.monotonic() - startedAtMs) }, 'run succeeded')
    } catch (error) {
      // On closing, the release of the lease returns all runs to the queue at once; a lost lease did so already.
      if (!signal.aborted) await recordFailure(run, error)
      else if (!closing.signal.aborted) log.info(fields, 'run left to another worker')
    }
  }

  const claimed = (run: StoredRun): ClaimedRun => ({ id: run.id, owner: lease.id, nowMs: clock.now() })

  /**
   * A database that is full or locked for a while must not leave the run in `processing`: tries until it is written. When
   * the service closes first, the release of its lease returns the run to the queue.
   */
  const persist = <Value>(write: () => Promise<Value>): Promise<Value> =>
    retry<Attempt<Value>, Value>({
      clock,
      signal: closing.signal,
      attempt: () =>
        write().then(
          (value) => ({ value }),
          (error: unknown) => ({ error }),
        ),
      decide: (outcome, number) =>
        'value' in outcome
          ? { done: outcome.value }
          : mayPass(outcome.error)
            ? { retryInMs: stepOf(PERSIST_STEPS_MS, number) }
            : { fail: outcome.error },
      onRetry: (outcome) => 'error' in outcome && onError(outcome.error),
    })

  async function finish(run: StoredRun, outputs: readonly StoredOutput[]): Promise<void> {
    if (await persist(() => store.finishRun(claimed(run), outputs))) return
    // The lease had expired and another worker took the run over: its outputs count.
    await removeOutputs(outputs, options.outputs)
  }

  async function recordFailure(run: StoredRun, error: unknown): Promise<void> {
    if (error instanceof RendererCrashed) {
      onError(error)
      await persist(() => store.recordCrash(claimed(run), crashLimitFor(error)))
      return
    }
    const failure = failureOf(error)
    // False when another worker has taken the run over, and its folder with it: the error then means nothing.
    if (!(await persist(() => store.failRun(claimed(run), failure)))) return
    log.info({ run: run.id, kind: run.kind, code: failure.code }, 'run failed')
    if (isSystemError(error)) onError(error)
  }

  async function reapWorkers(): Promise<void> {
    const reaped = await lease.reapExpiredWorkers()
    fillSlots()
    for (const id of reaped) await rm(join(dirname(options.workFolder), id), { recursive: true, force: true })
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
      await claiming
      await Promise.all(active)
      await rm(options.workFolder, { recursive: true, force: true }).catch(onError)
    },
  }
}
