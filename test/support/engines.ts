/** Engines that do what a test needs and draw nothing. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Engine, RenderJob } from '../../src/service/engines/engine.js'

/** A real PNG of one transparent pixel. */
export const ONE_PIXEL_PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)

export interface RecordingEngine extends Engine {
  /** Every job that was begun, in order. */
  readonly jobs: readonly RenderJob[]
}

export interface InstantEngineOptions {
  readonly files?: readonly string[]
  readonly bytes?: Uint8Array
  readonly contentType?: string
}

/** Makes its files at once. */
export function createInstantEngine({
  files = ['image.png'],
  bytes = ONE_PIXEL_PNG,
  contentType = 'image/png',
}: InstantEngineOptions = {}): RecordingEngine {
  const jobs: RenderJob[] = []
  return {
    jobs,
    async render(job) {
      jobs.push(job)
      for (const name of files) await writeFile(join(job.folder, name), bytes)
      return files.map((name) => ({ name, contentType }))
    },
  }
}

export interface CommandedEngine extends RecordingEngine {
  /** How many jobs are waiting for the test's word. */
  readonly waiting: number
  /** Lets the oldest waiting job write its one file. */
  finish(): void
  /** Lets the oldest waiting job fail. */
  fail(error: Error): void
}

/** Begins a job and waits for the test's word. Stops when aborted, unless it is `stuck`. */
export function createCommandedEngine({ stuck = false } = {}): CommandedEngine {
  const jobs: RenderJob[] = []
  const waiting: { resolve(): void; reject(error: unknown): void }[] = []
  return {
    jobs,
    get waiting() {
      return waiting.length
    },
    finish: () => waiting.shift()?.resolve(),
    fail: (error) => waiting.shift()?.reject(error),
    async render(job) {
      jobs.push(job)
      await new Promise<void>((resolve, reject) => {
        const turn = { resolve, reject }
        waiting.push(turn)
        if (stuck) return
        job.signal.addEventListener('abort', () => {
          waiting.splice(waiting.indexOf(turn), 1)
          reject(job.signal.reason)
        })
      })
      await writeFile(join(job.folder, 'image.png'), ONE_PIXEL_PNG)
      return [{ name: 'image.png', contentType: 'image/png' }]
    },
  }
}
