/**
 * Finds an image URL for the output of another row: its URL while the service still has the file, else a data: URL of
 * the local file. Checks the URL just before it is sent, since it may expire while the batch runs.
 */
import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { resolve } from 'node:path'
import { type Made, outputsOf } from '../../batch/lock/lock.js'
import type { RowReference } from '../../batch/manifest/index.js'
import { tooLarge } from '../../client/create.js'
import type { ApiClient } from '../../client/index.js'
import { isServed, parseOutputUrl } from '../../download/output-request.js'
import { RushesError, usageError } from '../../errors.js'
import { withTimeout } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import type { Fetch } from '../../host/http.js'
import { describeError, isSystemError } from '../../host/system-error.js'
import { MAX_BODY_BYTES } from '../../protocol/limits.js'
import { dataUrl } from '../../protocol/media.js'
import type { RunState } from '../../protocol/run-state.js'

interface SourceUrls {
  /** Remembers the URLs of a run that this batch has followed. */
  learn(state: Pick<RunState, 'id' | 'urls'>): void
  /**
   * Returns the URL of an output. Rejects with `usage` if neither the service nor the disk has the output, or with the
   * signal's reason.
   */
  urlOf(reference: RowReference): Promise<string>
}

export interface SourceUrlsOptions {
  readonly client: Pick<ApiClient, 'get'>
  /** Fetch without the API key. */
  readonly fetch: Fetch
  readonly clock: Pick<Clock, 'now' | 'alarm'>
  /** Address of the service. */
  readonly address: string
  /** Absolute path of the manifest's folder. */
  readonly folder: string
  madeOf(name: string): Made | undefined
  readonly signal: AbortSignal
}

type Urls = readonly string[]

/** Timeout for the check of a URL. A slower host is treated as not having the output. */
const PROBE_MS = 10_000

export function createSourceUrls(options: SourceUrlsOptions): SourceUrls {
  const { client, fetch, clock, address, folder, madeOf, signal } = options
  const known = new Map<string, Urls>()
  const requests = new Map<string, Promise<Urls>>()

  /** Sends one status request at a time for a run, and none for a run that the service does not know. */
  function fetchUrls(run: string): Promise<Urls> {
    const request = requests.get(run) ?? renew(run)
    requests.set(run, request)
    return request
  }

  async function renew(run: string): Promise<Urls> {
    let isGone = false
    try {
      const { urls } = await client.get(run, signal)
      known.set(run, urls)
      return urls
    } catch (error) {
      signal.throwIfAborted()
      isGone = error instanceof RushesError && error.code === 'run_not_found'
      return []
    } finally {
      if (!isGone) requests.delete(run)
    }
  }

  async function isAvailable(text: string | undefined): Promise<boolean> {
    const url = text === undefined ? undefined : parseOutputUrl(text)
    if (url === undefined) return false
    const timeoutError = new Error('the host took too long')
    const limit = { timeoutMs: PROBE_MS, reason: () => timeoutError, clock, signal }
    const nowMs = clock.now()
    try {
      return await withTimeout(
        (either) => isServed({ fetch, url, userAgent: undefined, signal: either, nowMs }),
        limit,
      )
    } catch (error) {
      if (error === timeoutError) return false
      throw error
    }
  }

  async function servedUrl({ run, service }: Made, at: number): Promise<string | undefined> {
    if (service !== address) return undefined
    const first = known.get(run)?.[at]
    if (await isAvailable(first)) return first
    // A status request renews URLs that have expired.
    const fresh = (await fetchUrls(run))[at]
    return fresh !== first && (await isAvailable(fresh)) ? fresh : undefined
  }

  return {
    learn: ({ id, urls }) => void known.set(id, urls),
    async urlOf({ text, source, output }) {
      const made = madeOf(source)
      const found = outputsOf(made)[output - 1]
      if (made === undefined || found === undefined)
        throw new Error('a row begins when its sources are there')
      return (
        (await servedUrl(made, output - 1)) ??
        fileAsUrl({ ...found, path: resolve(folder, found.file), text, source })
      )
    },
  }
}

interface SourceFile {
  readonly path: string
  readonly file: string
  readonly sha256: string
  readonly content_type: string
  /** The reference, as written. */
  readonly text: string
  readonly source: string
}

async function fileAsUrl({ path, file, sha256, content_type, text, source }: SourceFile): Promise<string> {
  const gone = (why: string) =>
    usageError(
      `${text}: the service does not have this output any more, and ${why}.`,
      `Create it again with --only ${source} --force.`,
    )
  const bytes = await readSmall(path, `${text} (${file})`).catch((error: unknown) => {
    throw isSystemError(error) ? gone(describeError(error, file)) : error
  })
  if (createHash('sha256').update(bytes).digest('hex') !== sha256)
    throw gone(`${file} was changed after it was downloaded`)
  return dataUrl(bytes, content_type)
}

async function readSmall(path: string, name: string): Promise<Buffer> {
  const { size } = await stat(path)
  if (size > MAX_BODY_BYTES) throw tooLarge(`${name} has ${size} bytes and must be sent with the request`)
  return await readFile(path)
}
