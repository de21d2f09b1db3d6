/** One GET to the head of a good answer: redirects followed, nothing sent that the host of an output need not know. */
import { retryAfterMs } from '../host/backoff.js'
import { type Fetch, HttpFailure, type HttpResponse } from '../host/http.js'
import { Miss, MOST_RETRY_AFTER_MS, missOfStatus } from './attempt-failed.js'
import { parseAddress, printableAddress } from './output-url.js'

const REDIRECTS = new Set([301, 302, 303, 307, 308])
const MOST_REDIRECTS = 10

export interface Question {
  readonly fetch: Fetch
  readonly url: URL
  readonly userAgent: string | undefined
  readonly signal: AbortSignal | undefined
  /** Wall clock, milliseconds: `Retry-After` may be a date. */
  readonly nowMs: number
  /** Only what follows so many bytes, if the file is still that one. */
  readonly from?: { readonly bytes: number; readonly ifRange: string } | undefined
}

export interface Answer {
  readonly response: HttpResponse
  /** Where the last redirect led. */
  readonly url: URL
}

/** Throws `Miss` for everything that is not a 200, or for a question `from` a 206 or a 416. */
export async function ask(question: Question): Promise<Answer> {
  let { url } = question
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects++) {
    const response = await get(question, url)
    const { status } = response
    if (status === 200 || (question.from !== undefined && (status === 206 || status === 416)))
      return { response, url }
    const location = REDIRECTS.has(status) ? response.header('location') : undefined
    response.discard()
    if (location === undefined)
      throw missOfStatus(
        status,
        retryAfterMs(response.header('retry-after'), question.nowMs, MOST_RETRY_AFTER_MS),
      )
    const next = parseAddress(location, url)
    if (next === undefined)
      throw new Miss(`the host redirects to ${printableAddress(location)}, which is no http or https URL`, {
        again: false,
      })
    url = next
  }
  throw new Miss(`the host redirects more than ${MOST_REDIRECTS} times`, { again: false })
}

async function get({ fetch, userAgent, signal, from }: Question, url: URL): Promise<HttpResponse> {
  const headers = {
    accept: '*/*',
    // The declared length is then that of the file.
    'accept-encoding': 'identity',
    ...(userAgent === undefined ? {} : { 'user-agent': userAgent }),
    ...(from === undefined ? {} : { range: `bytes=${from.bytes}-`, 'if-range': from.ifRange }),
  }
  try {
    return await fetch({ method: 'GET', url, headers, signal })
  } catch (error) {
    throw missOfFailure(error)
  }
}

/** A network that failed is a miss; an abort, or a bug, stays what it is. */
export const missOfFailure = (error: unknown): unknown =>
  error instanceof HttpFailure ? new Miss(error.message, { again: true, cause: error }) : error
