/** The renderer's side of the channel: runs an engine in a process of its own, one job at a time. */

import { setPriority } from 'node:os'
import { messageOf } from '../../errors.js'
import type { FromRenderer, Outcome, ToRenderer } from './channel.js'
import type { Engine } from './engine.js'

/** Lower than the service's own, so that rendering does not delay its responses. */
const PRIORITY = 10

export interface ParentProcess {
  on(event: 'message', listener: (message: ToRenderer) => void): unknown
  on(event: 'disconnect' | 'SIGINT' | 'SIGHUP', listener: () => void): unknown
  send?(message: FromRenderer): unknown
  exit(): void
}

/**
 * Of the whole process, as the system counts it (resident set), since the heap limit of V8 does not cover what decoders
 * take. The most expensive references that are accepted need 1.3 GB.
 */
const MAX_MEMORY_BYTES = 2_048 * 1_048_576
/** Not all memory of a job returns to the system. A process that keeps more than this ends, so that each job begins low. */
const MAX_KEPT_SHARE = 1 / 4
const MEMORY_CHECK_MS = 50

export interface HostOptions {
  readonly parent?: ParentProcess
  readonly maxMemoryBytes?: number
}

export function hostEngine(
  engine: Engine,
  { parent = process, maxMemoryBytes = MAX_MEMORY_BYTES }: HostOptions = {},
): void {
  lowerPriority()
  // Ctrl-C in a terminal reaches every process of its group; the service decides what happens to the job.
  for (const signal of ['SIGINT', 'SIGHUP'] as const) parent.on(signal, () => {})
  // The service has ended.
  parent.on('disconnect', () => parent.exit())

  const send = (message: FromRenderer) => parent.send?.(message)
  const { signal } = new AbortController()
  parent.on('message', async ({ job }) => {
    // Decoders work in threads of their own, so this timer runs beside them. The process cannot end itself: `exit` waits
    // for those threads.
    const watch = setInterval(() => {
      if (process.memoryUsage.rss() <= maxMemoryBytes) return
      clearInterval(watch)
      send({ type: 'too-much-memory', maxBytes: maxMemoryBytes })
    }, MEMORY_CHECK_MS)
    const onProgress = (fraction: number) => send({ type: 'progress', fraction })
    const outcome = await engine.render({ ...job, signal, onProgress }).then(
      (files): Outcome => ({ type: 'done', files }),
      (error): Outcome => ({ type: 'failed', message: messageOf(error) }),
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
