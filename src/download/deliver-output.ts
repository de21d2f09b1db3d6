/** One output from its URL to its place. */
import type { Writable } from 'node:stream'
import { RushesError } from '../errors.js'
import { Miss } from './attempt-failed.js'
import type { Meter } from './download-progress.js'
import { type Having, stillThere } from './earlier-files.js'
import { fetchOutput, type Means, type Retrying, type Source } from './fetch-output.js'
import { failed } from './file-errors.js'
import { misnamed } from './file-kind.js'
import { awaitsExtension } from './file-names.js'
import { place, refuseObstacle } from './move-into-place.js'
import { claimPart, type Listing } from './part-claim.js'
import type { Part } from './part-file.js'
import { createLanding } from './part-session.js'
import { pour, withTemporaryFile } from './stdout.js'

/** One entry of `files` in the JSON output. */
export interface DownloadedFile {
  /** As the user wrote it: relative stays relative. `-` for standard output. */
  readonly path: string
  readonly bytes: number
  /** 64 hexadecimal digits. */
  readonly sha256: string
  /** The link that worked: a fresh one, where the first had expired. */
  readonly url: string
  readonly content_type: string
}

export interface Delivery {
  readonly file: DownloadedFile
  /** Such as: the name does not fit what the file is. */
  readonly warnings: readonly string[]
}

export interface Job {
  readonly source: Source
  readonly runId: string
  /** `image`, `video`, …; undefined when it is not known. */
  readonly kind: string | undefined
  /** The number of the output within its run, from 0. */
  readonly position: number
  /** May hold `{ext}`, which the bytes decide. */
  readonly name: string
  readonly overwrite: boolean
  /** What an earlier command brought home. */
  readonly have: Having
  /** One for all jobs of a call. */
  readonly list: Listing
  beforePlace?(file: DownloadedFile): Promise<void> | undefined
  readonly meter: Meter
  readonly signal: AbortSignal | undefined
  readonly onRetry?: ((retrying: Retrying) => void) | undefined
}

/**
 * Throws `download_failed`, or the signal's reason. What has arrived is then kept for a later command, where a signal or
 * the network ended it and the host will say whether the file is still the same; otherwise nothing is left behind but
 * folders that were made.
 */
export const deliverToFile = (means: Means, job: Job): Promise<Delivery> => deliver(means, job, false)

/** Rejects with `StreamFailed` when the bytes are there and the stream does not take them. Nothing is kept. */
export const deliverToStream = (
  means: Means,
  job: Omit<Job, 'name' | 'overwrite'>,
  stream: Writable,
): Promise<Delivery> =>
  withTemporaryFile(async (path) => {
    const { file, warnings } = await deliver(means, { ...job, name: path, overwrite: false }, true)
    await pour(path, stream, job.signal)
    return { file: { ...file, path: '-' }, warnings }
  })

async function deliver(means: Means, job: Job, isPassing: boolean): Promise<Delivery> {
  const { name, overwrite, source, signal, list } = job
  const key = { place: name, runId: job.runId, position: job.position }
  const there = overwrite ? undefined : await stillThere(name, job.have, signal)
  if (there !== undefined) {
    // It may be there by another way than the part that a kill or a broken line has left.
    await (await claimPart(key, list))?.discard()
    return { file: there, warnings: [] }
  }
  const landing = await createLanding({ ...key, overwrite, isPassing, list, expects: job.kind })
  try {
    if (!awaitsExtension(name)) refuseObstacle(name, overwrite)
    const { part, path, kind, bytes, sha256, url } = await fetchOutput(means, source, { ...job, landing })
    const file = { path, bytes, sha256, url, content_type: kind.contentType }
    await job.beforePlace?.(file)
    await place(part.path, path, overwrite)
    await part.discard()
    const warning = misnamed(path, kind)
    return {
      file,
      warnings: warning === undefined ? [] : [warning],
    }
  } catch (error) {
    const isKept = await landing.giveUp(signal?.aborted === true || mayComeLater(error))
    throw isKept && error instanceof RushesError ? withKept(error, landing.part) : error
  }
}

/** The network ended it, or a host in trouble. */
const mayComeLater = (error: unknown): boolean =>
  error instanceof RushesError && error.cause instanceof Miss && error.cause.mayComeLater

/** Names no command: the same one may be a `run`, which would be paid for again. */
function withKept(error: RushesError, part: Part | undefined): RushesError {
  const percent = Math.floor(
    ((part?.bytes ?? 0) / (part?.about?.totalBytes ?? Number.POSITIVE_INFINITY)) * 100,
  )
  const what = percent > 0 ? `${percent} % of the file is kept` : 'What has arrived is kept'
  return failed(error.message, {
    hint: [error.hint, `${what}: a download to the same place goes on from there.`].filter(Boolean).join(' '),
    cause: error.cause,
    httpStatus: error.httpStatus,
  })
}
