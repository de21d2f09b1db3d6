/**
 * Downloads outputs in parallel, each to a temporary name. A file is renamed when it is complete and checked, so a file
 * with its final name is always complete. If one download fails, the others continue. The host of an output gets only a
 * plain GET: the given `fetch` must not add the API key.
 *
 * The next attempt resumes an interrupted download, if the host confirms that the file is unchanged. A later command
 * starts again.
 *
 * Limits: a host that declares no length and closes the connection properly is trusted. So is a host that gives a
 * different file the same strong ETag or, without ETags, the same date.
 */
import type { Writable } from 'node:stream'
import { messageOf, RushesError } from '../errors.js'
import { createSlots } from '../host/slots.js'
import type { Destination, DownloadedFile } from '../protocol/media.js'
import { type DeliveredOutput, deliverToFile, deliverToStream, StreamFailed } from './deliver-output.js'
import { createProgress, type DownloadProgress } from './download-progress.js'
import { downloadFailed } from './failures.js'
import type { DownloaderOptions, OutputLink } from './fetch-output.js'
import { Namer, type OutputToName } from './file-names.js'
import { earlierFilesOf } from './final-files.js'
import type { Target } from './target.js'

export type { DownloadProgress } from './download-progress.js'
export type { DownloaderOptions } from './fetch-output.js'
export { folderTarget, parseTarget, type Target } from './target.js'

/**
 * Maximum number of parallel downloads over all calls of one downloader: more would share the same bandwidth and burden
 * the host.
 */
const MAX_CONCURRENT_DOWNLOADS = 4

/** An output of a run. `url` must be an http(s) URL. */
export interface RunOutput extends OutputToName, OutputLink {}

type DownloadResult =
  | ({ readonly ok: true } & DeliveredOutput)
  | { readonly ok: false; readonly error: RushesError }

export interface DownloadOptions {
  readonly target: Target
  /** One per output, as a `Namer` returns them; default: those of the target. */
  readonly names?: readonly string[] | undefined
  /** Whether to replace existing files; a function decides per output. */
  readonly overwrite?: boolean | ((output: RunOutput) => boolean) | undefined
  /** Of the temporary files: see `temporaryBeside`. */
  readonly owner?: string | undefined
  /** Files that earlier commands downloaded, with absolute paths. A file that is unchanged is not downloaded again. */
  readonly earlier?: readonly DownloadedFile[] | undefined
  /**
   * Called when a file is complete, before it gets its final name. May return another final path. A rejection fails the
   * download of this file.
   */
  beforeMove?(file: DownloadedFile, output: RunOutput): Promise<Destination | undefined>
  /** Stream for the bytes if the target is `stdout`. It is not closed. */
  readonly stdout?: Writable | undefined
  readonly signal?: AbortSignal | undefined
  /** Called for every chunk. */
  readonly onProgress?: ((progress: DownloadProgress) => void) | undefined
  /** Called when a download has completed or failed, in that order. */
  readonly onSettled?: ((result: DownloadResult, output: RunOutput) => void) | undefined
}

export interface Downloader {
  /**
   * Resolves with one result per output, in the same order. Pass all outputs of a run in one call. Rejects only with
   * the signal's reason, after parts were removed, or with the error of `stdout` (such as EPIPE).
   */
  download(outputs: readonly RunOutput[], options: DownloadOptions): Promise<readonly DownloadResult[]>
}

export function createDownloader(downloaderOptions: DownloaderOptions): Downloader {
  const slots = createSlots(MAX_CONCURRENT_DOWNLOADS)
  return {
    async download(outputs, options) {
      const { target, overwrite = false, signal, onSettled } = options
      const names = options.names ?? new Namer(target).name(outputs)
      const earlier = earlierFilesOf(options.earlier ?? [])
      const createMeter = createProgress(outputs.length, options.onProgress)

      const downloads = outputs.map(async (output, at) => {
        const meter = createMeter()
        const job = {
          source: output,
          kind: output.kind,
          name: names[at] ?? '',
          overwrite: typeof overwrite === 'function' ? overwrite(output) : overwrite,
          owner: options.owner,
          earlier,
          meter,
          signal,
        }
        const deliver = (release: () => void): Promise<DeliveredOutput> => {
          // Free the slot first, so that the next download does not wait while the caller records this file.
          const beforeMove = (file: DownloadedFile) => {
            release()
            return options.beforeMove?.(file, output)
          }
          const whole = { ...job, beforeMove }
          if (target.kind !== 'stdout') return deliverToFile(downloaderOptions, whole)
          return deliverToStream(downloaderOptions, whole, onlyStream(options, outputs.length))
        }
        // An abort takes the outputs that still wait out of the queue.
        const use = (release: () => void) => settle(() => deliver(release), output, signal)
        const result = await slots.use(use, { signal })
        meter.end()
        onSettled?.(result, output)
        return result
      })
      // After an abort, wait until every download has cleaned up.
      await Promise.allSettled(downloads)
      return Promise.all(downloads)
    },
  }
}

function onlyStream({ stdout }: DownloadOptions, outputs: number): Writable {
  if (stdout === undefined) throw new TypeError('no stream was given for standard output')
  if (outputs > 1) throw downloadFailed(`Standard output takes one output, but the run has ${outputs}`)
  return stdout
}

async function settle(
  deliver: () => Promise<DeliveredOutput>,
  output: RunOutput,
  signal: AbortSignal | undefined,
): Promise<DownloadResult> {
  try {
    return { ok: true, ...(await deliver()) }
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof StreamFailed) throw error.cause
    return { ok: false, error: withRun(error, output.runId) }
  }
}

/**
 * Adds to an error the run id and a hint that the run is paid for. The caller adds how to download the output again.
 */
function withRun(error: unknown, runId: string): RushesError {
  if (!(error instanceof RushesError))
    return new RushesError('internal', messageOf(error), { cause: error, runId })
  return error.with({
    hint: [error.hint, 'The run succeeded and is paid for.'].filter(Boolean).join(' '),
    runId,
  })
}
