/** Processes of a proof other than the service: the probe of `/healthz`, and loads. */
import { type ChildProcess, fork } from 'node:child_process'
import { onTestFinished } from 'vitest'
import type { ProbeReport } from '../abuse/health-probe.js'

/** Starts a process that ends with the test. */
export function forked(script: string, ...words: string[]): ChildProcess {
  const child = fork(script, words)
  onTestFinished(() => void child.kill('SIGKILL'))
  return child
}

/** Returns the next message of a process. Rejects if the process ends without one. */
export const messageOf = (child: ChildProcess): Promise<unknown> =>
  new Promise((resolve, reject) => {
    const onExit = (code: number | null, signal: NodeJS.Signals | null) =>
      reject(new Error(`a process of the proof ended: ${code ?? signal}`))
    child.once('exit', onExit)
    child.once('message', (report) => {
      child.off('exit', onExit)
      resolve(report)
    })
  })

export interface HealthProbe {
  /** Returns the measurements since the probe started. */
  report(): Promise<ProbeReport>
}

/** Starts the probe. `script`: the built `health-probe.ts`. */
export async function probeHealth(script: string, url: string): Promise<HealthProbe> {
  const child = forked(script, `${url}/healthz`)
  await messageOf(child)
  return {
    async report() {
      child.send('report')
      return (await messageOf(child)) as ProbeReport
    },
  }
}
