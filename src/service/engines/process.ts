/**
 * An engine in processes of their own, so that drawing never holds up an answer. A process does one job at a time and
 * is kept for the next one: starting it and loading what draws costs more than many a picture. Stopping a job ends its
 * process, which is the only stop that works in the middle of an encoder.
 */
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { onAbort } from '../../host/abort.js'
import { type Clock, type Disarm, systemClock } from '../../host/clock.js'
import type { Engine, RenderedFile, RenderJob } from './engine.js'
import { RendererDied } from './renderer-crashed.js'
import { createRenderer, type Renderer } from './renderer-process.js'

export interface ProcessEngineOptions {
  /** A module that calls `hostEngine`. */
  readonly script: URL | string
  /** The environment of the process; by default this one's, without the API key. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined
  readonly clock?: Pick<Clock, 'alarm'>
}

export interface ProcessEngine extends Engine {
  /** Ends every process; those at work too. */
  close(): Promise<void>
}

/** A process without work is ended after this: a renderer keeps some hundred megabytes. */
const IDLE_MS = 60_000

export function createProcessEngine({
  script,
  env = withoutKeys(process.env),
  clock = systemClock,
}: ProcessEngineOptions): ProcessEngine {
  const all = new Set<Renderer>()
  const idle: { readonly renderer: Renderer; readonly disarm: Disarm }[] = []
  let closed = false

  function take(): Renderer {
    for (let kept = idle.pop(); kept !== undefined; kept = idle.pop()) {
      kept.disarm()
      if (kept.renderer.isAlive) return kept.renderer
    }
    const renderer = createRenderer(script, env, clock)
    all.add(renderer)
    renderer.ended.then(() => all.delete(renderer))
    return renderer
  }

  function putBack(renderer: Renderer): void {
    if (!renderer.isAlive) return
    if (closed) return void renderer.end()
    const disarm = clock.alarm(IDLE_MS, () => {
      idle.splice(idle.indexOf(kept), 1)
      void renderer.end()
    })
    const kept = { renderer, disarm }
    idle.push(kept)
  }

  return {
    async render(job) {
      job.signal.throwIfAborted()
      if (closed) throw new RendererDied('the renderer has been closed')
      const renderer = take()
      try {
        return await orEnded(renderer, job)
      } finally {
        putBack(renderer)
      }
    },
    async close() {
      closed = true
      for (const { disarm } of idle.splice(0)) disarm()
      await Promise.all([...all].map((renderer) => renderer.end()))
    },
  }
}

/** The job's outcome; when it is aborted, the process is ended first, so that nothing writes any more. */
async function orEnded(renderer: Renderer, job: RenderJob): Promise<readonly RenderedFile[]> {
  const forget = onAbort(job.signal, () => void renderer.end())
  try {
    return await renderer.work(job)
  } catch (error) {
    if (!job.signal.aborted) throw error
    await renderer.ended
    for (const name of await readdir(job.folder).catch(() => []))
      await rm(join(job.folder, name), { recursive: true, force: true })
    throw job.signal.reason
  } finally {
    forget()
  }
}

/** A renderer calls nobody, so it is told no key. */
const withoutKeys = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith('RUSHES_API_KEY')))
