/**
 * Runs an engine in child processes, so that rendering never delays a response. A process takes one job at a time and is
 * kept for the next: starting it and loading sharp costs more than drawing a picture. Stopping a job ends its process,
 * which is the only stop that works in the middle of an encoder.
 */
import { onAbort } from '../../host/abort.js'
import { type Clock, type Disarm, systemClock } from '../../host/clock.js'
import type { Engine, RenderedFile, RenderJob } from './engine.js'
import { type Env, rendererEnvironment } from './environment.js'
import { RendererClosed } from './renderer-crashed.js'
import { createRenderer, type Renderer } from './renderer-process.js'

export interface ProcessEngineOptions {
  /** A module that calls `hostEngine`. */
  readonly script: URL | string
  /** The environment of the process; by default this one's, without keys and passwords. */
  readonly env?: Env | undefined
  readonly clock?: Pick<Clock, 'alarm'>
}

export interface ProcessEngine extends Engine {
  /** Ends every process, those with a job too. */
  close(): Promise<void>
}

/** A renderer holds some hundred megabytes, so an idle one is ended after this. */
const MAX_IDLE_MS = 60_000

export function createProcessEngine({
  script,
  env = rendererEnvironment(process.env),
  clock = systemClock,
}: ProcessEngineOptions): ProcessEngine {
  const all = new Set<Renderer>()
  const idle: { readonly renderer: Renderer; readonly disarm: Disarm }[] = []
  let closed = false

  function take(): Renderer {
    for (let kept = idle.pop(); kept !== undefined; kept = idle.pop()) {
      kept.disarm()
      if (kept.renderer.isUsable) return kept.renderer
    }
    const renderer = createRenderer(script, env, clock)
    all.add(renderer)
    renderer.ended.then(() => all.delete(renderer))
    return renderer
  }

  function putBack(renderer: Renderer): void {
    if (!renderer.isUsable) return
    if (closed) return void renderer.end()
    const disarm = clock.alarm(MAX_IDLE_MS, () => {
      idle.splice(idle.indexOf(kept), 1)
      void renderer.end()
    })
    const kept = { renderer, disarm }
    idle.push(kept)
  }

  return {
    async render(job) {
      job.signal.throwIfAborted()
      if (closed) throw new RendererClosed()
      const renderer = take()
      try {
        return await runJob(renderer, job)
      } catch (error) {
        throw closed && !job.signal.aborted ? new RendererClosed() : error
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

/** When the job is aborted, rejects only after the process has ended. */
async function runJob(renderer: Renderer, job: RenderJob): Promise<readonly RenderedFile[]> {
  const forget = onAbort(job.signal, () => void renderer.end())
  try {
    return await renderer.work(job)
  } catch (error) {
    if (!job.signal.aborted) throw error
    await renderer.ended
    throw job.signal.reason
  } finally {
    forget()
  }
}
