/**
 * Takes runs from the queue and makes them, at most so many at once. It is woken by a create in this process, and
 * looks by itself once a second for runs whose process is gone.
 *
 *   queued ──claim──▶ processing ──▶ succeeded
 *      ▲                  ├────────▶ failed       the engine's error, the deadline, the third death
 *      └──────────────────┘ the service closes (not counted) or the renderer dies (counted)
 */

import { rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { withTimeout } from '../../host/abort.js'
import type { Clock, Disarm } from '../../host/clock.js'
import { isSystemError } from '../../host/system-error.js'
import { RendererCrashed } from '../engines/renderer-crashed.js'
import { type Log, silentLog } from '../log.js'
import type { ClaimedRun, Store } from '../store/contract.js'
import type { StoredOutput, StoredRun } from '../stored-run.js'
import { type RenderOptions, render } from './render.js'
import { crashLimitFor, DeadlinePassed, failureOf } from './run-failure.js'
import type { WorkerLease } from './worker-lease.js'

const LOOK_EVERY_MS = 1_000
export const RENDER_DEADLINE_MS = 15 * 60_000
const MAX_PREFERRED = 1_000

export interface Worker {
  start(): void
  /** Something may have been queued. */
  wake(): void
  /** Somebody waits for this run: it goes before other orphans. */
  prefer(id: string): void
  /** Stops what is being rendered, without counting it against the runs; resolves within a few seconds. */
  close(): Promise<void>
}

export interface WorkerOptions extends Omit<RenderOptions, 'clock'> {
  readonly store: Pick<Store, 'claimRun' | 'finishRun' | 'failRun' | 'recordCrash'>
  readonly presence: WorkerLease
  readonly clock: Clock
  readonly concurrency: number
  readonly log?: Pick<Log, 'info'>
  onError(error: unknown): void
}

export function createWorker(options: WorkerOptions): Worker {
  const { store, presence, clock, concurrency, onError, log = silentLog } = options
  const closing = new AbortController()
  const active = new Set<Promise<void>>()
  const preferred = new Set<string>()
  let started = false
  let filling: Promise<void> | undefined
  let again = false
  let disarm: Disarm = () => {}

  /** One filling at a time, so that no more than `concurrency` are ever taken; a wish during one begins another. */
  function fill(): void {
    // When every place is taken, whoever leaves one calls this again.
    if (!started || closing.signal.aborted || active.size >= concurrency) return
    again = true
    filling ??= takeWhatFits()
      .catch(onError)
      .finally(() => {
        filling = undefined
        if (again) fill()
      })
  }

  async function takeWhatFits(): Promise<void> {
    again = false
    await presence.join()
    while (active.size < concurrency && !closing.signal.aborted) {
      const run = await store.claimRun(presence.id, [...preferred], clock.now())
      if (run === undefined) return
      preferred.delete(run.id)
      const work = make(run)
        .catch(onError)
        .finally(() => {
          active.delete(work)
          fill()
        })
      active.add(work)
    }
  }

  async function make(run: StoredRun): Promise<void> {
    const limitMs = options.engine.limitMs?.(run.kind) ?? RENDER_DEADLINE_MS
    const limit = {
      timeoutMs: limitMs,
      reason: () => new DeadlinePassed(limitMs),
      clock,
      signal: closing.signal,
    }
    const began = clock.monotonic()
    const told = { run: run.id, kind: run.kind, model: run.model }
    log.info(told, 'run begun')
    try {
      await finish(run, await withTimeout((signal) => render(run, options, signal), limit))
      log.info({ ...told, ms: Math.round(clock.monotonic() - began) }, 'run succeeded')
    } catch (error) {
      // What is given back on closing goes back with the lease, all at once.
      if (!closing.signal.aborted) await giveUp(run, error)
    }
  }

  const held = (run: StoredRun): ClaimedRun => ({ id: run.id, owner: presence.id, nowMs: clock.now() })

  async function finish(run: StoredRun, outputs: readonly StoredOutput[]): Promise<void> {
    if (await store.finishRun(held(run), outputs)) return
    // Somebody else took the run over while this process seemed dead: theirs counts.
    for (const { token } of outputs)
      await rm(join(options.outputsFolder, token), { recursive: true, force: true })
  }

  async function giveUp(run: StoredRun, error: unknown): Promise<void> {
    if (error instanceof RendererCrashed) {
      onError(error)
      await store.recordCrash(held(run), crashLimitFor(error))
      return
    }
    const failure = failureOf(error)
    // Somebody else may have taken the run over, and its folder with it: then this error is nothing.
    if (!(await store.failRun(held(run), failure))) return
    log.info({ run: run.id, kind: run.kind, code: failure.code }, 'run failed')
    if (isSystemError(error)) onError(error)
  }

  async function lookAround(): Promise<void> {
    const buried = await presence.reapExpiredWorkers()
    fill()
    for (const id of buried) await rm(join(dirname(options.workFolder), id), { recursive: true, force: true })
  }

  function keepLooking(): void {
    lookAround()
      .catch((error) => closing.signal.aborted || onError(error))
      .finally(() => {
        if (!closing.signal.aborted) disarm = clock.alarm(LOOK_EVERY_MS, keepLooking)
      })
  }

  return {
    start() {
      if (started) return
      started = true
      keepLooking()
    },
    wake: fill,
    prefer(id) {
      if (preferred.size >= MAX_PREFERRED) preferred.clear()
      preferred.add(id)
      fill()
    },
    async close() {
      closing.abort()
      disarm()
      await filling
      await Promise.all(active)
      await rm(options.workFolder, { recursive: true, force: true }).catch(onError)
    },
  }
}
