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
import { createReadStream } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { messageOf, RushesError } from '../errors.js'
import { raceAbort } from '../host/abort.js'
import { makeOwnFolder } from '../host/own-folder.js'
import { createSlots } from '../host/slots.js'
import type { Destination, DownloadedFile } from '../protocol/media.js'
import {
  type DownloaderOptions,
  type FileMeter,
  OutputDownload,
  type OutputJob,
  type OutputLink,
} from './fetch-output.js'
import { misnamed } from './file-kind.js'
import { awaitsExtension, Namer, type OutputToName, type Target } from './file-names.js'
import {
  downloadFailed,
  findUnchanged,
  moveIntoPlace,
  refuseObstacle,
  withWriteErrors,
} from './final-files.js'

export type { DownloaderOptions } from './fetch-output.js'
export { folderTarget, type Target } from './file-names.js'

/**
 * Maximum number of parallel downloads over all calls of one downloader: more would share the same bandwidth and burden
 * the host.
 */
const MAX_CONCURRENT_DOWNLOADS = 4

/** An output of a run. `url` must be an http(s) URL. */
export interface RunOutput extends OutputToName, OutputLink {}

interface DeliveredOutput {
  readonly file: DownloadedFile
  /** For example, that the extension does not match the content. */
  readonly warnings: readonly string[]
}

type DownloadResult =
  | ({ readonly ok: true } & DeliveredOutput)
  | { readonly ok: false; readonly error: RushesError }

/** Total progress of several downloads. */
export interface DownloadProgress {
  readonly receivedBytes: number
  /** Undefined until all hosts have declared a length. */
  readonly totalBytes: number | undefined
}

export interface DownloadOptions {
  readonly target: Target
  /** One per output, as a `Namer` returns them; default: those of the target. */
  readonly names?: readonly string[] | undefined
  /** Whether to replace existing files. */
  readonly overwrite?: boolean | undefined
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
      const links = outputs.map(({ url }) => url)
      // Another output of the run may have had the name of this one in an earlier command.
      const earlierOf = (at: number) =>
        options.earlier?.filter(({ url }) => url === links[at] || !links.includes(url)) ?? []
      const createMeter = createProgress(outputs.length, options.onProgress)
      const downloads = outputs.map(async (output, at) => {
        const meter = createMeter()
        const job = { source: output, kind: output.kind, overwrite, meter, signal }
        const deliver = (): Promise<DeliveredOutput> => {
          const beforeMove = (file: DownloadedFile) => options.beforeMove?.(file, output)
          const files = { earlier: earlierOf(at), beforeMove }
          if (target.kind !== 'stdout')
            return deliverToFile(downloaderOptions, { ...job, ...files, name: names[at] ?? '' })
          const stream = onlyStream(options, outputs.length)
          return deliverToStream(downloaderOptions, { ...job, ...files }, stream)
        }
        // An abort takes the outputs that still wait out of the queue.
        const result = await slots.use(() => settle(deliver, output, signal), { signal })
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
  { runId }: RunOutput,
  signal: AbortSignal | undefined,
): Promise<DownloadResult> {
  try {
    return { ok: true, ...(await deliver()) }
  } catch (error) {
    signal?.throwIfAborted()
    if (error instanceof StreamFailed) throw error.cause
    if (!(error instanceof RushesError))
      return { ok: false, error: new RushesError('internal', messageOf(error), { cause: error, runId }) }
    return { ok: false, error: error.with({ next: 'The run succeeded and is paid for.', runId }) }
  }
}

interface DeliveryJob extends OutputJob {
  /** Files that earlier commands downloaded. */
  readonly earlier: readonly DownloadedFile[]
  beforeMove(file: DownloadedFile): Promise<Destination | undefined> | undefined
}

/** Downloads an output to its final path. Throws `download_failed` or the signal's reason; then only folders remain. */
async function deliverToFile(options: DownloaderOptions, job: DeliveryJob): Promise<DeliveredOutput> {
  const { name, overwrite, signal } = job
  const unchanged = await findUnchanged(name, job.earlier, signal)
  if (unchanged !== undefined) return { file: unchanged, warnings: [] }
  if (!awaitsExtension(name)) refuseObstacle(name, overwrite)
  const download = new OutputDownload(options, job)
  try {
    const { part, file, kind } = await download.fetch()
    const to = (await job.beforeMove(file)) ?? { path: file.path, mayReplace: overwrite }
    await moveIntoPlace(part.path, to, options.fileSystem)
    const warning = misnamed(file.path, kind)
    return { file: { ...file, path: to.path }, warnings: warning === undefined ? [] : [warning] }
  } finally {
    await download.discard()
  }
}

/**
 * Downloads an output to a private folder, then writes it to a stream. Rejects with `StreamFailed` if the download
 * succeeds but the stream fails.
 */
async function deliverToStream(
  options: DownloaderOptions,
  job: Omit<DeliveryJob, 'name'>,
  stream: Writable,
): Promise<DeliveredOutput> {
  const folder = await withWriteErrors(tmpdir(), () => makeOwnFolder(tmpdir(), 'rushes-'))
  try {
    const path = join(folder.path, 'output')
    const { file, warnings } = await deliverToFile(options, { ...job, name: path })
    await pipeFile(path, stream, job.signal)
    return { file: { ...file, path: '-' }, warnings }
  } finally {
    await folder.remove().catch(() => {})
  }
}

/**
 * A write to the stream failed; `cause` is the stream's error. EPIPE means that the reader has gone, not that the
 * download failed.
 */
class StreamFailed extends Error {
  override readonly name = 'StreamFailed'
}

/**
 * Writes the file to the stream, with backpressure, and leaves the stream open. Rejects with `StreamFailed` or the
 * signal's reason: an abort ends the wait even if the reader has stopped reading.
 */
async function pipeFile(path: string, stream: Writable, signal: AbortSignal | undefined): Promise<void> {
  // The write reports its error to the caller, but without a listener the same error would also end the process. The
  // stream emits it after the write has failed, so the listener is removed only on success.
  const quiet = () => {}
  stream.on('error', quiet)
  for await (const chunk of createReadStream(path)) {
    signal?.throwIfAborted()
    const write = new Promise<void>((resolve, reject) => {
      stream.write(chunk, (error) => {
        if (error) reject(new StreamFailed(error.message, { cause: error }))
        else resolve()
      })
    })
    await raceAbort(write, signal)
  }
  stream.off('error', quiet)
}

/** Returns a function that creates the meter of each file. `listener` should be fast. */
function createProgress(
  files: number,
  listener?: (progress: DownloadProgress) => void,
): () => FileMeter & { end(): void } {
  let receivedBytes = 0
  let expectedBytes = 0
  let filesExpected = 0
  const notify = () =>
    listener?.({ receivedBytes, totalBytes: filesExpected === files ? expectedBytes : undefined })

  return () => {
    let received = 0
    let expected: number | undefined
    const receive = (bytes: number): void => {
      received += bytes
      receivedBytes += bytes
      notify()
    }
    const expect = (bytes: number | undefined): void => {
      filesExpected += (bytes === undefined ? 0 : 1) - (expected === undefined ? 0 : 1)
      expectedBytes += (bytes ?? 0) - (expected ?? 0)
      expected = bytes
      notify()
    }
    return {
      receive,
      expect,
      restart() {
        if (received > 0) receive(-received)
      },
      /** A failed file counts as complete too, with the bytes that it has received. */
      end: () => expect(received),
    }
  }
}
