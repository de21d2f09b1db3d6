/** The renderer's side of the channel: runs an engine in a process of its own, one job at a time. */

import { setPriority } from 'node:os'
import { messageOf } from '../../errors.js'
import type { FromRenderer, ToRenderer } from './channel.js'
import type { Engine } from './engine.js'

/** Lower than the service's own, so that rendering does not delay its responses. */
const PRIORITY = 10

export interface ParentProcess {
  on(event: 'message', listener: (message: ToRenderer) => void): unknown
  on(event: 'disconnect' | 'SIGINT' | 'SIGHUP', listener: () => void): unknown
  send?(message: FromRenderer): unknown
  exit(): void
}

export function hostEngine(engine: Engine, parent: ParentProcess = process): void {
  lowerPriority()
  // Ctrl-C in a terminal reaches every process of its group; the service decides what happens to the job.
  for (const signal of ['SIGINT', 'SIGHUP'] as const) parent.on(signal, () => {})
  // The service has ended.
  parent.on('disconnect', () => parent.exit())

  const send = (message: FromRenderer) => parent.send?.(message)
  const { signal } = new AbortController()
  parent.on('message', async ({ job }) => {
    try {
      const onProgress = (fraction: number) => send({ type: 'progress', fraction })
      send({ type: 'done', files: await engine.render({ ...job, signal, onProgress }) })
    } catch (error) {
      send({ type: 'failed', message: messageOf(error) })
    }
  })
}

function lowerPriority(): void {
  try {
    setPriority(PRIORITY)
  } catch {
    // Not permitted here; rendering works without it.
  }
}
