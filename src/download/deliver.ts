/** One output from its URL to its place. */
import { dirname } from 'node:path'
import type { Writable } from 'node:stream'
import { makeFolders } from '../host/files.js'
import { fetchOutput, type Means, type Retrying, type Source } from './fetch.js'
import { misnamed } from './kind.js'
import { awaitsExtension, withExtension } from './names.js'
import { openPart } from './part.js'
import { place, refuseObstacle } from './place.js'
import type { Meter } from './progress.js'
import { pour, withTemporaryFile } from './stdout.js'
import type { Opening } from './transfer.js'
import { writing } from './trouble.js'

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
  /** May hold `{ext}`, which the bytes decide. */
  readonly name: string
  readonly overwrite: boolean
  readonly meter: Meter
  readonly signal: AbortSignal | undefined
  readonly onRetry?: ((retrying: Retrying) => void) | undefined
}

/** Throws `download_failed`, or the signal's reason; then nothing is left behind but folders that were made. */
export async function deliverToFile(means: Means, job: Job): Promise<Delivery> {
  const { name, overwrite } = job
  if (!awaitsExtension(name)) await refuseObstacle(name, overwrite)
  const open: Opening = async ({ extension }) => {
    const path = withExtension(name, extension)
    // Said now rather than after two gigabytes.
    await refuseObstacle(path, overwrite)
    return { path, part: await writing(path, () => openWithFolders(path)) }
  }
  const { part, path, kind, bytes, sha256, url } = await fetchOutput(means, job.source, { ...job, open })
  try {
    await place(part.path, path, overwrite)
  } catch (error) {
    await part.discard()
    throw error
  }
  const warning = misnamed(path, kind)
  return {
    file: { path, bytes, sha256, url, content_type: kind.contentType },
    warnings: warning === undefined ? [] : [warning],
  }
}

async function openWithFolders(path: string) {
  makeFolders(dirname(path))
  return openPart(path)
}

/** Rejects with `StreamFailed` when the bytes are there and the stream does not take them. */
export const deliverToStream = (
  means: Means,
  job: Omit<Job, 'name' | 'overwrite'>,
  stream: Writable,
): Promise<Delivery> =>
  withTemporaryFile(async (path) => {
    const { file, warnings } = await deliverToFile(means, { ...job, name: path, overwrite: false })
    await pour(path, stream, job.signal)
    return { file: { ...file, path: '-' }, warnings }
  })
