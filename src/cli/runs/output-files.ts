/**
 * An output as a reference image, for `run:<id>` and `row:<name>`: its URL while the host still serves it, else a data:
 * URL of the downloaded file.
 */
import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import { tooLarge } from '../../client/create.js'
import { isServed, parseOutputUrl } from '../../download/output-request.js'
import { withTimeout } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import type { Fetch } from '../../host/http.js'
import { describeError, isSystemError } from '../../host/system-error.js'
import { MAX_BODY_BYTES } from '../../protocol/limits.js'
import { dataUrl } from '../../protocol/media.js'

export interface OutputProbe {
  /** Fetch without the API key. */
  readonly fetch: Fetch
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Timeout for the check of a URL. A slower host is treated as not having the output. */
const PROBE_MS = 10_000

/** Whether the host still serves the output. Rejects only with the signal's reason. */
export async function isAvailable(
  text: string | undefined,
  { fetch, clock, signal }: OutputProbe,
): Promise<boolean> {
  const url = text === undefined ? undefined : parseOutputUrl(text)
  if (url === undefined) return false
  const timeoutError = new Error('the host took too long')
  const limit = { timeoutMs: PROBE_MS, reason: () => timeoutError, clock, signal }
  const nowMs = clock.now()
  try {
    return await withTimeout((either) => isServed({ fetch, url, signal: either, nowMs }), limit)
  } catch (error) {
    if (error === timeoutError) return false
    throw error
  }
}

export interface OutputOnDisk {
  readonly path: string
  /** The path in messages. */
  readonly file: string
  /** The reference, as written. */
  readonly reference: string
  readonly sha256: string
  readonly content_type: string
}

/** Returns the data: URL of a file, or why the file cannot be used. Throws `usage` if it is too large. */
export async function fileAsUrl(
  { path, file, reference, sha256, content_type }: OutputOnDisk,
  when = 'after it was downloaded',
): Promise<{ readonly url: string } | { readonly why: string }> {
  const bytes = await readSmall(path, `${reference} (${file})`).catch((error: unknown) => {
    if (isSystemError(error)) return describeError(error, file)
    throw error
  })
  if (typeof bytes === 'string') return { why: bytes }
  if (createHash('sha256').update(bytes).digest('hex') !== sha256)
    return { why: `${file} was changed ${when}` }
  return { url: dataUrl(bytes, content_type) }
}

async function readSmall(path: string, name: string): Promise<Buffer> {
  const { size } = await stat(path)
  if (size > MAX_BODY_BYTES) throw tooLarge(`${name} has ${size} bytes and must be sent with the request`)
  return await readFile(path)
}
