/** Delivers one output: from its URL to its final path, or to a stream (`-o -`). */
import { createReadStream } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { RushesError } from '../errors.js'
import { raceAbort } from '../host/abort.js'
import { makeOwnFolder } from '../host/own-folder.js'
import type { ProcessLock } from '../host/process-lock.js'
import type { FileMeter } from './download-progress.js'
import { AttemptFailed, withWriteErrors } from './failures.js'
import { type DownloaderOptions, fetchOutput, type OutputLink, type RetryNotice } from './fetch-output.js'
import { misnamed } from './file-kind.js'
import { awaitsExtension } from './file-names.js'
import {
  type DownloadedFile,
  type EarlierFiles,
  findUnchanged,
  moveIntoPlace,
  refuseObstacle,
} from './final-files.js'
import type { Part } from './part-file.js'
import { claimPart, openPartSession, type PartLister } from './part-session.js'

export interface DeliveredOutput {
  readonly file: DownloadedFile
  /** For example that the extension does not match the content. */
  readonly warnings: readonly string[]
}

interface DeliveryJob {
  readonly source: OutputLink
  readonly runId: string
  /** `image`, `video`, …; undefined when it is not known. */
  readonly kind: string | undefined
  /** The number of the output within its run, from 0. */
  readonly position: number
  /** May contain `{ext}`, which the bytes decide. */
  readonly name: string
  readonly overwrite: boolean
  /** One for all jobs of a call. */
  readonly list: PartLister
  readonly lock: ProcessLock | undefined
  /** What earlier commands downloaded. */
  readonly earlier: EarlierFiles
  beforeMove?(file: DownloadedFile): Promise<void> | undefined
  readonly meter: FileMeter
  readonly signal: AbortSignal | undefined
  readonly onRetry?: ((notice: RetryNotice) => void) | undefined
}

/**
 * Throws `download_failed`, or the signal's reason. The bytes received so far are kept for a later command when a
 * signal or the network ended the download and the host can confirm that the file is unchanged. Otherwise only
 * folders that were created are left behind.
 */
export const deliverToFile = (options: DownloaderOptions, job: DeliveryJob): Promise<DeliveredOutput> =>
  deliver(options, job, false)

/** Rejects with `StreamFailed` when the file is complete and the stream fails. Nothing is kept. */
export const deliverToStream = (
  options: DownloaderOptions,
  job: Omit<DeliveryJob, 'name' | 'overwrite'>,
  stream: Writable,
): Promise<DeliveredOutput> =>
  withTemporaryFile(async (path) => {
    const { file, warnings } = await deliver(options, { ...job, name: path, overwrite: false }, true)
    await pipeFile(path, stream, job.signal)
    return { file: { ...file, path: '-' }, warnings }
  })

async function deliver(
  options: DownloaderOptions,
  job: DeliveryJob,
  isTemporary: boolean,
): Promise<DeliveredOutput> {
  const { name, overwrite, list, source, signal } = job
  const key = { path: name, runId: job.runId, position: job.position, lock: job.lock }
  const unchanged = overwrite ? undefined : await findUnchanged(name, job.earlier, signal)
  if (unchanged !== undefined) {
    // A part may be left over from a download that was killed before another one completed the file.
    await (await claimPart(key, list))?.discard()
    return { file: unchanged, warnings: [] }
  }
  const session = await openPartSession({ ...key, list, overwrite, isTemporary, expectedKind: job.kind })
  try {
    if (!awaitsExtension(name)) refuseObstacle(name, overwrite)
    const { part, path, kind, bytes, sha256, url } = await fetchOutput(options, source, { ...job, session })
    const file = { path, bytes, sha256, url, content_type: kind.contentType }
    await job.beforeMove?.(file)
    await moveIntoPlace(part.path, path, overwrite)
    await part.discard()
    const warning = misnamed(path, kind)
    return { file, warnings: warning === undefined ? [] : [warning] }
  } catch (error) {
    const isKept = await session.abandon(signal?.aborted === true || isWorthKeeping(error))
    throw isKept && error instanceof RushesError ? withKeptPart(error, session.part) : error
  }
}

/** The network failed, or the host has a temporary problem. */
const isWorthKeeping = (error: unknown): boolean =>
  error instanceof RushesError && error.cause instanceof AttemptFailed && error.cause.isWorthKeeping

/** The hint names no command: the same command may be a `run`, which would be paid for again. */
function withKeptPart(error: RushesError, part: Part | undefined): RushesError {
  const { bytes = 0, metadata } = part ?? {}
  const percent = Math.floor((bytes / (metadata?.totalBytes ?? Number.POSITIVE_INFINITY)) * 100)
  const what = percent > 0 ? `${percent} % of the file is kept` : 'The downloaded part is kept'
  return error.with({
    hint: [error.hint, `${what}; a download to the same path resumes there.`].filter(Boolean).join(' '),
  })
}

/** Has the stream's error as its `cause`. EPIPE means that the reader is gone: not a failed download. */
export class StreamFailed extends Error {
  override readonly name = 'StreamFailed'
}

/** A path in a private folder in the system's temporary folder (`TMPDIR`), which is removed after `work`. */
async function withTemporaryFile<Result>(work: (path: string) => Promise<Result>): Promise<Result> {
  const folder = await withWriteErrors(tmpdir(), () => makeOwnFolder(tmpdir(), 'rushes-'))
  try {
    return await work(join(folder.path, 'output'))
  } finally {
    await folder.remove().catch(() => {})
  }
}

/**
 * Writes the file to the stream, with backpressure, and leaves the stream open. Rejects with `StreamFailed` or the
 * signal's reason.
 */
async function pipeFile(path: string, stream: Writable, signal: AbortSignal | undefined): Promise<void> {
  // The caller gets the error from the write; without a listener it would also end the process. It is emitted after the
  // write has failed, so the listener is removed only on success.
  const quiet = () => {}
  stream.on('error', quiet)
  for await (const chunk of createReadStream(path)) await writeChunk(stream, chunk as Uint8Array, signal)
  stream.off('error', quiet)
}

/** Ends on abort even when the reader has stopped reading. */
async function writeChunk(
  stream: Writable,
  chunk: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<void> {
  signal?.throwIfAborted()
  const write = new Promise<void>((resolve, reject) => {
    stream.write(chunk, (error) => {
      if (error) reject(new StreamFailed(error.message, { cause: error }))
      else resolve()
    })
  })
  await raceAbort(write, signal)
}
