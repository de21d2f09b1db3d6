/** Downloads the outputs of a run that has succeeded. */
import { setTimeout as pause } from 'node:timers/promises'
import type { ApiClient } from '../client/index.js'
import type { DownloadedFile, Downloader, RunOutput } from '../download/index.js'
import type { RushesError } from '../errors.js'
import type { RunState } from '../protocol/run-state.js'

type DownloadOptions = Parameters<Downloader['download']>[1]

export interface DeliverOptions
  extends Pick<DownloadOptions, 'target' | 'namer' | 'earlier' | 'stdout' | 'onProgress'> {
  readonly client: Pick<ApiClient, 'get'>
  readonly downloader: Downloader
  readonly state: RunState
  /** For the names of its files. */
  readonly run: Pick<RunOutput, 'kind' | 'name'>
  readonly signal: AbortSignal
  /** Whether the file of the output with this index may replace another one. */
  mayReplace(index: number): boolean
  /** A file is complete and gets its name next. `index`: of the output. A rejection fails the output. */
  beforeMove(file: DownloadedFile, index: number): Promise<void>
}

export interface Delivered {
  /** The complete ones, in the order of the outputs; after an interruption in the order of their ends. */
  readonly files: readonly DownloadedFile[]
  readonly errors: readonly RushesError[]
  readonly warnings: readonly string[]
  /** What ended the whole download, such as an `Interruption` or a closed standard output. */
  readonly thrown: unknown
}

/** Never rejects. */
export async function deliver(options: DeliverOptions): Promise<Delivered> {
  const { client, downloader, state, run, signal, mayReplace, beforeMove, ...given } = options
  // One status request gives fresh URLs for all outputs of the run.
  let fresh: Promise<RunState> | undefined
  const outputs = state.urls.map(
    (url, index): RunOutput => ({
      url,
      runId: state.id,
      ...run,
      async freshUrl() {
        fresh ??= client.get(state.id, signal)
        return (await fresh).urls[index]
      },
    }),
  )
  const settled: DownloadedFile[] = []
  try {
    const results = await downloader.download(outputs, {
      ...given,
      signal,
      overwrite: (output) => mayReplace(outputs.indexOf(output)),
      beforeMove: (file, output) => beforeMove(file, outputs.indexOf(output)),
      onSettled: (result) => void (result.ok && settled.push(result.file)),
    })
    return {
      files: results.flatMap((result) => (result.ok ? [result.file] : [])),
      errors: results.flatMap((result) => (result.ok ? [] : [result.error])),
      warnings: results.flatMap((result) => (result.ok ? result.warnings : [])),
      thrown: undefined,
    }
  } catch (thrown) {
    return { files: settled, errors: [], warnings: [], thrown }
  }
}

/** Each commit waits for the disk several times: 200 small files would take twice as long with one for each. */
const COMMIT_PAUSE_MS = 50

/** The returned function resolves when the file is recorded: the first at once, later ones together, once in 50 ms. */
export function inSharedCommits(record: (files: readonly DownloadedFile[]) => void) {
  const pending: DownloadedFile[] = []
  let next: Promise<void> | undefined
  let earliestMs = 0
  return (file: DownloadedFile): Promise<void> => {
    pending.push(file)
    next ??= pause(Math.max(0, earliestMs - performance.now())).then(() => {
      next = undefined
      earliestMs = performance.now() + COMMIT_PAUSE_MS
      record(pending.splice(0))
    })
    return next
  }
}
