/**
 * Downloads one output to a complete part file, with retries, and with a fresh link when the old one may have expired.
 */
import { createHash } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { messageOf } from '../errors.js'
import type { Clock } from '../host/clock.js'
import { type FileSystem, isFolder, makeFolders } from '../host/file-system.js'
import { flush, removeFile, temporaryBeside } from '../host/files.js'
import { type Fetch, HttpFailure, type HttpResponse } from '../host/http.js'
import { retryErrors, stepOf } from '../host/retry.js'
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
  parseOutputUrl,
  printableUrl,
  sendRequest,
  versionOf,
} from './output-request.js'

export interface DownloaderOptions {
  readonly fetch: Fetch
  readonly clock: Clock
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
  #part: Part | undefined
  /** Final path and type, which the first bytes of the file decide. */
  #path = ''
  #kind: FileKind | undefined

  constructor(options: DownloaderOptions, job: OutputJob) {
    this.#options = options
    this.#job = job
    this.#url = job.source.url
  }

  /** Throws `download_failed` or the signal's reason. */
  async fetch(): Promise<FetchedOutput> {
    const { clock } = this.#options
    let tries = 0
    try {
      return await retryErrors(() => this.#tryOnce(), {
        clock,
        signal: this.#job.signal,
        pauseMs: (error, number) => {
          if (!(error instanceof AttemptFailed)) return undefined
          tries = number
          return error.isRetryable && number <= WAITS_MS.length ? stepOf(WAITS_MS, number) : undefined
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

  /** Makes one attempt, and one more with a fresh link if the link may have expired. */
  async #tryOnce(): Promise<FetchedOutput> {
    try {
      return await this.#transfer()
    } catch (error) {
      const { freshUrl } = this.#job.source
      if (freshUrl === undefined || !(error instanceof AttemptFailed && mayHaveExpired(error))) throw error
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
    const { fetch } = this.#options
    const { signal, meter } = this.#job
    const url = parseOutputUrl(this.#url)
    if (url === undefined)
      throw new AttemptFailed('the URL is not an http or https URL', { isRetryable: false })
    const request = { fetch, url, signal }
    const part = this.#part
    const begun = part?.resumable
    meter.restart()
    if (part === undefined || begun === undefined) return this.#receiveAll(await sendRequest(request))
    const { version, bytes } = begun
    const response = await sendRequest({ ...request, from: { bytes, ifRange: version.etag } })
    const continuation = continuationOf(version, bytes, response)
    if (continuation === 'restart') return this.#receiveAll(response)
    if (continuation === 'append') return this.#receiveRest(response, part, version.totalBytes)
    response.discard()
    await this.#onDisk(() => part.restart(undefined))
    return this.#transfer()
  }

  /** Receives the file from its first byte. */
  async #receiveAll(response: HttpResponse): Promise<FetchedOutput> {
    const { meter, signal } = this.#job
    meter.expect(declaredLength(response.header))
    let part: Part | undefined
    let head = Buffer.alloc(0)
    try {
      for await (const chunk of decoded(response, meter.receive, signal)) {
        if (part !== undefined) await this.#write(part, chunk)
        else {
          head = Buffer.concat([head, chunk])
          if (head.byteLength >= HEAD_BYTES) part = await this.#begin(response, head)
        }
      }
      if (head.byteLength === 0) throw new AttemptFailed('the response is empty', { isRetryable: true })
      return await this.#sealed(part ?? (await this.#begin(response, head)))
    } finally {
      response.discard()
    }
  }

  /** Receives the bytes that are missing in the part. */
  async #receiveRest(response: HttpResponse, part: Part, totalBytes: number): Promise<FetchedOutput> {
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
  async #begin({ header }: HttpResponse, head: Uint8Array): Promise<Part> {
    const { name, overwrite, kind: expected } = this.#job
    const kind = await kindOf({ contentType: header('content-type'), head })
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
  #handle: FileHandle
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
    if (this.bytes > 0) {
      // Opened again, not truncated: the handle would write at its old position.
      await this.#handle.close()
      this.#handle = await open(this.path, 'w')
    }
    this.#hash = createHash('sha256')
    this.bytes = 0
    this.version = version
  }

  async write(bytes: Uint8Array): Promise<void> {
    const written = this.#handle.writeFile(bytes)
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
  return new Part(path, await open(path, 'wx', 0o666))
}
