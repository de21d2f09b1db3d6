/**
 * The code in the child process. Runs an engine for one job, and exchanges messages with the service
 * (process.ts).
 */
import { setPriority } from 'node:os'
import { messageOf } from '../../errors.js'
import type { Engine, RemoteJob, RenderedFile } from './engine.js'

/** Lower priority than the service, so that rendering does not delay its responses. */
const PRIORITY = 10

/**
 * Memory limit of the whole process (resident set size). The heap limit of V8 does not include the memory of image
 * decoders. The most expensive accepted references need 1.3 GB.
 */
const MAX_MEMORY_BYTES = 2_048 * 1_048_576
const MEMORY_CHECK_MS = 50

export function hostEngine(engine: Engine, { maxMemoryBytes = MAX_MEMORY_BYTES } = {}): void {
  lowerPriority()
  // Ignored: Ctrl-C in a terminal reaches all processes of the group, and the service decides what happens to the job.
  for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {})
  // The connection closes when the service has ended.
  process.on('disconnect', () => process.exit())

  const send = (message: FromRenderer) => process.send?.(message)
  const { signal } = new AbortController()
  process.once('message', async (message) => {
    const job = message as RemoteJob
    // Decoders run in separate threads, so this timer still fires. The process cannot end itself, because `exit` waits
    // for those threads.
    const watch = setInterval(() => {
      if (process.memoryUsage.rss() <= maxMemoryBytes) return
      clearInterval(watch)
      send({ type: 'too-much-memory', maxBytes: maxMemoryBytes })
    }, MEMORY_CHECK_MS)
    const onProgress = (fraction: number) => send({ type: 'progress', fraction })
    const outcome = await engine.render({ ...job, signal, onProgress }).then(
      (files): FromRenderer => ({ type: 'done', files }),
      (error): FromRenderer => ({ type: 'failed', message: messageOf(error) }),
    )
    clearInterval(watch)
    send(outcome)
  })
}

function lowerPriority(): void {
  try {
    setPriority(PRIORITY)
  } catch {
    // Not permitted on this system. Rendering also works at normal priority.
  }
}

export type FromRenderer =
  | { readonly type: 'progress'; readonly fraction: number }
  | { readonly type: 'done'; readonly files: readonly RenderedFile[] }
  | { readonly type: 'failed'; readonly message: string }
  /** Sent when the process exceeds its memory limit. The service then ends the process. */
  | { readonly type: 'too-much-memory'; readonly maxBytes: number }
