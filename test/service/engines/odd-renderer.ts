/** A renderer for tests, built as the real one is: what it does is written in the prompt. */
import { spawn } from 'node:child_process'
import { randomFill } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { RenderJob } from '../../../src/service/engines/engine.js'
import { hostEngine } from '../../../src/service/engines/host.js'

const MEBIBYTE = 1_048_576
export let kept: Buffer | undefined

const deeds: Readonly<Record<string, (job: RenderJob) => Promise<void> | void>> = {
  pid: (job) => writeFile(join(job.folder, 'file'), String(process.pid)),
  references: (job) =>
    writeFile(
      join(job.folder, 'file'),
      JSON.stringify(job.references.map((each) => each?.byteLength ?? null)),
    ),
  env: (job) => writeFile(join(job.folder, 'file'), Object.keys(process.env).join('\n')),
  error: () => Promise.reject(new Error('the paint has run out')),
  crash: () => {
    process.stderr.write('out of canvas\n')
    process.abort()
  },
  leave: () => process.exit(7),
  orphan: (job) => {
    spawn(process.execPath, ['-e', 'setTimeout(() => {}, 3000)'], { stdio: ['ignore', 'ignore', 'inherit'] })
    return deeds.leave?.(job)
  },
  progress: async (job) => {
    for (const fraction of [0.25, 0.5, 1]) job.onProgress?.(fraction)
    await deeds.pid?.(job)
  },
  hang: async (job) => {
    await deeds.pid?.(job)
    job.onProgress?.(0)
    await new Promise((resolve) => setTimeout(resolve, 60_000))
  },
  // In the threads of libuv, as a decoder does.
  memory: async (job) => {
    await deeds.pid?.(job)
    const fill = promisify<Buffer, void>(randomFill)
    for (const held: Buffer[] = []; ; ) {
      const block = Buffer.allocUnsafe(16 * MEBIBYTE)
      await fill(block)
      held.push(block)
    }
  },
  // More than a process may keep, and less than it may have.
  large: async (job) => {
    kept = Buffer.alloc(150 * MEBIBYTE, 1)
    await deeds.pid?.(job)
  },
  stubborn: (job) => {
    process.on('SIGTERM', () => {})
    return deeds.hang?.(job)
  },
}

hostEngine(
  {
    async render(job) {
      await deeds[String(job.input.prompt)]?.(job)
      return [{ name: 'file', contentType: 'text/plain' }]
    },
  },
  { maxMemoryBytes: 480 * MEBIBYTE },
)
