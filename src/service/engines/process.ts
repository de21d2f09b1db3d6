/**
 * Runs an engine in child processes, one for each job, so that rendering does not delay responses. To abort a job, its
 * process is ended: nothing else can stop an encoder.
 */
import { fork } from 'node:child_process'
import { onAbort } from '../../host/abort.js'
import { type Clock, systemClock } from '../../host/clock.js'
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

export function createProcessEngine({
  script,
  clock = systemClock,
}: ProcessEngineOptions): Required<Pick<Engine, 'render' | 'close'>> {
  const env = rendererEnvironment(process.env)
  const running = new Set<Renderer>()
  let isClosed = false
  return {
    /** If the job is aborted, rejects only after the process has ended. */
    async render(job) {
      job.signal.throwIfAborted()
      if (isClosed) throw new RendererClosed()
      const renderer = startRenderer(script, env, clock, job)
      running.add(renderer)
      const forget = onAbort(job.signal, () => void renderer.end())
      try {
        return await renderer.files
      } catch (error) {
        throw isClosed && !job.signal.aborted ? new RendererClosed() : error
      } finally {
        forget()
        await renderer.end()
        running.delete(renderer)
        job.signal.throwIfAborted()
      }
    },
    async close() {
      isClosed = true
      await Promise.all([...running].map((renderer) => renderer.end()))
    },
  }
}

/** A child process that runs host.ts. */
interface Renderer {
  /** Rejects with `RendererCrashed` or `TooMuchMemory` when the process ends before its job is finished. */
  readonly files: Promise<readonly RenderedFile[]>
  /** Sends SIGTERM, and SIGKILL after `KILL_AFTER_MS`. Resolves when the process has ended. */
  end(): Promise<void>
}

/** Time from SIGTERM to SIGKILL. */
const KILL_AFTER_MS = 1_000
const MAX_STDERR_WAIT_MS = 200

function startRenderer(
  script: URL | string,
  env: ChildEnvironment,
  clock: Clock,
  { kind, run, input, folder, references, onProgress }: RenderJob,
): Renderer {
  const child = fork(script, [], {
    env: { ...env },
    execArgv: [],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
  })
  const stderrTail = readStderrTail(child.stderr)
  const ended = new Promise<string>((resolve) => {
    child.once('error', (error) => child.pid === undefined && resolve(describeError(error)))
    child.once('exit', (code, signal) => {
      const reason = signal ?? `exit code ${code}`
      // Wait for the rest of stderr, but not without a limit: a process that the renderer started may keep the pipe
      // open.
      child.once('close', () => resolve(reason))
      clock.alarm(MAX_STDERR_WAIT_MS, () => resolve(reason))
    })
  })
  const files = new Promise<readonly RenderedFile[]>((resolve, reject) => {
    child.on('message', (received) => {
      const message = received as FromRenderer
      if (message.type === 'progress') return onProgress?.(message.fraction)
      if (message.type === 'done') return resolve(message.files)
      if (message.type === 'failed') return reject(new Error(message.message))
      reject(new TooMuchMemory(message.maxBytes))
      // At once, because the memory use still grows.
      child.kill('SIGKILL')
    })
    void ended.then((reason) => reject(new RendererCrashed(`the renderer crashed (${reason})`, stderrTail())))
  })
  const job: RemoteJob = { kind, ...(run && { run }), input, folder, references }
  // Without a free file descriptor there is no channel. Ignore errors: if the process has ended, that rejects the job.
  if (child.connected) child.send(job, () => {})
  return {
    files,
    async end() {
      child.kill('SIGTERM')
      const disarm = clock.alarm(KILL_AFTER_MS, () => child.kill('SIGKILL'))
      await ended
      disarm()
    },
  }
}
