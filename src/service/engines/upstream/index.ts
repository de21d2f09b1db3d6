/**
 * One server of models, as the engines see it: requests with the key, patience with a server that is loading, bounded
 * answers, and errors that a person can read. A request is sent once, unless the server certainly did not accept it:
 * some of these servers cost money.
 */
import { decodedBody } from '../../../host/content-encoding.js'
import { HttpFailure, type HttpResponse } from '../../../host/http.js'
import { BodyTooLarge, readText } from '../../../host/receive-text.js'
import { retryErrors } from '../../../host/retry.js'
import { parseJson } from '../../../protocol/parse.js'
import { createReferenceFetch, type ReferenceFetch } from '../../references/reference-fetch.js'
import { checkStructure } from '../../rules/create-request.js'
import type { UpstreamJob } from '../engine.js'
import type { ServerParts } from '../read-engine.js'
import { MAX_FILE_BYTES, saveFile } from './outputs.js'
import { type FormField, fileBody, formBody, jsonBody, type SourceFile } from './request-body.js'
import { createUntilReady, type SendHooks } from './until-ready.js'
import {
  BrokenTransfer,
  type CleanText,
  createCleanText,
  isTransient,
  UnusableAnswer,
  UpstreamError,
} from './upstream-error.js'

export interface UpstreamOptions {
  /** The engine's `url`, such as `http://127.0.0.1:1234/v1`. */
  readonly url: URL
  /** Sent only to the origin of `url`. */
  readonly key?: string | undefined
  /** A key in the body of requests, which no message repeats. */
  readonly otherKey?: string | undefined
  /** Default: `bearer`. With `basic`, the key is `user:password`. `key` is the scheme of fal. */
  readonly scheme?: 'bearer' | 'basic' | 'key'
  /** Whether the model's document has a `cost`. */
  readonly hasCost?: boolean
  readonly parts: ServerParts
}

export interface UpstreamRequest extends SendHooks {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Below the engine's `url`, without a leading slash; may have a query. Or a whole URL of the same origin. */
  readonly path: string
  /** A `SourceFile` in it is sent as base64. */
  readonly json?: unknown
  /** A multipart form, in place of `json`. */
  readonly form?: readonly FormField[]
  /** The bytes of a file, in place of `json`. */
  readonly file?: SourceFile
  /** The server answers without rendering anything: a minute without an answer is a failure, as it is for a GET. */
  readonly isQuick?: boolean
  /** Fail at once when the server is not ready. */
  readonly once?: boolean
  /** Ends a request that was sent, in place of the usual signal, which then ends only the wait for the server. */
  readonly sentSignal?: AbortSignal
  /** Maximum number of values in a JSON answer. Default: that of a request to the service. */
  readonly maxValues?: number
}

/**
 * Every method rejects with the reason of the signal when it is aborted, else with an `UpstreamError`. Requests are
 * repeated for ten minutes while the server refuses the connection or answers 503 or 429, unless that answer is final; a
 * GET also after a broken connection.
 */
export interface Upstream {
  /** Resolves with an answer of status 2xx, whose body must be read or discarded. */
  send(request: UpstreamRequest, signal: AbortSignal): Promise<HttpResponse>
  /** Resolves with a JSON answer of at most 64 MiB. */
  value(request: UpstreamRequest, signal: AbortSignal): Promise<unknown>
  /** Like `value`, for the request that renders a run. */
  json(request: UpstreamRequest, job: UpstreamJob): Promise<unknown>
  /** Gets a file at a path below `url`. Resolves with the path of a hidden file. `maxBytes`: at most 512 MiB. */
  file(path: string, job: UpstreamJob, maxBytes?: number): Promise<string>
  /**
   * Like `file`, for a link in an answer: relative to the server, or absolute. Another host gets no key, and must have a
   * public address.
   */
  download(link: string, job: UpstreamJob, maxBytes?: number): Promise<string>
  /** Sends a file to a URL of an answer. Another host than the server's gets no key, and must have a public address. */
  upload(link: string, file: SourceFile, signal: AbortSignal): Promise<void>
  /** Cleans a text of an answer for an error message. */
  readonly clean: CleanText
  readonly origin: string
  /** Whether a run may cost money. */
  readonly costs: boolean
  /** Closes connections to other hosts. */
  close(): Promise<void>
}

/** Pauses between the tries for a result whose transfer breaks off. */
const TRANSFER_STEPS_MS = [1_000, 2_000]
const MAX_REDIRECTS = 5
const MAX_JSON_BYTES = 64 * 1_048_576

/** Parts of a key that are shorter could be words of a message. */
const MIN_SECRET_LENGTH = 8

/** A server may repeat the key in another form, or a part of it: a key of fal is an id and a secret. */
function secretsIn(key: string, scheme: UpstreamOptions['scheme']): readonly string[] {
  const parts = key.split(':').filter(({ length }) => length >= MIN_SECRET_LENGTH)
  return [key, base64Of(key), ...(scheme === 'basic' ? [key.replace(/^[^:]*:/, '')] : parts)]
}

export function createUpstream(options: UpstreamOptions): Upstream {
  const { url: base, key, scheme, otherKey, hasCost = false, parts } = options
  const { clock } = parts
  const secrets = [key, otherKey].flatMap((each) => (each === undefined ? [] : secretsIn(each, scheme)))
  const clean = createCleanText(base, secrets)
  const otherHosts = createReferenceFetch({ privateAllowed: () => false, clock, env: {} })
  const { send, get } = createRequests(options, clean, otherHosts)

  /** Translates a body that breaks off, or that is too large. */
  async function read<Value>(
    response: HttpResponse,
    signal: AbortSignal,
    work: () => Promise<Value>,
  ): Promise<Value> {
    try {
      return await work()
    } catch (error) {
      response.discard()
      signal.throwIfAborted()
      if (error instanceof HttpFailure)
        throw new BrokenTransfer(clean(`The response of the model's server broke off: ${error.message}.`), {
          cause: error,
        })
      throw error instanceof BodyTooLarge ? new UnusableAnswer(response.status) : error
    }
  }

  /** Repeats a transfer that breaks off: the result was made, and may have been paid for. */
  const fetchFile = (
    request: () => Promise<HttpResponse>,
    { folder, signal }: UpstreamJob,
    maxBytes = MAX_FILE_BYTES,
  ): Promise<string> =>
    retryErrors(
      async () => {
        const response = await request()
        const declared = Number(response.header('content-length') ?? 0)
        const body = decodedBody(response.header, response.body)
        return await read(response, signal, () => saveFile(body, folder, maxBytes, declared))
      },
      {
        pauseMs: (error, number) => (isTransient(error) ? TRANSFER_STEPS_MS[number - 1] : undefined),
        clock,
        signal,
      },
    )

  const value: Upstream['value'] = async (request, signal) => {
    const response = await send(request, signal)
    const { status } = response
    const text = await read(response, signal, () => readText(response, MAX_JSON_BYTES))
    try {
      checkStructure(Buffer.from(text), request.maxValues)
    } catch {
      throw new UnusableAnswer(status)
    }
    const json = parseJson(text)
    if (json.ok) return json.value
    throw new UpstreamError("The model's server sent an incomplete response, or one that is not JSON.", {
      status,
    })
  }

  return {
    send,
    value,
    json: (request, { signal, onSend, onRefused }) => value({ ...request, onSend, onRefused }, signal),
    file: (path, job, maxBytes) => fetchFile(() => send({ method: 'GET', path }, job.signal), job, maxBytes),
    async download(link, job, maxBytes) {
      if (!URL.canParse(link, base)) throw new UpstreamError("The model's server sent an invalid link.")
      return await fetchFile(() => get(new URL(link, base), job.signal), job, maxBytes)
    },
    async upload(link, file, signal) {
      const url = URL.canParse(link) ? new URL(link) : undefined
      if (url?.hostname === base.hostname)
        return (await send({ method: 'PUT', path: link, file }, signal)).discard()
      const status = url && (await otherHosts.put(url, fileBody(file), signal))
      if (status === undefined)
        throw new UpstreamError("The model's server named an address for a file that is not public.")
      if (status < 200 || status > 299)
        throw new UpstreamError(`The host for a reference image answered ${status}.`, { status })
    },
    clean,
    origin: base.origin,
    costs: hasCost,
    close: () => otherHosts.close(),
  }
}

/** Resolves with answers of status 2xx, whose bodies must be read or discarded. */
interface Requests {
  send: Upstream['send']
  /** `start`: of any host. */
  get(start: URL, signal: AbortSignal, limitMs?: number): Promise<HttpResponse>
}

function createRequests(
  { url: base, key, scheme, parts }: UpstreamOptions,
  clean: CleanText,
  otherHosts: ReferenceFetch,
): Requests {
  const { untilReady, errorOf } = createUntilReady(parts, clean)
  const word = scheme === 'key' ? 'Key' : 'Bearer'
  const credentials = scheme === 'basic' ? `Basic ${base64Of(key ?? '')}` : `${word} ${key}`

  const urlOf = (path: string): URL =>
    new URL(/^https?:/.test(path) ? path : `${base.href.replace(/\/+$/, '')}/${path}`)

  const headersFor = (url: URL, contentType?: string): Record<string, string> => ({
    accept: '*/*',
    ...(contentType !== undefined && { 'content-type': contentType }),
    ...(key !== undefined && url.origin === base.origin && { authorization: credentials }),
  })

  async function succeeded(response: HttpResponse, signal: AbortSignal): Promise<HttpResponse> {
    if (response.status >= 200 && response.status <= 299) return response
    throw await errorOf(response, signal)
  }

  const send: Upstream['send'] = async (asked, signal) => {
    const { method, path, json, form, file, isQuick, once, sentSignal } = asked
    const url = urlOf(path)
    const limitMs = once ? 0 : undefined
    if (method === 'GET') return await get(url, signal, limitMs)
    const data = file === undefined ? undefined : fileBody(file)
    const body = form ? formBody(form) : json === undefined ? data : jsonBody(json)
    const headers = headersFor(url, body?.contentType)
    const stream = body && { stream: body }
    const request = { method, url, headers, fresh: true, isSlow: !isQuick, signal: sentSignal, ...stream }
    const response = await untilReady(request, signal, limitMs, asked)
    if (isRedirect(response)) {
      response.discard()
      throw new UpstreamError(
        `The model's server redirected the request (${response.status}). The engine's url must be the final address.`,
        { status: response.status },
      )
    }
    return await succeeded(response, sentSignal ?? signal)
  }

  /** Follows redirects on the server's own host, where only its own origin gets the key. */
  async function get(start: URL, signal: AbortSignal, limitMs?: number): Promise<HttpResponse> {
    let url = start
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      if (!isHttp(url) || url.hostname !== base.hostname) return await getElsewhere(url, signal)
      const response = await untilReady({ method: 'GET', url, headers: headersFor(url) }, signal, limitMs)
      if (!isRedirect(response)) return await succeeded(response, signal)
      response.discard()
      const target = response.header('location') ?? ''
      if (!URL.canParse(target, url)) break
      url = new URL(target, url)
    }
    throw new UpstreamError("The model's server redirected the request too often, or to an invalid address.")
  }

  async function getElsewhere(url: URL, signal: AbortSignal): Promise<HttpResponse> {
    const body = await otherHosts.get(url, signal).catch((cause) => {
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

  return { send, get }
}

/** 304 answers only conditional requests. */
const isRedirect = ({ status }: HttpResponse): boolean => [301, 302, 303, 307, 308].includes(status)

const isHttp = ({ protocol }: URL): boolean => protocol === 'http:' || protocol === 'https:'

const base64Of = (text: string): string => Buffer.from(text).toString('base64')
