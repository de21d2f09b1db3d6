/**
 * Runs an engine in child processes, so that rendering never delays a response. A process takes one job at a time and is
 * kept for the next: starting it and loading sharp costs more than drawing a picture. Stopping a job ends its process,
 * which is the only stop that works in the middle of an encoder.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { onAbort } from '../../host/abort.js'
import { type Clock, type Disarm, systemClock } from '../../host/clock.js'
import { describeError } from '../../host/system-error.js'
import { type ChildEnvironment, readStderrTail, rendererEnvironment } from './child-process.js'
import {
  type Engine,
  type RenderedFile,
  RendererClosed,
  RendererCrashed,
  type RenderJob,
  TooMuchMemory,
} from './engine.js'
import type { FromRenderer, RemoteJob } from './host.js'

export interface ProcessEngineOptions {
  /** A module that calls `hostEngine`. */
  readonly script: URL | string
  readonly clock?: Pick<Clock, 'alarm'>
}

export interface ProcessEngine extends Engine {
  /** Ends every process, also those with a job. */
  close(): Promise<void>
}

/** A renderer holds some hundred megabytes, so an idle one is ended after this. */
const MAX_IDLE_MS = 60_000

export function createProcessEngine({ script, clock = systemClock }: ProcessEngineOptions): ProcessEngine {
  const env = rendererEnvironment(process.env)
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

/** One child process, which runs host.ts. */
interface Renderer {
  /** Whether it may be given a job. */
  readonly isUsable: boolean
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>
  /** One job at a time. Rejects with `RendererCrashed` or `TooMuchMemory` when the process ends before the job. */
  work(job: RenderJob): Promise<readonly RenderedFile[]>
  /** Sends SIGTERM, and SIGKILL a little later. */
  end(): Promise<void>
}

/** From SIGTERM to SIGKILL. */
const KILL_AFTER_MS = 1_000
const MAX_STDERR_WAIT_MS = 200

function createRenderer(script: URL | string, env: ChildEnvironment, clock: Pick<Clock, 'alarm'>): Renderer {
  const child = fork(script, [], {
    env: { ...env },
    execArgv: [],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const stderr = readStderrTail(child.stderr)
  let alive = true
  let isReusable = true
  let crash: Error = new RendererCrashed('the renderer exited')
  let tooMuch: TooMuchMemory | undefined
  const ended = new Promise<void>((resolve) => {
    const onEnd = (reason: string) => {
      if (!alive) return
      alive = false
      crash = tooMuch ?? new RendererCrashed(`the renderer crashed (${reason})`, stderr.text)
      resolve()
    }
    child.once('error', (error) => child.pid === undefined && onEnd(describeError(error)))
    child.once('exit', (code, signal) => {
      const reason = signal ?? `exit code ${code}`
      // The rest of stderr may still arrive, but a process that the renderer started may keep the pipe open.
      child.once('close', () => onEnd(reason))
      clock.alarm(MAX_STDERR_WAIT_MS, () => onEnd(reason))
    })
  })
  unrefAll(child)

  /** Rejects the current job. One listener for all jobs: each would stay until the process ends. */
  let failJob = () => {}
  void ended.then(() => failJob())

  async function end(): Promise<void> {
    if (!alive) return
    child.kill('SIGTERM')
    const disarm = clock.alarm(KILL_AFTER_MS, () => child.kill('SIGKILL'))
    child.ref()
    await ended
    disarm()
  }

  return {
    get isUsable() {
      return alive && isReusable && child.connected
    },
    ended,
    work: ({ signal: _signal, onProgress, ...job }) =>
      new Promise((resolve, reject) => {
        child.ref()
        child.channel?.ref()
        const release = () => {
          failJob = () => {}
          child.off('message', onMessage)
          unrefAll(child)
        }
        const onMessage = (received: unknown) => {
          const message = received as FromRenderer
          if (message.type === 'progress') return onProgress?.(message.fraction)
          if (message.type === 'too-much-memory') {
            // The job is rejected when the process has ended. SIGKILL at once, since its memory still grows.
            tooMuch = new TooMuchMemory(message.maxBytes)
            child.off('message', onMessage)
            return void child.kill('SIGKILL')
          }
          release()
          isReusable = message.isReusable
          if (!isReusable) void end()
          if (message.type === 'done') resolve(message.files)
          else reject(new Error(message.message))
        }
        child.on('message', onMessage)
        failJob = () => {
          release()
          reject(crash)
        }
        if (!alive) failJob()
        // A message cannot be sent to a process that has ended; its exit event rejects the job.
        child.send(job satisfies RemoteJob, () => {})
      }),
    end,
  }
}

/** A renderer without a job does not keep the service's process running. */
function unrefAll(child: ChildProcess): void {
  child.unref()
  child.channel?.unref()
  const stderr = child.stderr as (NodeJS.ReadableStream & { unref?(): void }) | null
  stderr?.unref?.()
}
