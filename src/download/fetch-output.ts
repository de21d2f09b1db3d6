/**
 * Downloads one output to a complete part file, with retries, and with a fresh link when the old one may have expired.
 */
import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { messageOf } from '../errors.js'
import type { Clock } from '../host/clock.js'
import { type FileSystem, isFolder, makeFolders } from '../host/file-system.js'
import { flush, removeFile, temporaryBeside, writeFully } from '../host/files.js'
import { type Fetch, HttpFailure } from '../host/http.js'
import { jittered, retryErrors, stepOf } from '../host/retry.js'
import type { DownloadedFile } from '../protocol/media.js'
import { type FileKind, HEAD_BYTES, kindOf } from './file-kind.js'
import { withExtension } from './file-names.js'
import { downloadFailed, refuseObstacle, withWriteErrors } from './final-files.js'
import {
  AttemptFailed,
  checked,
  continuationOf,
  declaredLength,
  decoded,
  type FileVersion,
  type OutputResponse,
  parseOutputUrl,
  printableUrl,
  sendRequest,
  versionOf,
} from './output-request.js'

export interface DownloaderOptions {
  readonly fetch: Fetch
  readonly clock: Clock
  /** Returns a number in [0, 1), to spread retries. */
  readonly random: () => number
  readonly fileSystem?: FileSystem | undefined
}

export interface OutputLink {
  readonly url: string
  /** Asks the service for a new link to this output. Resolves with undefined if the service has no new link. */
  readonly freshUrl?: (() => Promise<string | undefined>) | undefined
}

/** Counts the progress of one file. */
export interface FileMeter {
  /** Resets the count for a new attempt. */
  restart(): void
  expect(bytes: number | undefined): void
  receive(bytes: number): void
}

export interface OutputJob {
  readonly source: OutputLink
  /** `image`, `video`, …; undefined if unknown. */
  readonly kind: string | undefined
  /** Path of the file. May contain `{ext}`, which the first bytes decide. */
  readonly name: string
  readonly overwrite: boolean
  readonly meter: FileMeter
  readonly signal: AbortSignal | undefined
}

/** A complete part, the file that it becomes, and how its type was found. */
export interface FetchedOutput {
  readonly part: Part
  readonly file: DownloadedFile
  readonly kind: FileKind
}

/** The download of one output, over all its tries. The caller moves the part, and calls `discard`. */
export class OutputDownload {
  readonly #options: DownloaderOptions
  readonly #job: OutputJob
  #url: string
  /** Asks for a fresh link. Undefined while this link may not be replaced. */
  #freshUrl: OutputLink['freshUrl']
  #part: Part | undefined
  /** Final path and type, which the first bytes of the file decide. */
  #path = ''
  #kind: FileKind | undefined
  /** Failed tries in a row without progress. */
  #failures = 0
  /** Number of useful bytes at the last progress. */
  #furthestBytes = 0

  constructor(options: DownloaderOptions, job: OutputJob) {
    this.#options = options
    this.#job = job
    this.#url = job.source.url
    this.#freshUrl = job.source.freshUrl
  }

  /** Throws `download_failed` or the signal's reason. */
  async fetch(): Promise<FetchedOutput> {
    const { clock, random } = this.#options
    let tries = 0
    try {
      return await retryErrors(() => this.#tryOnce(), {
        clock,
        signal: this.#job.signal,
        pauseMs: (error, number) => {
          if (!(error instanceof AttemptFailed)) return undefined
          tries = number
          this.#countFailure()
          return waitAfter(error, this.#failures, random())
        },
      })
    } catch (error) {
      throw error instanceof AttemptFailed ? this.#finalError(error, tries) : error
    }
  }

  /** Removes the part, if it was not moved. Never throws. */
  async discard(): Promise<void> {
    await this.#part?.discard()
  }

  /**
   * Failures count from one again after each new mebibyte: otherwise a large file would never complete over a connection
   * that breaks every hundred megabytes. Bytes that are downloaded a second time do not count.
   */
  #countFailure(): void {
    const usefulBytes = this.#part?.resumable?.bytes ?? 0
    const hasProgress = usefulBytes >= this.#furthestBytes + PROGRESS_BYTES
    this.#failures = hasProgress ? 1 : this.#failures + 1
    if (!hasProgress) return
    this.#furthestBytes = usefulBytes
    this.#freshUrl = this.#job.source.freshUrl
  }

  /** Makes one attempt, and one more with a fresh link if the link may have expired. */
  async #tryOnce(): Promise<FetchedOutput> {
    try {
      return await this.#transfer()
    } catch (error) {
      const freshUrl = this.#freshUrl
      if (freshUrl === undefined || !(error instanceof AttemptFailed && mayHaveExpired(error))) throw error
      this.#freshUrl = undefined
      const fresh = await freshUrl().catch((cause: unknown) => {
        const { message, status } = error
        const why = `${message}, and the service gave no new link: ${messageOf(cause)}`
        throw new AttemptFailed(why, { isRetryable: false, status, cause })
      })
      if (fresh === undefined || fresh === this.#url) throw error
      this.#url = fresh
      return this.#transfer()
    }
  }

  #finalError(failure: AttemptFailed, tries: number): Error {
    const times = tries > 1 ? ` (tried ${tries} times)` : ''
    return downloadFailed(`Could not download ${printableUrl(this.#url)}: ${failure.message}${times}`, {
      cause: failure,
      httpStatus: failure.status,
      hint: failure.cause instanceof HttpFailure ? failure.cause.advice : undefined,
    })
  }

  /**
   * Sends the request, and receives a complete, checked part. Received bytes are kept in the part. Throws `AttemptFailed`
   * for the network, `RushesError` for the disk, and the signal's reason.
   */
  async #transfer(): Promise<FetchedOutput> {
    const { fetch, clock } = this.#options
    const { signal, meter } = this.#job
    const url = parseOutputUrl(this.#url)
    if (url === undefined)
      throw new AttemptFailed('the URL is not an http or https URL', { isRetryable: false })
    const request = { fetch, url, signal, nowMs: clock.now() }
    const part = this.#part
    const begun = part?.resumable
    meter.restart()
    if (part === undefined || begun === undefined) return this.#receiveAll(await sendRequest(request))
    const { version, bytes } = begun
    const answer = await sendRequest({ ...request, from: { bytes, ifRange: version.etag } })
    const { response } = answer
    const continuation = continuationOf(version, bytes, response)
    if (continuation === 'restart') return this.#receiveAll(answer)
    if (continuation === 'append') return this.#receiveRest(answer, part, version.totalBytes)
    response.discard()
    await this.#onDisk(() => part.restart(undefined))
    return this.#transfer()
  }

  /** Receives the file from its first byte. */
  async #receiveAll(answer: OutputResponse): Promise<FetchedOutput> {
    const { meter, signal } = this.#job
    const { response } = answer
    meter.expect(declaredLength(response.header))
    let part: Part | undefined
    let head = Buffer.alloc(0)
    try {
      for await (const chunk of decoded(response, meter.receive, signal)) {
        if (part !== undefined) await this.#write(part, chunk)
        else {
          head = Buffer.concat([head, chunk])
          if (head.byteLength >= HEAD_BYTES) part = await this.#begin(answer, head)
        }
      }
      if (head.byteLength === 0) throw new AttemptFailed('the response is empty', { isRetryable: true })
      return await this.#sealed(part ?? (await this.#begin(answer, head)))
    } finally {
      response.discard()
    }
  }

  /** Receives the bytes that are missing in the part. */
  async #receiveRest({ response }: OutputResponse, part: Part, totalBytes: number): Promise<FetchedOutput> {
    const { meter, signal } = this.#job
    try {
      meter.receive(part.bytes)
      meter.expect(totalBytes)
      for await (const chunk of checked(response, meter.receive, signal)) await this.#write(part, chunk)
      return await this.#sealed(part)
    } finally {
      response.discard()
    }
  }

  /** Opens the part, or empties it, when the first bytes of the file have arrived. */
  async #begin({ response: { header }, url }: OutputResponse, head: Uint8Array): Promise<Part> {
    const { name, overwrite, kind: expected } = this.#job
    const kind = await kindOf({ contentType: header('content-type'), url, head })
    refuseWebPage(kind, expected)
    const path = withExtension(name, kind.extension)
    // Fail before downloading.
    if (path !== name) refuseObstacle(path, overwrite)
    this.#path = path
    this.#kind = kind
    const part = this.#part ?? (await this.#onDisk(() => createPart(path)))
    this.#part = part
    await this.#onDisk(() => part.restart(versionOf(header)))
    await this.#write(part, head)
    return part
  }

  async #sealed(part: Part): Promise<FetchedOutput> {
    const { bytes, version } = part
    if (version !== undefined && bytes !== version.totalBytes) {
      const why = `the parts of the file have ${bytes} bytes instead of ${version.totalBytes}`
      throw new AttemptFailed(why, { isRetryable: true })
    }
    const sha256 = await this.#onDisk(() => part.seal())
    this.#job.signal?.throwIfAborted()
    const kind = this.#kind as FileKind
    const file = { path: this.#path, bytes, sha256, url: this.#url, content_type: kind.contentType }
    return { part, file, kind }
  }

  #write(part: Part, bytes: Uint8Array): Promise<void> {
    return this.#onDisk(() => part.write(bytes))
  }

  #onDisk<Result>(work: () => Promise<Result>): Promise<Result> {
    return withWriteErrors(this.#path, work)
  }
}

const WAITS_MS = [1_000, 2_000, 4_000, 8_000, 16_000] as const
/**
 * Range of a random factor: downloads that failed together, for example after a restart of the host, should not all
 * retry at the same moment.
 */
const JITTER = { min: 0.75, max: 1.25 } as const

/** Returns the milliseconds to wait after failed try `number` (from 1), or undefined without another try. */
export function waitAfter(failure: AttemptFailed, number: number, random: number): number | undefined {
  if (!failure.isRetryable || number > WAITS_MS.length) return undefined
  const step = stepOf(WAITS_MS, number)
  const wait = jittered({ min: step * JITTER.min, max: step * JITTER.max }, random)
  return Math.max(wait, failure.retryAfterMs)
}

/** New bytes that count as progress: failures are then counted from one again. */
export const PROGRESS_BYTES = 1_048_576

/** Whether a signed link may have expired: hosts answer with these statuses then. */
export const mayHaveExpired = ({ status }: AttemptFailed): boolean =>
  status === 403 || status === 404 || status === 410

/**
 * Throws if the response is a web page instead of media: captive portals and error pages answer with HTML and status
 * 200.
 */
function refuseWebPage({ extension }: FileKind, expectedKind: string | undefined): void {
  if (extension === 'html' && (expectedKind === 'image' || expectedKind === 'video'))
    throw new AttemptFailed(`the host sent a web page instead of the ${expectedKind}`, {
      isRetryable: true,
    })
}

/**
 * A file that is being downloaded, under a hidden name beside the target, because a rename is atomic only within one
 * file system. The name is unique: no other process writes to it, and a later command starts again.
 */
export class Part {
  readonly path: string
  bytes = 0
  /** The file that the bytes belong to. Undefined: the download cannot be resumed. */
  version: FileVersion | undefined
  readonly #handle: FileHandle
  #hash = createHash('sha256')

  /** `handle`: of the empty file at `path`. */
  constructor(path: string, handle: FileHandle) {
    this.path = path
    this.#handle = handle
  }

  /** What a request for the missing bytes needs. Undefined: all bytes must be requested. */
  get resumable(): { readonly version: FileVersion; readonly bytes: number } | undefined {
    const { version, bytes } = this
    return version !== undefined && bytes > 0 && bytes < version.totalBytes ? { version, bytes } : undefined
  }

  /** Empties the part for a new download of this version. */
  async restart(version: FileVersion | undefined): Promise<void> {
    if (this.bytes > 0) await this.#handle.truncate(0)
    this.#hash = createHash('sha256')
    this.bytes = 0
    this.version = version
  }

  async write(bytes: Uint8Array): Promise<void> {
    const written = writeFully(this.#handle, bytes, this.bytes)
    // Hash the bytes during the write.
    this.#hash.update(bytes)
    await written
    this.bytes += bytes.byteLength
  }

  /** Flushes the complete file to disk, and returns its SHA-256. */
  async seal(): Promise<string> {
    await flush(this.#handle)
    return this.#hash.copy().digest('hex')
  }

  /** Removes the part. Never throws. */
  async discard(): Promise<void> {
    await this.#handle.close().catch(() => {})
    await removeFile(this.path).catch(() => {})
  }
}

/** Creates an empty part, and its folder. The umask applies to mode 0666, as for any file that a user creates. */
async function createPart(target: string): Promise<Part> {
  if (!isFolder(dirname(target))) makeFolders(dirname(target))
  const path = temporaryBeside(target)
  return new Part(path, await open(path, 'wx+', 0o666))
}
