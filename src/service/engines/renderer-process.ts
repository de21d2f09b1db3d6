/** The service's side of the channel: one renderer process. */

import { type ChildProcess, fork } from 'node:child_process'
import type { Clock } from '../../host/clock.js'
import { describeError } from '../../host/system-error.js'
import type { FromRenderer, ToRenderer } from './channel.js'
import type { RenderedFile, RenderJob } from './engine.js'
import { RendererCrashed, TooMuchMemory } from './renderer-crashed.js'
import { readStderrTail } from './stderr-tail.js'

export interface Renderer {
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

export function createRenderer(
  script: URL | string,
  env: Readonly<Record<string, string | undefined>>,
  clock: Pick<Clock, 'alarm'>,
): Renderer {
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

  /** Rejects the job that is being rendered. One listener for all jobs: each would stay until the process ends. */
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
            // Rejected when it has ended. SIGKILL at once, since it takes more memory until then.
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
        const message: ToRenderer = { type: 'render', job }
        // A message cannot be sent to a process that has ended; its exit event rejects the job.
        child.send(message, () => {})
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
