/** Requests to the service that this page comes from, and what can go wrong with them. */
import { AUTH_PATHS, SESSION_HEADER, type Session } from '../protocol/console.js'
import { AUTH_LIMIT, RUNS_LIMIT } from '../protocol/limits.js'
import { plural } from './format.js'
import { type Query, relativePath, withQuery } from './routes.js'
import { adoptSession } from './session-change.js'
import {
  balanceTime,
  currentUser,
  isNewest,
  isSameUser,
  onUserChange,
  sessionStore,
} from './session-store.js'
import { createStore } from './store.js'

export interface ApiErrorParts {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly retryAfterS?: number | undefined
}

/** `network`: nothing answered. `bad_response`: what answered is not the service. Else a code of the service. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** 0 when nothing answered. */
  readonly status: number
  readonly code: string
  /** Of a 429: seconds after which a request is accepted again. */
  readonly retryAfterS: number | undefined

  constructor({ status, code, message, retryAfterS }: ApiErrorParts) {
    super(message)
    this.status = status
    this.code = code
    this.retryAfterS = retryAfterS
  }
}

/** Whether the service answers. */
export const connectionStore = createStore<'ok' | 'lost'>('ok')

/** The last answer to a GET, for the page that says what could not be shown. */
export const lastAnswerStore = createStore<unknown>(undefined)
onUserChange(() => lastAnswerStore.set(() => undefined))

export interface RequestOptions {
  /** The parts of the path that begin with a colon. */
  readonly params?: Readonly<Record<string, string | number>>
  readonly query?: Query
  readonly body?: unknown
  readonly signal?: AbortSignal
  /** The answer is a text, not JSON. */
  readonly isText?: boolean
  /** Sent again with the same key, the service does it once. */
  readonly idempotencyKey?: string
}

export type Method = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/**
 * Sends a request to one of the paths of `protocol/console.ts`. Throws `ApiError`, or an abort, also when the answer has come by then.
 * When another tab has signed in as the same user, it is sent again in the session of that tab; as somebody else, it does nothing, and
 * the page starts over.
 */
export async function request<Answer>(
  method: Method,
  path: string,
  options: RequestOptions = {},
): Promise<Answer> {
  const user = currentUser()
  try {
    return await requestOnce<Answer>(method, path, options)
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'session_changed') throw error
    const readAt = balanceTime()
    const read = await readSession()
    // A late answer must not sign the user in again after signing out.
    if (isNewest(readAt)) adoptSession(read)
    if (currentUser() !== user) throw error
    return await requestOnce<Answer>(method, path, options)
  }
}

export const readSession = (signal?: AbortSignal): Promise<Session> =>
  requestOnce<Session>('GET', AUTH_PATHS.session, signal === undefined ? {} : { signal })

async function requestOnce<Answer>(method: Method, path: string, options: RequestOptions): Promise<Answer> {
  const session = sessionStore.get()
  const { response, text } = await send(method, path, options)
  options.signal?.throwIfAborted()
  const body = parseJson(text)
  if (!response.ok) {
    const error = errorOf(path, response, body)
    // An answer to the session of before says nothing about the one of now.
    if (error.code === 'not_signed_in') sessionStore.set((now) => (now?.id === session?.id ? null : now))
    throw error
  }
  const current = sessionStore.get()
  // What belongs to the user of before must not be shown to the one of now.
  if (session && current && path !== AUTH_PATHS.session && !isSameUser(session, current)) throw otherUser()
  if (response.status === 204) return undefined as Answer
  if (options.isText) return text as Answer
  if (body === undefined) throw badResponse(response.status)
  if (method === 'GET') lastAnswerStore.set(() => body)
  return body as Answer
}

/** Until the whole answer is there. */
const READ_TIMEOUT_MS = 30_000
const CHANGE_TIMEOUT_MS = 60_000
const TEXT_TIMEOUT_MS = 300_000
/** Of a slow connection: 20 KB a second. */
const UPLOAD_BYTES_PER_MS = 20

let answered = 0

async function send(method: Method, path: string, options: RequestOptions) {
  const { params, query = {}, body, signal, idempotencyKey } = options
  const init: RequestInit = { method, credentials: 'same-origin', headers: { accept: 'application/json' } }
  if (idempotencyKey !== undefined) init.headers = { ...init.headers, 'idempotency-key': idempotencyKey }
  if (body !== undefined || method !== 'GET') {
    init.headers = { ...init.headers, 'content-type': 'application/json' }
    init.body = JSON.stringify(body ?? {})
  }
  const session = sessionStore.get()
  // The check of the session finds out which one it is.
  if (session && path !== AUTH_PATHS.session) init.headers = { ...init.headers, [SESSION_HEADER]: session.id }
  const timeout = new AbortController()
  init.signal = signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal])
  const timer = setTimeout(() => timeout.abort(), timeoutMsOf(method, options, init))
  const answeredBefore = answered
  try {
    const response = await fetch(
      new URL(withQuery(relativePath(path, params), query), document.baseURI),
      init,
    )
    const text = await response.text()
    answered++
    connectionStore.set(() => 'ok')
    return { response, text }
  } catch (error) {
    if (signal?.aborted) throw error
    // Another request that was answered meanwhile knows better.
    if (answered === answeredBefore) connectionStore.set(() => 'lost')
    throw new ApiError({
      status: 0,
      code: 'network',
      message: 'The service does not answer. Check that it is running and that you are connected.',
    })
  } finally {
    clearTimeout(timer)
  }
}

function timeoutMsOf(method: Method, { isText }: RequestOptions, { body }: RequestInit): number {
  if (method === 'GET') return isText ? TEXT_TIMEOUT_MS : READ_TIMEOUT_MS
  return CHANGE_TIMEOUT_MS + (typeof body === 'string' ? body.length : 0) / UPLOAD_BYTES_PER_MS
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const otherUser = () =>
  new ApiError({
    status: 409,
    // Not `session_changed`: the request was accepted, and must not be sent again.
    code: 'other_user',
    message: 'This browser is now signed in as another user.',
  })

const badResponse = (status: number) =>
  new ApiError({
    status,
    code: 'bad_response',
    message: `The service sent an invalid response (${status}). Try again, and check the proxy if there is one.`,
  })

function errorOf(path: string, response: Response, body: unknown): ApiError {
  const sent = (body as { error?: { code?: unknown; message?: unknown } } | undefined)?.error
  if (typeof sent?.code !== 'string' || typeof sent.message !== 'string') return badResponse(response.status)
  return new ApiError({
    status: response.status,
    code: sent.code,
    message: sent.message,
    retryAfterS: response.status === 429 ? retryAfterS(path, response.headers.get('retry-after')) : undefined,
  })
}

/** Without the header it is the whole window of the limit. */
function retryAfterS(path: string, header: string | null): number {
  const { windowMs } = Object.values<string>(AUTH_PATHS).includes(path) ? AUTH_LIMIT : RUNS_LIMIT
  const seconds = header === null ? Number.NaN : Number(header)
  return Number.isFinite(seconds) ? Math.max(1, Math.ceil(seconds)) : windowMs / 1_000
}

/** What was thrown, as a sentence that says what to do. */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof ApiError)) return thrown instanceof Error ? thrown.message : String(thrown)
  if (thrown.status !== 429) return thrown.message
  return `Too many requests. Wait ${plural(thrown.retryAfterS, 'second')}, then try again.`
}
