/** A GET request for an output: follows redirects, and sends nothing that the output's host need not know. */
import { RushesError } from '../errors.js'
import { retryAfterMs } from '../host/backoff.js'
import { type Fetch, HttpFailure, type HttpResponse } from '../host/http.js'
import { AttemptFailed, failureOfStatus, MAX_RETRY_AFTER_MS } from './attempt-failed.js'
import { parseOutputUrl } from './output-url.js'

const REDIRECTS = new Set([301, 302, 303, 307, 308])
const MAX_REDIRECTS = 10

export interface OutputRequest {
  readonly fetch: Fetch
  readonly url: URL
  readonly userAgent: string | undefined
  readonly signal: AbortSignal | undefined
  /** Wall clock, milliseconds: `Retry-After` may be a date. */
  readonly nowMs: number
  /** Request only the rest of the file, if it is unchanged. */
  readonly from?: { readonly bytes: number; readonly ifRange: string } | undefined
  /** Request a single byte, to see whether the host has the file. */
  readonly isProbe?: boolean
}

export interface OutputResponse {
  readonly response: HttpResponse
  /** Where the last redirect led. */
  readonly url: URL
}

/** Throws `AttemptFailed` for any final status but 200, or, with a range, 206, or, with `from`, 416. */
export async function sendRequest(request: OutputRequest): Promise<OutputResponse> {
  let { url } = request
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const response = await sendOnce(request, url)
    const { status } = response
    const { from, isProbe } = request
    const isPart = status === 206 && (from !== undefined || isProbe === true)
    if (status === 200 || isPart || (from !== undefined && status === 416)) return { response, url }
    const location = REDIRECTS.has(status) ? response.header('location') : undefined
    response.discard()
    if (location === undefined)
      throw failureOfStatus(
        status,
        retryAfterMs(response.header('retry-after'), request.nowMs, MAX_RETRY_AFTER_MS),
      )
    const next = parseOutputUrl(location, url)
    if (next === undefined)
      // Without the location: what is not a URL cannot be cut to the parts that hold no secret.
      throw new AttemptFailed('the host redirects to something that is not an http or https URL', {
        isRetryable: false,
      })
    url = next
  }
  throw new AttemptFailed(`the host redirects more than ${MAX_REDIRECTS} times`, { isRetryable: false })
}

/** Whether the host still serves the output. Reads nothing of it. Rejects with the signal's reason alone. */
export async function isServed(request: Omit<OutputRequest, 'from'>): Promise<boolean> {
  try {
    const { response } = await sendRequest({ ...request, isProbe: true })
    response.discard()
    return true
  } catch (error) {
    request.signal?.throwIfAborted()
    if (error instanceof AttemptFailed) return false
    throw error
  }
}

async function sendOnce(
  { fetch, userAgent, signal, from, isProbe }: OutputRequest,
  url: URL,
): Promise<HttpResponse> {
  const headers = {
    accept: '*/*',
    // So that Content-Length is the length of the file.
    'accept-encoding': 'identity',
    ...(userAgent === undefined ? {} : { 'user-agent': userAgent }),
    ...(from === undefined ? {} : { range: `bytes=${from.bytes}-`, 'if-range': from.ifRange }),
    ...(isProbe === true && { range: 'bytes=0-0' }),
  }
  try {
    return await fetch({ method: 'GET', url, headers, signal })
  } catch (error) {
    throw asAttemptFailed(error)
  }
}

/** Converts network errors and invalid proxy settings; aborts and bugs stay as they are. */
export function asAttemptFailed(error: unknown): unknown {
  if (error instanceof HttpFailure)
    return new AttemptFailed(error.message, { isRetryable: true, cause: error })
  if (error instanceof RushesError && error.code === 'usage')
    return new AttemptFailed(error.message, { isRetryable: false, cause: error })
  return error
}
