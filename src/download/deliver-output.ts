/** Downloads one output from its URL to its final path, or to a stream (`-o -`). */
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
  type Destination,
  type DownloadedFile,
  type EarlierFiles,
  findUnchanged,
  moveIntoPlace,
  refuseObstacle,
} from './final-files.js'
import { marksOfFile } from './marks.js'
import type { Part } from './part-file.js'
import { claimPart, openPartSession, type PartLister } from './part-session.js'

export interface DeliveredOutput {
  readonly file: DownloadedFile
  /** For example, that the extension does not match the content. */
  readonly warnings: readonly string[]
}

interface DeliveryJob {
  readonly source: OutputLink
  readonly runId: string
  /** `image`, `video`, …; undefined if unknown. */
  readonly kind: string | undefined
  /** Position of the output within its run, from 0. */
  readonly position: number
  /** Path of the file. May contain `{ext}`, which the first bytes decide. */
  readonly name: string
  readonly overwrite: boolean
  /** Shared by all jobs of a call. */
  readonly list: PartLister
  readonly lock: ProcessLock | undefined
  /** Files that earlier commands downloaded. */
  readonly earlier: EarlierFiles
  beforeMove?(file: DownloadedFile): Promise<Destination | undefined> | undefined
  readonly meter: FileMeter
  readonly signal: AbortSignal | undefined
  readonly onRetry?: ((notice: RetryNotice) => void) | undefined
}

/**
 * Downloads an output to its final path. Throws `download_failed` or the signal's reason. If a signal or the network
 * ended the download, the received bytes are kept for a later command, provided that the host can confirm that the file
 * is unchanged. Otherwise only created folders remain.
 */
export const deliverToFile = (options: DownloaderOptions, job: DeliveryJob): Promise<DeliveredOutput> =>
  deliver(options, job, false)

/**
 * Downloads an output, then writes it to a stream. Rejects with `StreamFailed` if the download succeeds but the stream
 * fails. Keeps no bytes.
 */
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
    // Remove a part of a killed download: a later download has completed the file.
    await (await claimPart(key, list))?.discard()
    return { file: unchanged, warnings: [] }
  }
  const session = await openPartSession({ ...key, list, overwrite, isTemporary, expectedKind: job.kind })
  try {
    if (!awaitsExtension(name)) refuseObstacle(name, overwrite)
    const { part, path, kind, bytes, sha256, url } = await fetchOutput(options, source, { ...job, session })
    const file = { path, bytes, sha256, url, content_type: kind.contentType, ...marksOfFile(part.path) }
    const to = (await job.beforeMove?.(file)) ?? { path, mayReplace: overwrite }
    await moveIntoPlace(part.path, to.path, to.mayReplace)
    await part.discard()
    const warning = misnamed(path, kind)
    return { file: { ...file, path: to.path }, warnings: warning === undefined ? [] : [warning] }
  } catch (error) {
    const isKept = await session.abandon(signal?.aborted === true || isWorthKeeping(error))
    throw isKept && error instanceof RushesError ? withKeptPart(error, session.part) : error
  }
}

/** Whether the error is a network failure or a temporary problem of the host. */
const isWorthKeeping = (error: unknown): boolean =>
  error instanceof RushesError && error.cause instanceof AttemptFailed && error.cause.isWorthKeeping

/**
 * Adds to the hint that the part is kept. It does not recommend a command, because the same command may be a `run`,
 * which would be paid for again.
 */
function withKeptPart(error: RushesError, part: Part | undefined): RushesError {
  const { bytes = 0, metadata } = part ?? {}
  const percent = Math.floor((bytes / (metadata?.totalBytes ?? Number.POSITIVE_INFINITY)) * 100)
  const what = percent > 0 ? `${percent} % of the file is kept` : 'The downloaded part is kept'
  return error.with({
    hint: [error.hint, `${what}; a download to the same path resumes there.`].filter(Boolean).join(' '),
  })
}

/**
 * A write to the stream failed; `cause` is the stream's error. EPIPE means that the reader has gone, not that the
 * download failed.
 */
export class StreamFailed extends Error {
  override readonly name = 'StreamFailed'
}

/**
 * Calls `work` with a path in a private folder, created in the system's temporary folder (`TMPDIR`), and removes that
 * folder afterwards.
 */
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
  // The write reports its error to the caller, but without a listener the same error would also end the process. The
  // stream emits it after the write has failed, so the listener is removed only on success.
  const quiet = () => {}
  stream.on('error', quiet)
  for await (const chunk of createReadStream(path)) await writeChunk(stream, chunk as Uint8Array, signal)
  stream.off('error', quiet)
}

/** Writes one chunk. An abort ends the wait even if the reader has stopped reading. */
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
