/** The side of the child process: runs an engine, one job at a time, and exchanges messages with the service (process.ts). */

import { setPriority } from 'node:os'
import { messageOf } from '../../errors.js'
import type { Engine, RenderedFile, RenderJob } from './engine.js'

/** Lower than the service's own, so that rendering does not delay its responses. */
const PRIORITY = 10

/**
 * Of the whole process, as the system counts it (resident set), since the heap limit of V8 does not cover what decoders
 * take. The most expensive references that are accepted need 1.3 GB.
 */
const MAX_MEMORY_BYTES = 2_048 * 1_048_576
/** Not all memory of a job returns to the system. A process that keeps more than this ends, so that each job begins low. */
const MAX_KEPT_SHARE = 1 / 4
const MEMORY_CHECK_MS = 50

export function hostEngine(engine: Engine, { maxMemoryBytes = MAX_MEMORY_BYTES } = {}): void {
  lowerPriority()
  // Ctrl-C in a terminal reaches every process of its group; the service decides what happens to the job.
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
  // The service has ended.
  process.on('disconnect', () => process.exit())

  const send = (message: FromRenderer) => process.send?.(message)
  const { signal } = new AbortController()
  process.on('message', async (message) => {
    const job = message as RemoteJob
    // Decoders work in separate threads, so this timer runs beside them. The process cannot end itself: `exit` waits for
    // those threads.
    const watch = setInterval(() => {
      if (process.memoryUsage.rss() <= maxMemoryBytes) return
      clearInterval(watch)
      send({ type: 'too-much-memory', maxBytes: maxMemoryBytes })
    }, MEMORY_CHECK_MS)
    const onProgress = (fraction: number) => send({ type: 'progress', fraction })
    const outcome = await engine.render({ ...job, signal, onProgress }).then(
      (files): RenderOutcome => ({ type: 'done', files }),
      (error): RenderOutcome => ({ type: 'failed', message: messageOf(error) }),
    )
    clearInterval(watch)
    send({ ...outcome, isReusable: process.memoryUsage.rss() <= maxMemoryBytes * MAX_KEPT_SHARE })
  })
}

function lowerPriority(): void {
  try {
    setPriority(PRIORITY)
  } catch {
    // Not permitted here; rendering works without it.
  }
}

/** A job without its functions: to stop it, the service ends the process. */
export type RemoteJob = Omit<RenderJob, 'signal' | 'onProgress'>

export type FromRenderer =
  | { readonly type: 'progress'; readonly fraction: number }
  /** `isReusable`: whether the process may be given another job. */
  | (RenderOutcome & { readonly isReusable: boolean })
  /** Sent at the memory limit; the service then ends the process. */
  | { readonly type: 'too-much-memory'; readonly maxBytes: number }

type RenderOutcome =
  | { readonly type: 'done'; readonly files: readonly RenderedFile[] }
  | { readonly type: 'failed'; readonly message: string }
