/** What the tests of downloads stand on: a host of outputs on loopback, an empty folder, and a clock that never waits. */
import { createHash } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
import {
  createDownloader,
  type Downloader,
  type DownloadOptions,
  type RunOutput,
} from '../../src/download/index.js'
import { systemClock } from '../../src/host/clock.js'
import type { Fetch } from '../../src/host/http.js'
import { listen, ONE_PIXEL_PNG, openNetwork, temporaryFolder } from '../support/index.js'

/** Every path below a folder, sorted: what a command has left. */
export const contents = (folder: string): readonly string[] =>
  (readdirSync(folder, { recursive: true }) as string[]).sort()

/** The address of a host that answers with `listener`. */
export const serve = async (listener: RequestListener): Promise<string> =>
  `http://127.0.0.1:${await listen(createServer(listener))}`

export interface Work extends Downloader {
  /** The pauses between the tries, in milliseconds. */
  readonly waits: number[]
}

/** A downloader over the real network, or over `fetch`. Pauses are noted and not made. */
export function createWork(fetch?: Fetch): Work {
  const waits: number[] = []
  const sleep = async (ms: number): Promise<void> => {
    waits.push(ms)
  }
  const clock = { ...systemClock, now: () => Date.UTC(2026, 0, 1), sleep }
  return {
    waits,
    ...createDownloader({
      fetch: fetch ?? openNetwork({ clock: systemClock }).fetch,
      clock,
    }),
  }
}

export const output = (url: string, more: Partial<RunOutput> = {}): RunOutput => ({
  url,
  runId: 'run-1',
  kind: 'image',
  ...more,
})

export const into = (folder: string) => ({ target: { kind: 'folder', folder } }) as const
export const toPath = (template: string) => ({ target: { kind: 'template', template } }) as const

export const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex')

interface OneOutput extends Partial<RunOutput>, Partial<DownloadOptions> {
  readonly folder?: string
  readonly fetch?: Fetch
}

/** Downloads one output, into a folder unless it has another `target`: its result, and the pauses between its tries. */
export async function download(one: OneOutput) {
  const { url = 'https://host.example/x', folder, fetch, target, ...rest } = one
  const { runId = 'run-1', kind = 'image', freshUrl, ...options } = rest
  const work = createWork(fetch)
  const where = target ?? into(folder ?? temporaryFolder()).target
  const [result] = await work.download([{ url, runId, kind, freshUrl }], { ...options, target: where })
  if (result === undefined) throw new Error('no result')
  const error = result.ok ? undefined : result.error
  return { ...result, error, waits: work.waits }
}

/** A whole 1 × 1 picture. */
export const PNG = ONE_PIXEL_PNG
/** The beginnings of files, enough to be told apart. */
export const JPEG = Buffer.from([
  0xff, 0xd8, 0xff, 0xe0, 0, 0x10, 0x4a, 0x46, 0x49, 0x46, 0, 1, 1, 0, 0, 1, 0, 1, 0, 0,
])
export const MP4 = Buffer.concat([Buffer.from([0, 0, 0, 0x18]), Buffer.from('ftypisom\0\0\x02\0isommp42')])
