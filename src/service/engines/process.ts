/**
 * Runs an engine in child processes, so that rendering does not delay responses. A process runs one job at a time and
 * is kept for the next job, because starting a process and loading sharp takes longer than drawing a picture. To abort
 * a job, its process is ended: nothing else can stop an encoder.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { onAbort } from '../../host/abort.js'
import { type Clock, type Disarm, systemClock } from '../../host/clock.js'
import { describeError } from '../../host/system-error.js'
import { type ChildEnvironment, readStderrTail, rendererEnvironment } from './child-process.js'
import {
  type Engine,
  type RemoteJob,
  type RenderedFile,
  RendererClosed,
  RendererCrashed,
  type RenderJob,
  TooMuchMemory,
} from './engine.js'
import type { FromRenderer } from './host.js'

export interface ProcessEngineOptions {
  /** A module that calls `hostEngine`. */
  readonly script: URL | string
  readonly clock?: Clock
}

/** Time after which an idle renderer is ended, because it uses several hundred megabytes. */
const MAX_IDLE_MS = 60_000

export function createProcessEngine({
  script,
  clock = systemClock,
}: ProcessEngineOptions): Required<Pick<Engine, 'render' | 'close'>> {
  const env = rendererEnvironment(process.env)
  const all = new Set<Renderer>()
  const idle: { readonly renderer: Renderer; readonly disarm: Disarm }[] = []
  let closed = false

  function take(): Renderer {
    for (let idleEntry = idle.pop(); idleEntry !== undefined; idleEntry = idle.pop()) {
      idleEntry.disarm()
      if (idleEntry.renderer.isUsable) return idleEntry.renderer
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
      idle.splice(idle.indexOf(idleEntry), 1)
      void renderer.end()
    })
    const idleEntry = { renderer, disarm }
    idle.push(idleEntry)
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

/** If the job is aborted, rejects only after the process has ended. */
async function runJob(renderer: Renderer, job: RenderJob): Promise<readonly RenderedFile[]> {
  const removeListener = onAbort(job.signal, () => void renderer.end())
  try {
    return await renderer.work(job)
  } catch (error) {
    if (!job.signal.aborted) throw error
    await renderer.ended
    throw job.signal.reason
  } finally {
    removeListener()
  }
}

/** A child process that runs host.ts. */
interface Renderer {
  /** Whether the renderer may get a job. */
  readonly isUsable: boolean
  /** Resolves when the process has ended. */
  readonly ended: Promise<void>
  /**
   * Runs one job; must not be called during a job. Rejects with `RendererCrashed` or `TooMuchMemory` when the process
   * ends before the job is finished.
   */
  work(job: RenderJob): Promise<readonly RenderedFile[]>
  /** Sends SIGTERM, and SIGKILL after `KILL_AFTER_MS`. */
  end(): Promise<void>
}

/** Time from SIGTERM to SIGKILL. */
const KILL_AFTER_MS = 1_000
const MAX_STDERR_WAIT_MS = 200

function createRenderer(script: URL | string, env: ChildEnvironment, clock: Clock): Renderer {
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
  let memoryError: TooMuchMemory | undefined
  const ended = new Promise<void>((resolve) => {
    const onEnd = (reason: string) => {
      if (!alive) return
      alive = false
      crash = memoryError ?? new RendererCrashed(`the renderer crashed (${reason})`, stderr.text)
      resolve()
    }
    child.once('error', (error) => child.pid === undefined && onEnd(describeError(error)))
    child.once('exit', (code, signal) => {
      const reason = signal ?? `exit code ${code}`
      // Wait for the rest of stderr, but not without a limit: a process that the renderer started may keep the pipe
      // open.
      child.once('close', () => onEnd(reason))
      clock.alarm(MAX_STDERR_WAIT_MS, () => onEnd(reason))
    })
  })
  unrefAll(child)

  /**
   * Rejects the current job. All jobs share one listener, because a listener per job would stay until the process ends.
   */
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
    work: ({ kind, run, input, folder, references, onProgress }) =>
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
            // `ended` rejects the job. Use SIGKILL at once, because the memory use still grows.
            memoryError = new TooMuchMemory(message.maxBytes)
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
        // Ignore send errors: if the process has ended, its exit event rejects the job.
        const job: RemoteJob = { kind, ...(run && { run }), input, folder, references }
        child.send(job, () => {})
      }),
    end,
  }
}

/** Lets the service exit although a renderer without a job still runs. */
function unrefAll(child: ChildProcess): void {
  child.unref()
  child.channel?.unref()
  const stderr = child.stderr as (NodeJS.ReadableStream & { unref?(): void }) | null
  stderr?.unref?.()
}
