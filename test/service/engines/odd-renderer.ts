/** A renderer for tests, built as the real one is: what it does is written in the prompt. */
import { spawn } from 'node:child_process'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { RenderJob } from '../../../src/service/engines/engine.js'
import { hostEngine } from '../../../src/service/engines/host.js'

const MEBIBYTE = 1_048_576

const deeds: Readonly<Record<string, (job: RenderJob) => Promise<void> | void>> = {
  pid: (job) => writeFile(join(job.folder, 'file'), String(process.pid)),
  references: (job) =>
    writeFile(join(job.folder, 'file'), JSON.stringify(job.references.map((each) => each ?? null))),
  env: (job) => writeFile(join(job.folder, 'file'), Object.keys(process.env).join('\n')),
  error: () => Promise.reject(new Error('the paint has run out')),
  crash: () => {
    process.stderr.write('out of canvas\n')
    process.abort()
  },
  orphan: () => {
    spawn(process.execPath, ['-e', 'setTimeout(() => {}, 3000)'], { stdio: ['ignore', 'ignore', 'inherit'] })
    process.exit(7)
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
  // Block by block, with turns between them in which its memory is measured.
  memory: async (job) => {
    await deeds.pid?.(job)
    for (const held: Buffer[] = []; ; await new Promise(setImmediate))
      held.push(Buffer.alloc(16 * MEBIBYTE, 1))
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
  { maxMemoryBytes: 256 * MEBIBYTE },
)
