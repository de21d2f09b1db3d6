/** The renderer's side of the channel: an engine in a process of its own, one job at a time. */

import { setPriority } from 'node:os'
import { messageOf } from '../../errors.js'
import type { FromRenderer, ToRenderer } from './channel.js'
import type { Engine } from './engine.js'

/** Below the process that answers requests, which so stays quick on a machine that is busy drawing. */
const PRIORITY = 10

export interface Channel {
  on(event: 'message', hear: (message: ToRenderer) => void): unknown
  on(event: 'disconnect' | 'SIGINT' | 'SIGHUP', hear: () => void): unknown
  send?(message: FromRenderer): unknown
  exit(): void
}

export function hostEngine(engine: Engine, channel: Channel = process): void {
  lowerPriority()
  // A terminal sends Ctrl-C to everyone in it; what becomes of the job is for the service to say.
  for (const signal of ['SIGINT', 'SIGHUP'] as const) channel.on(signal, () => {})
  // The service is gone, and nobody waits for the rest of this job.
  channel.on('disconnect', () => channel.exit())

  const tell = (message: FromRenderer) => channel.send?.(message)
  const { signal } = new AbortController()
  channel.on('message', async ({ job }) => {
    try {
      const onProgress = (fraction: number) => tell({ type: 'progress', fraction })
      tell({ type: 'done', files: await engine.render({ ...job, signal, onProgress }) })
    } catch (error) {
      tell({ type: 'failed', message: messageOf(error) })
    }
  })
}

function lowerPriority(): void {
  try {
    setPriority(PRIORITY)
  } catch {
    // Not allowed here: the renderer works all the same.
  }
}
