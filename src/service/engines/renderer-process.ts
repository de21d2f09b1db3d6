/** One renderer process, seen from the service. */
import { type ChildProcess, fork } from 'node:child_process'
import type { Clock } from '../../host/clock.js'
import { printable } from '../../protocol/text.js'
import type { FromRenderer, ToRenderer } from './channel.js'
import type { RenderedFile, RenderJob } from './engine.js'
import { RendererDied } from './renderer-crashed.js'
import { hearLastWords } from './stderr-tail.js'

export interface Renderer {
  readonly isAlive: boolean
  /** Resolves when the process is gone. */
  readonly ended: Promise<void>
  /** One job at a time. Rejects with `RendererDied` when the process ends before the job. */
  work(job: RenderJob): Promise<readonly RenderedFile[]>
  /** Asks the process to end, and ends it by force when it does not. */
  end(): Promise<void>
}

/** From SIGTERM to SIGKILL. */
const KILL_AFTER_MS = 1_000
const LAST_WORDS_MS = 200

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
  const words = hearLastWords(child.stderr)
  let alive = true
  let death = new RendererDied('the renderer has ended')
  const ended = new Promise<void>((resolve) => {
    const die = (how: string) => {
      if (!alive) return
      alive = false
      const last = printable(words.said)
      death = new RendererDied(`the renderer died (${how})${last === '' ? '' : `: ${last}`}`)
      resolve()
    }
    child.once('error', (error) => child.pid === undefined && die(error.message))
    child.once('exit', (code, signal) => {
      const how = signal ?? `exit code ${code}`
      // Its last words may still be on their way; but a process that it started may hold that line open for long.
      child.once('close', () => die(how))
      clock.alarm(LAST_WORDS_MS, () => die(how))
    })
  })
  keepNobodyAlive(child)

  return {
    get isAlive() {
      return alive && child.connected
    },
    ended,
    work: ({ signal: _signal, onProgress, ...job }) =>
      new Promise((resolve, reject) => {
        child.ref()
        child.channel?.ref()
        const rest = () => {
          child.off('message', hear)
          keepNobodyAlive(child)
        }
        const hear = (message: unknown) => {
          const said = message as FromRenderer
          if (said.type === 'progress') return onProgress?.(said.fraction)
          rest()
          if (said.type === 'done') resolve(said.files)
          else reject(new Error(said.message))
        }
        child.on('message', hear)
        ended.then(() => {
          rest()
          reject(death)
        })
        const order: ToRenderer = { type: 'render', job }
        // When it cannot be sent, the process is about to be seen dead.
        child.send(order, () => {})
      }),
    async end() {
      if (!alive) return
      child.kill('SIGTERM')
      const disarm = clock.alarm(KILL_AFTER_MS, () => child.kill('SIGKILL'))
      child.ref()
      await ended
      disarm()
    },
  }
}

/** A renderer without work is no reason for the service's process to go on. */
function keepNobodyAlive(child: ChildProcess): void {
  child.unref()
  child.channel?.unref()
  const stderr = child.stderr as (NodeJS.ReadableStream & { unref?(): void }) | null
  stderr?.unref?.()
}
