/** Downloads one output from its URL to its final path, or to a stream (`-o -`). */
import { createReadStream } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Writable } from 'node:stream'
import { raceAbort } from '../host/abort.js'
import { isFolder, makeFolders } from '../host/directories.js'
import { makeOwnFolder } from '../host/own-folder.js'
import type { Destination, DownloadedFile } from '../protocol/media.js'
import type { FileMeter } from './download-progress.js'
import { withWriteErrors } from './failures.js'
import {
  type DownloaderOptions,
  fetchOutput,
  type OpenedPart,
  type OutputLink,
  type PartSession,
} from './fetch-output.js'
import { misnamed } from './file-kind.js'
import { awaitsExtension, withExtension } from './file-names.js'
import { type EarlierFiles, findUnchanged, moveIntoPlace, refuseObstacle } from './final-files.js'
import { createPart } from './part-file.js'

export interface DeliveredOutput {
  readonly file: DownloadedFile
  /** For example, that the extension does not match the content. */
  readonly warnings: readonly string[]
}

interface DeliveryJob {
  readonly source: OutputLink
  /** `image`, `video`, …; undefined if unknown. */
  readonly kind: string | undefined
  /** Path of the file. May contain `{ext}`, which the first bytes decide. */
  readonly name: string
  readonly overwrite: boolean
  readonly owner?: string | undefined
  /** Files that earlier commands downloaded. */
  readonly earlier: EarlierFiles
  beforeMove?(file: DownloadedFile): Promise<Destination | undefined> | undefined
  readonly meter: FileMeter
  readonly signal: AbortSignal | undefined
}

/**
 * Downloads an output, then writes it to a stream. Rejects with `StreamFailed` if the download succeeds but the stream
 * fails.
 */
export const deliverToStream = (
  options: DownloaderOptions,
  job: Omit<DeliveryJob, 'name' | 'overwrite'>,
  stream: Writable,
): Promise<DeliveredOutput> =>
  withTemporaryFile(async (path) => {
    const { file, warnings } = await deliverToFile(options, { ...job, name: path, overwrite: false })
    await pipeFile(path, stream, job.signal)
    return { file: { ...file, path: '-' }, warnings }
  })

/** Downloads an output to its final path. Throws `download_failed` or the signal's reason; then only folders remain. */
export async function deliverToFile(options: DownloaderOptions, job: DeliveryJob): Promise<DeliveredOutput> {
  const { name, overwrite, source, signal } = job
  const unchanged = overwrite ? undefined : await findUnchanged(name, job.earlier, signal)
  if (unchanged !== undefined) return { file: unchanged, warnings: [] }
  if (!awaitsExtension(name)) refuseObstacle(name, overwrite)
  const session = createSession(job)
  try {
    const { part, path, kind, bytes, sha256, url } = await fetchOutput(options, source, { ...job, session })
    const file = { path, bytes, sha256, url, content_type: kind.contentType }
    const to = (await job.beforeMove?.(file)) ?? { path, mayReplace: overwrite }
    await moveIntoPlace(part.path, to, options.fileSystem)
    const warning = misnamed(path, kind)
    return { file: { ...file, path: to.path }, warnings: warning === undefined ? [] : [warning] }
  } finally {
    await session.opened?.part.discard()
  }
}

function createSession({ name, overwrite, owner, kind: expectedKind }: DeliveryJob): PartSession {
  let opened: OpenedPart | undefined
  return {
    expectedKind,
    get opened() {
      return opened
    },
    async open(kind) {
      const path = withExtension(name, kind.extension)
      // Fail before downloading.
      if (path !== name) refuseObstacle(path, overwrite)
      const part =
        opened?.part ??
        (await withWriteErrors(path, () => {
          if (!isFolder(dirname(path))) makeFolders(dirname(path))
          return createPart(path, owner)
        }))
      opened = { part, path, kind }
      return opened
    },
  }
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
