/**
 * One server of models, as the engines see it: requests with the key, patience with a server that is loading, bounded
 * answers, and errors that a person can read. A request that a server may have accepted is not sent again: some of these
 * servers cost money.
 */

import { HttpFailure, type HttpResponse, type ServerRequest } from '../../../host/http.js'
import { BodyTooLarge, decodedBody, readText, receiveText } from '../../../host/response-body.js'
import { type RetryDecision, retry, retryAfterMs, retryErrors, stepOf } from '../../../host/retry.js'
import type { Kind, ModelDocument } from '../../../protocol/models.js'
import { isObject, parseJson } from '../../../protocol/parse.js'
import { mayCost } from '../../../protocol/price.js'
import { createReferenceFetch, type ReferenceFetch } from '../../references/reference-fetch.js'
import { checkStructure } from '../../rules/create-request.js'
import type { UpstreamJob } from '../engine.js'
import { readSentParameters } from '../sent-parameters.js'
import type { EngineSettings, ServerParts } from '../settings.js'
import { readSizes } from '../sizes.js'
import { MAX_FILE_BYTES, saveFile } from './outputs.js'
import { type FormField, fileBody, formBody, jsonBody, type SourceFile } from './request-body.js'
import {
  BrokenTransfer,
  type CleanText,
  createCleanText,
  failedAnswer,
  isFinalAnswer,
  isTransient,
  UnusableAnswer,
  UpstreamError,
} from './upstream-error.js'

export interface UpstreamOptions {
  /** The engine's `url`, such as `http://127.0.0.1:1234/v1`. */
  readonly url: URL
  /** Sent only to the origin of `url`. */
  readonly key?: string | undefined
  /** Default: `Bearer`. With `Basic`, the key is `user:password`. `Key` is the scheme of fal. */
  readonly scheme?: 'Bearer' | 'Basic' | 'Key'
  /** Whether the model's document has a `cost`. */
  readonly hasCost?: boolean
  readonly parts: ServerParts
}

/** An answer of a server, as JSON. */
export type Answer = Readonly<Record<string, unknown>>

interface SendOptions {
  /** Ends a request that was sent, in place of the usual signal, which then ends only the wait for the server. */
  readonly sentSignal?: AbortSignal
  /** Further statuses of a server that is busy: the request is sent again, as after 429. */
  readonly busy?: readonly number[]
  /** Called before the request is sent, each time. With it, the request is not repeated after an answer 503. */
  readonly onSend?: UpstreamJob['onSend'] | undefined
  /** Called when the server has certainly not accepted the request, before it is sent again. */
  readonly onRefused?: UpstreamJob['onRefused'] | undefined
}

export interface UpstreamRequest extends SendOptions {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Below the engine's `url`, without a leading slash; may have a query. Or a whole URL. */
  readonly path: string
  /** A `SourceFile` in it is sent as base64. */
  readonly json?: unknown
  /** A multipart form, in place of `json`. */
  readonly form?: readonly FormField[]
  /** The bytes of a file, in place of `json`. */
  readonly file?: SourceFile
  /** The server may answer only when its work is done. Otherwise, a minute without an answer is a failure. */
  readonly isSlow?: boolean
}

/** Time that a server has to become ready. */
const READY_LIMIT_MS = 600_000
const READY_STEPS_MS = [1_000, 2_000, 4_000, 8_000, 15_000]
/** Pauses between the tries for a result whose transfer breaks off. */
const TRANSFER_STEPS_MS = [1_000, 2_000]
/** Less than a lease: no other worker takes the run over in this time. */
const MAX_SAVE_MS = 10_000
const MAX_REDIRECTS = 5
const MAX_JSON_BYTES = 64 * 1_048_576
/** The queue of ComfyUI has the workflows of all jobs. */
const MAX_VALUES = 1_000_000
const MAX_ERROR_BYTES = 65_536

type Attempt =
  | { readonly response: HttpResponse }
  | {
      readonly problem: UpstreamError
      readonly retryAfter?: string | undefined
      readonly isFinal: boolean
    }

/**
 * Reads the settings of a server that gets the parameters of a run as fields of its request: address, key, `send` and `sizes`.
 * `fixed`: fields that the engine sets itself. `others`: parameters that the engine sends in its own way.
 */
export function readServer(
  settings: EngineSettings,
  document: ModelDocument,
  {
    kind,
    fixed,
    others = [],
  }: {
    readonly kind: Kind
    readonly fixed: readonly string[]
    readonly others?: readonly string[]
  },
) {
  const url = settings.url('url')
  const key = settings.secret('key_env')
  const sent = readSentParameters(settings, document, fixed)
  const sizes = readSizes(settings, document, sent.names)
  settings.checkKind(document, kind)
  sent.checkRest(['prompt', 'image_urls', ...others, ...sizes.parameters])
  const open = (parts: ServerParts, more: Partial<UpstreamOptions> = {}): Upstream =>
    createUpstream({ url, key, hasCost: mayCost(document), parts, ...more })
  return { url, key, sent, sizes, open }
}

export const createUpstream = (options: UpstreamOptions): Upstream => new Upstream(options)

/**
 * Every method rejects with the reason of the signal when it is aborted, else with an `UpstreamError`. Requests are
 * repeated for ten minutes while the server refuses the connection or answers 503 or 429, unless that answer is final; a
 * GET also after a broken connection.
 */
export class Upstream {
  /** Cleans a text of an answer for an error message. */
  readonly clean: CleanText
  readonly origin: string
  /** Whether a run may cost money. */
  readonly costs: boolean
  /** Ends with a slash. */
  readonly #base: URL
  readonly #authorization: string | undefined
  readonly #parts: ServerParts
  readonly #otherHosts: ReferenceFetch

  constructor({ url, key, scheme = 'Bearer', hasCost = false, parts }: UpstreamOptions) {
    this.clean = createCleanText(url, key === undefined ? [] : secretsIn(key, scheme))
    this.origin = url.origin
    this.costs = hasCost
    this.#base = new URL(`${url.href.replace(/\/+$/, '')}/`)
    this.#authorization = key && `${scheme} ${scheme === 'Basic' ? base64Of(key) : key}`
    this.#parts = parts
    this.#otherHosts = createReferenceFetch({ privateAllowed: () => false, clock: parts.clock, env: {} })
  }

  /** Resolves with an answer of status 2xx, whose body must be read or discarded. */
  async send(asked: UpstreamRequest, signal: AbortSignal): Promise<HttpResponse> {
    const { method, path, json, form, file, isSlow = false, sentSignal } = asked
    const url = new URL(path, this.#base)
    if (method === 'GET') return await this.#get(url, signal)
    const body = file ? fileBody(file) : form ? formBody(form) : json === undefined ? json : jsonBody(json)
    const headers = this.#headersFor(url, body?.contentType)
    const request = { method, url, headers, fresh: true, isSlow, ...(body && { stream: body }) }
    const response = await this.#untilReady(request, signal, asked)
    if (!isRedirect(response)) return await this.#succeeded(response, sentSignal ?? signal)
    response.discard()
    throw new UpstreamError(
      `The model's server redirected the request (${response.status}). The engine's url must be the final address.`,
      { status: response.status },
    )
  }

  /** Resolves with a JSON answer of at most 64 MiB; empty for one that is not an object. */
  async value(request: UpstreamRequest, signal: AbortSignal): Promise<Answer> {
    const response = await this.send(request, signal)
    const { status } = response
    const text = await this.#read(response, signal, () => readText(response, MAX_JSON_BYTES))
    try {
      // The page of a proxy is not the answer of the server.
      if (!/^\s*</.test(text)) checkStructure(Buffer.from(text), MAX_VALUES)
    } catch {
      throw new UnusableAnswer(status)
    }
    const json = parseJson(text)
    if (json.ok) return isObject(json.value) ? json.value : {}
    throw new UpstreamError("The model's server sent an incomplete response, or one that is not JSON.", {
      status,
    })
  }

  /** Asks for a JSON answer. */
  get(path: string, signal: AbortSignal): Promise<Answer> {
    return this.value({ method: 'GET', path }, signal)
  }

  /** Sends the request that renders a run. */
  render(request: UpstreamRequest, { signal, onSend, onRefused }: UpstreamJob): Promise<Answer> {
    return this.value({ ...request, isSlow: true, onSend, onRefused }, signal)
  }

  /**
   * Gets a file at a path below `url`, or at a link of an answer. Resolves with the path of a hidden file of at most 512 MiB.
   * Another host gets no key, and must have a public address.
   */
  async download(link: string, { folder, signal }: UpstreamJob, maxBytes = MAX_FILE_BYTES): Promise<string> {
    if (!URL.canParse(link, this.#base)) throw new UpstreamError("The model's server sent an invalid link.")
    const transfer = async (): Promise<string> => {
      const response = await this.#get(new URL(link, this.#base), signal)
      const declared = Number(response.header('content-length') ?? 0)
      const body = decodedBody(response.header, response.body)
      return await this.#read(response, signal, () => saveFile(body, folder, maxBytes, declared))
    }
    // A transfer that breaks off is repeated: the result was made, and may have been paid for.
    return await retryErrors(transfer, {
      pauseMs: (error, number) => (isTransient(error) ? TRANSFER_STEPS_MS[number - 1] : undefined),
      clock: this.#parts.clock,
      signal,
    })
  }

  /** Sends a file to a URL of an answer. Another host than the server's gets no key, and must have a public address. */
  async upload(link: string, file: SourceFile, signal: AbortSignal): Promise<void> {
    const url = URL.canParse(link) ? new URL(link) : undefined
    if (url?.hostname === this.#base.hostname)
      return (await this.send({ method: 'PUT', path: link, file, isSlow: true }, signal)).discard()
    const status = url && (await this.#otherHosts.put(url, fileBody(file), signal))
    if (status === undefined)
      throw new UpstreamError("The model's server named an address for a file that is not public.")
    if (status < 200 || status > 299)
      throw new UpstreamError(`The host for a reference image answered ${status}.`, { status })
  }

  /** Closes connections to other hosts. */
  close(): Promise<void> {
    return this.#otherHosts.close()
  }

  #headersFor(url: URL, contentType?: string): Record<string, string> {
    return {
      accept: '*/*',
      ...(contentType !== undefined && { 'content-type': contentType }),
      ...(this.#authorization !== undefined &&
        url.origin === this.origin && { authorization: this.#authorization }),
    }
  }

  /** Follows redirects on the server's own host, where only its own origin gets the key. */
  async #get(start: URL, signal: AbortSignal): Promise<HttpResponse> {
    let url = start
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      if (!isHttp(url) || url.hostname !== this.#base.hostname) return await this.#getElsewhere(url, signal)
      const request = { method: 'GET', url, headers: this.#headersFor(url) } as const
      const response = await this.#untilReady(request, signal, {})
      if (!isRedirect(response)) return await this.#succeeded(response, signal)
      response.discard()
      const target = response.header('location') ?? ''
      if (!URL.canParse(target, url)) break
      url = new URL(target, url)
    }
    throw new UpstreamError("The model's server redirected the request too often, or to an invalid address.")
  }

  async #getElsewhere(url: URL, signal: AbortSignal): Promise<HttpResponse> {
    const body = await this.#otherHosts.get(url, signal).catch((cause) => {
      signal.throwIfAborted()
      throw new BrokenTransfer("A file that the model's server linked to could not be fetched.", { cause })
    })
    if (body === undefined)
      throw new UpstreamError(
        "The model's server linked to a file that cannot be fetched, or to an address that is not public.",
        // The link may have expired.
        { status: 404 },
      )
    return { status: 200, header: () => undefined, body, discard: () => {} }
  }

  /** Translates a body that breaks off, or that is too large. */
  async #read<Value>(
    response: HttpResponse,
    signal: AbortSignal,
    work: () => Promise<Value>,
  ): Promise<Value> {
    try {
      return await work()
    } catch (error) {
      response.discard()
      signal.throwIfAborted()
      if (error instanceof BodyTooLarge) throw new UnusableAnswer(response.status)
      if (!(error instanceof HttpFailure)) throw error
      const text = this.clean(`The response of the model's server broke off: ${error.message}.`)
      throw new BrokenTransfer(text, { cause: error })
    }
  }

  async #succeeded(response: HttpResponse, signal: AbortSignal): Promise<HttpResponse> {
    if (response.status >= 200 && response.status <= 299) return response
    throw await this.#errorOf(response, signal)
  }

  async #errorOf(response: HttpResponse, signal: AbortSignal): Promise<UpstreamError> {
    const { text } = await receiveText(response, MAX_ERROR_BYTES)
    signal.throwIfAborted()
    return failedAnswer(response.status, response.header('content-type'), text, this.clean)
  }

  /** Resolves with any answer but 503, 429 and those of `busy`. */
  async #untilReady(
    request: ServerRequest,
    signal: AbortSignal,
    options: SendOptions,
  ): Promise<HttpResponse> {
    const { clock, warn } = this.#parts
    const startedAtMs = clock.monotonic()
    const attempt = async (): Promise<Attempt> => {
      const outcome = await this.#sendOnce(request, signal, options)
      if ('problem' in outcome && !outcome.isFinal) await options.onRefused?.()
      return outcome
    }
    const decide = (outcome: Attempt, number: number): RetryDecision<HttpResponse> => {
      if ('response' in outcome) return { done: outcome.response }
      const { problem, retryAfter, isFinal } = outcome
      if (isFinal) return { fail: problem }
      const waitMs = Math.max(stepOf(READY_STEPS_MS, number), retryAfterMs(retryAfter, clock.now()))
      if (clock.monotonic() - startedAtMs + waitMs <= READY_LIMIT_MS) {
        // One failure alone is common.
        const text = problem.message.replace(/[^.!?]$/, '$&.')
        if (number === 2) warn?.(`${this.origin}: ${text} Still trying.`)
        return { retryInMs: waitMs }
      }
      const waited = `The model's server was not ready within ${READY_LIMIT_MS / 60_000} minutes.`
      return { fail: new UpstreamError(`${waited} ${problem.message}`, { status: problem.status }) }
    }
    return await retry({ attempt, decide, clock, signal })
  }

  async #sendOnce(
    request: ServerRequest,
    signal: AbortSignal,
    { sentSignal = signal, busy = [], onSend, onRefused }: SendOptions,
  ): Promise<Attempt> {
    const { clock, fetch } = this.#parts
    const startedSavingAtMs = clock.now()
    await onSend?.()
    // While this process was suspended, another worker may have taken the run over. The second call then throws.
    if (clock.now() - startedSavingAtMs > MAX_SAVE_MS) await onSend?.()
    // The run was canceled, or its worker stops, before anything is sent.
    if (signal.aborted) await onRefused?.()
    signal.throwIfAborted()
    try {
      // The answer may arrive after the abort, and tell that the run was not accepted.
      const response = await fetch({ ...request, signal: sentSignal })
      if (![503, 429, ...busy].includes(response.status)) return { response }
      const problem = await this.#errorOf(response, sentSignal)
      const retryAfter = response.header('retry-after') ?? retryAfterIn(problem.answer)
      const isUnclear = response.status === 503 && onSend !== undefined
      return { problem, retryAfter, isFinal: isUnclear || isFinalAnswer(problem.answer, request) }
    } catch (error) {
      sentSignal.throwIfAborted()
      if (!(error instanceof HttpFailure)) throw error
      const { message, advice = '' } = error
      const text = this.clean(`The connection to the model's server failed: ${message}. ${advice}`.trim())
      return { problem: new UpstreamError(text, { cause: error }), isFinal: !mayRepeat(request, error) }
    }
  }
}

/** Parts of a key that are shorter could be words of a message. */
const MIN_SECRET_LENGTH = 8

/** A server may repeat the key in another form, or a part of it: a key of fal is an id and a secret. */
function secretsIn(key: string, scheme: UpstreamOptions['scheme']): readonly string[] {
  const parts = key.split(':').filter(({ length }) => length >= MIN_SECRET_LENGTH)
  return [key, base64Of(key), ...(scheme === 'Basic' ? [key.replace(/^[^:]*:/, '')] : parts)]
}

const base64Of = (text: string): string => Buffer.from(text).toString('base64')

/** 304 answers only conditional requests. */
const isRedirect = ({ status }: HttpResponse): boolean => [301, 302, 303, 307, 308].includes(status)

const isHttp = ({ protocol }: URL): boolean => protocol === 'http:' || protocol === 'https:'

/** Replicate writes the seconds into the body: `retry_after: 5`. */
const retryAfterIn = (answer: unknown): string | undefined =>
  isObject(answer) && answer.retry_after !== undefined ? String(answer.retry_after) : undefined

/** No byte of the request was sent. A name that is not found may be a container that is starting. */
const NOT_READY =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|EHOSTDOWN|EHOSTUNREACH|ENETUNREACH|ETIMEDOUT|UND_ERR_CONNECT_TIMEOUT)$/

function mayRepeat({ method }: ServerRequest, { sent, code = '', isInvalidHttp }: HttpFailure): boolean {
  return sent ? method === 'GET' && !isInvalidHttp : NOT_READY.test(code)
}
