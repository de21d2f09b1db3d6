/**
 * Sends the GET request for an output, and reads the body: counts, checks and decodes it, and decides whether it is the rest
 * of the file. Follows redirects. Sends only data that the host of the output needs. Output URLs often contain a secret.
 */
import { RushesError } from '../errors.js'
import { type Fetch, HttpFailure, type HttpResponse } from '../host/http.js'
import { decodedBody, isEncoded, UNSUPPORTED_ENCODING } from '../host/response-body.js'
import { printable, shortened } from '../protocol/text.js'

interface AttemptFailedOptions {
  /** Whether the same request may succeed later. */
  readonly isRetryable: boolean
  /** The HTTP status, if it was the reason. */
  readonly status?: number | undefined
  readonly cause?: unknown
}

export class AttemptFailed extends Error {
  override readonly name = 'AttemptFailed'
  readonly isRetryable: boolean
  readonly status: number | undefined

  /** `reason` must make sense after a colon: `the host answered 503`. */
  constructor(reason: string, { isRetryable, status, cause }: AttemptFailedOptions) {
    super(shortened(reason), { cause })
    this.isRetryable = isRetryable
    this.status = status
  }
}

const REDIRECTS = new Set([301, 302, 303, 307, 308])
const MAX_REDIRECTS = 10

export interface OutputRequest {
  readonly fetch: Fetch
  readonly url: URL
  readonly signal: AbortSignal | undefined
  /** Range request: get only the rest of the file, if the file is unchanged. */
  readonly from?: { readonly bytes: number; readonly ifRange: string } | undefined
  /** Request a single byte, to test whether the host has the file. */
  readonly isProbe?: boolean
}

/**
 * Sends the request and follows redirects. Throws `AttemptFailed` unless the final status is 200, 206 (with `from` or
 * `isProbe`) or 416 (with `from`).
 */
export async function sendRequest(request: OutputRequest): Promise<HttpResponse> {
  const { fetch, signal, from, isProbe = false } = request
  const headers = {
    accept: '*/*',
    // `identity`, so that Content-Length is the length of the file.
    'accept-encoding': 'identity',
    ...(from !== undefined && { range: `bytes=${from.bytes}-`, 'if-range': from.ifRange }),
    ...(isProbe && { range: 'bytes=0-0' }),
  }
  let { url } = request
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const response = await fetch({ method: 'GET', url, headers, signal }).catch((error: unknown) => {
      throw asAttemptFailed(error)
    })
    const { status } = response
    const isPart = status === 206 && (from !== undefined || isProbe)
    if (status === 200 || isPart || (from !== undefined && status === 416)) return response
    const location = REDIRECTS.has(status) ? response.header('location') : undefined
    response.discard()
    if (location === undefined) throw failureOfStatus(status)
    const next = parseOutputUrl(location, url)
    if (next === undefined)
      // Do not include the location: secrets can be removed from a URL, but not from other text.
      throw new AttemptFailed('the host redirects to something that is not an http or https URL', {
        isRetryable: false,
      })
    url = next
  }
  throw new AttemptFailed(`the host redirects more than ${MAX_REDIRECTS} times`, { isRetryable: false })
}

/**
 * Resolves with whether the host still serves the output. Reads no bytes of it. Rejects only with the signal's reason.
 */
export async function isServed(request: Omit<OutputRequest, 'from'>): Promise<boolean> {
  try {
    const response = await sendRequest({ ...request, isProbe: true })
    response.discard()
    return true
  } catch (error) {
    request.signal?.throwIfAborted()
    if (error instanceof AttemptFailed) return false
    throw error
  }
}

/** Returns the error for a status other than 200. */
export function failureOfStatus(status: number): AttemptFailed {
  const isRetryable = status >= 500 || status === 408 || status === 429
  return new AttemptFailed(`the host answered ${status}`, { isRetryable, status })
}

/** Converts network errors and invalid proxy settings to `AttemptFailed`; returns aborts and bugs unchanged. */
function asAttemptFailed(error: unknown): unknown {
  if (error instanceof HttpFailure)
    return new AttemptFailed(error.message, {
      isRetryable: error.code !== UNSUPPORTED_ENCODING,
      cause: error,
    })
  if (error instanceof RushesError && error.code === 'usage')
    return new AttemptFailed(error.message, { isRetryable: false, cause: error })
  return error
}

/** Parses an http(s) URL and removes user name and password; undefined if it is not http(s). */
export function parseOutputUrl(text: string, base?: URL): URL | undefined {
  if (!URL.canParse(text, base?.href)) return undefined
  const url = new URL(text, base)
  if (url.protocol !== 'http:' && url.protocol !== 'https:') return undefined
  url.username = ''
  url.password = ''
  return url
}

/**
 * Returns a URL for messages, which end up in logs. Removes the query, because the query of a signed URL gives access
 * to the file.
 */
export function printableUrl(text: string): string {
  const url = parseOutputUrl(text)
  return shortened(url ? url.origin + url.pathname : printable(text).replace(/[?#].*$/, ''), 200)
}

/** Yields the bytes of the body. Throws `AttemptFailed` if there are fewer or more than declared, or none. */
export async function* checked(
  response: HttpResponse,
  onReceived: (bytes: number) => void,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const declared = declaredLength(response.header)
  let received = 0
  try {
    for await (const chunk of response.body) {
      signal?.throwIfAborted()
      received += chunk.byteLength
      if (declared !== undefined && received > declared)
        throw new AttemptFailed(`the host sent more than the ${declared} bytes it declared`, {
          isRetryable: true,
        })
      onReceived(chunk.byteLength)
      yield chunk
    }
  } catch (error) {
    throw asAttemptFailed(error)
  }
  if (declared !== undefined && received < declared)
    throw new AttemptFailed(`the response ended after ${received} of ${declared} bytes`, {
      isRetryable: true,
    })
  if (received === 0) throw new AttemptFailed('the response is empty', { isRetryable: true })
}

/**
 * Yields the bytes of the file. Object stores keep `Content-Encoding` with the object and always send it, although
 * `identity` was requested. Refuses a small body that is decoded into a huge file: downloads have no other limit.
 */
export async function* decoded(
  response: HttpResponse,
  onReceived: (bytes: number) => void,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  const { header } = response
  if (!isEncoded(header)) return yield* checked(response, onReceived, signal)
  let received = 0
  let bytes = 0
  const count = (more: number) => {
    received += more
    onReceived(more)
  }
  try {
    for await (const chunk of decodedBody(header, checked(response, count, signal))) {
      bytes += chunk.byteLength
      if (bytes > MAX_DECODED_BYTES && bytes > received * MAX_EXPANSION)
        throw new AttemptFailed(
          `the host sent ${received} bytes, which are decoded into more than ${MAX_DECODED_BYTES} bytes`,
          { isRetryable: false },
        )
      yield chunk
    }
  } catch (error) {
    throw asAttemptFailed(error)
  }
}

const MAX_DECODED_BYTES = 268_435_456
/** Media files are compressed already. Only a file that is nearly empty shrinks more. */
const MAX_EXPANSION = 100

// Whether a download can be resumed. The rest of a changed file must never be appended to an old part, so the host must
// confirm that the file is unchanged (RFC 9110, 13.1.5 and 14.4).

/** Identifies the file that a part belongs to. Does not contain the URL, which may contain a secret. */
export interface FileVersion {
  /** A strong ETag: a weak one does not identify bytes. */
  readonly etag: string
  readonly totalBytes: number
}

type HeaderReader = (name: string) => string | undefined

const STRONG_ETAG = /^"[\x21\x23-\x7e]*"$/

/**
 * Returns the version from the headers of a full response. Undefined without a strong ETag or a length, and if the body is
 * encoded, so that it is not the bytes of the file: the download then cannot be resumed.
 */
export function versionOf(header: HeaderReader): FileVersion | undefined {
  const etag = header('etag')?.trim() ?? ''
  const totalBytes = declaredLength(header)
  const isKnown = STRONG_ETAG.test(etag) && !isEncoded(header)
  return isKnown && totalBytes !== undefined ? { etag, totalBytes } : undefined
}

/** Returns `Content-Length`; undefined if it is missing or invalid. */
export function declaredLength(header: HeaderReader): number | undefined {
  const length = header('content-length')?.trim() ?? ''
  return /^\d{1,15}$/.test(length) ? Number(length) : undefined
}

type Continuation =
  /** The response contains the rest of the file. */
  | 'append'
  /** The response contains the whole file. */
  | 'restart'
  /** Discard the part and request the whole file. */
  | 'mismatch'

interface PartialAnswer {
  readonly status: number
  readonly header: HeaderReader
}

/**
 * Decides how to continue after the response to a request for the bytes from `bytes`. Some hosts support `Range`, but not
 * `If-Range`: a 206 must repeat the ETag (RFC 9110, 15.3.7).
 */
export function continuationOf(
  { etag, totalBytes }: FileVersion,
  bytes: number,
  { status, header }: PartialAnswer,
): Continuation {
  if (status === 200) return 'restart'
  const range = header('content-range')?.trim().toLowerCase()
  const isRest = status === 206 && range === `bytes ${bytes}-${totalBytes - 1}/${totalBytes}`
  return isRest && !isEncoded(header) && header('etag')?.trim() === etag ? 'append' : 'mismatch'
}
