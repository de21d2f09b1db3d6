/** Engines for tests. They write small files and render nothing. */
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Engine, RenderJob } from '../../src/service/engines/engine.js'

/** A real PNG of one transparent pixel. */
export const ONE_PIXEL_PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)

export const ONE_PIXEL_URL = `data:image/png;base64,${ONE_PIXEL_PNG.toString('base64')}`

interface RecordingEngine extends Engine {
  /** Every job started, in order. */
  readonly jobs: readonly RecordedJob[]
}

interface RecordedJob extends RenderJob {
  /** Contents of the reference files, because the files are removed after the job. */
  readonly images?: readonly (Buffer | undefined)[]
}

const recorded = async (job: RenderJob): Promise<Required<Pick<RecordedJob, 'images'>> & RenderJob> => ({
  ...job,
  images: await Promise.all(job.references.map((path) => (path ? readFile(path) : undefined))),
})

export interface InstantEngineOptions {
  readonly files?: readonly string[]
  readonly bytes?: Uint8Array
  readonly contentType?: string
}

/** Engine that writes its files immediately. */
export function createInstantEngine({
  files = ['image.png'],
  bytes = ONE_PIXEL_PNG,
  contentType = 'image/png',
}: InstantEngineOptions = {}): RecordingEngine {
  const jobs: RecordedJob[] = []
  return {
    jobs,
    async render(job) {
      jobs.push(await recorded(job))
      for (const name of files) await writeFile(join(job.folder, name), bytes)
      return files.map((name) => ({ name, contentType }))
    },
  }
}

const MP4_HEAD = Buffer.from('\0\0\0\x18ftypmp42\0\0\0\0mp42isom', 'latin1')

/**
 * Command of an engine whose output is a header, then random bytes. Random bytes alone are taken for another type, as
 * mp3 or exe, in one of 1,700 cases.
 */
export function randomOutput(name: `${string}.${'png' | 'mp4'}`, bytes: number): string {
  const head = name.endsWith('.png') ? ONE_PIXEL_PNG : MP4_HEAD
  const random = `head -c ${bytes - head.byteLength} /dev/urandom`
  return `{ echo ${head.toString('base64')} | base64 -d; ${random}; } > "$RUSHES_OUTPUT_DIR/${name}"`
}

interface FamilyEngine extends RecordingEngine {
  /** Number of outputs of each later run. */
  outputs: number
}

/**
 * Engine whose output consists of the prompt without exclamation marks, and of the references. `isDistinct`: also of the
 * number of the run, so that two runs of one input have different outputs.
 */
export function createFamilyEngine({ outputs = 1, isDistinct = false } = {}): FamilyEngine {
  const jobs: RecordedJob[] = []
  return {
    jobs,
    outputs,
    async render(asked) {
      const job = await recorded(asked)
      jobs.push(job)
      const prompt = String(job.input.prompt)
      if (prompt.includes('FAIL')) throw new Error(`cannot draw ${prompt}`)
      const sum = createHash('sha256').update(prompt.replaceAll('!', ''))
      for (const image of job.images) sum.update(image ?? 'missing')
      if (isDistinct) sum.update(`${jobs.length}`)
      const [head, name, contentType] =
        job.kind === 'video'
          ? [MP4_HEAD, 'video.mp4', 'video/mp4']
          : [ONE_PIXEL_PNG, 'image.png', 'image/png']
      const files = Array.from({ length: this.outputs }, (_, at) => ({ name: `${at}-${name}`, contentType }))
      const digest = sum.digest('hex')
      for (const [at, file] of files.entries())
        await writeFile(join(job.folder, file.name), Buffer.concat([head, Buffer.from(`${digest}${at}`)]))
      return files
    },
  }
}

interface CommandedEngine extends RecordingEngine {
  /** Number of jobs that wait for `finish` or `fail`. */
  readonly waiting: number
  /** Completes the oldest waiting job with one file. */
  finish(): void
  /** Fails the oldest waiting job. */
  fail(error: Error): void
}

/** Engine whose jobs wait for `finish` or `fail`. A job stops when aborted, unless the engine is `stuck`. */
export function createCommandedEngine({ stuck = false } = {}): CommandedEngine {
  const jobs: RecordedJob[] = []
  const waiting: { resolve(): void; reject(error: unknown): void }[] = []
  return {
    jobs,
    get waiting() {
      return waiting.length
    },
    finish: () => waiting.shift()?.resolve(),
    fail: (error) => waiting.shift()?.reject(error),
    async render(asked) {
      const job = await recorded(asked)
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
