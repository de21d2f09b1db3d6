/**
 * Sends requests to the service and tracks the session. One page shows the data of one user. All tabs of a browser
 * share one session cookie. If another user signs in, the page reloads so that it does not mix the data of two users.
 */
import { AUTH_PATHS, SESSION_HEADER, type Session } from '../protocol/console.js'
import { writeJson } from '../protocol/json.js'
import { AUTH_LIMIT, RUNS_LIMIT } from '../protocol/limits.js'
import { parseJson } from '../protocol/parse.js'
import { plural } from './format.js'
import { linkTo, navigate, parseRoute, relativePath, type UrlQuery, withQuery } from './routes.js'
import { createStore } from './store.js'

export interface ApiErrorParts {
  /** HTTP status; 0 if there was no response. */
  readonly status: number
  readonly code: string
  readonly message: string
  /** Seconds to wait before a retry. Set only for status 429. */
  readonly retryAfterS?: number | undefined
}

/**
 * A failed request. `code` is `network` if there was no response, `bad_response` if the response did not come from the
 * service (for example from a proxy), and otherwise the service's error code.
 */
export class ApiError extends Error implements ApiErrorParts {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: string
  readonly retryAfterS: number | undefined

  constructor({ status, code, message, retryAfterS }: ApiErrorParts) {
    super(message)
    this.status = status
    this.code = code
    this.retryAfterS = retryAfterS
  }
}

/** `lost` if the service did not answer the last request. */
export const connectionStore = createStore<'ok' | 'lost'>('ok')

/** Whether the service answered with this error. A proxy can send the same status, but not the code. */
export const hasCode = (error: unknown, code: string): boolean =>
  error instanceof ApiError && error.code === code

/** Whether the service did not answer: there was no response, or only that of a proxy. */
export const isOutage = (error: unknown): boolean =>
  hasCode(error, 'network') || hasCode(error, 'bad_response')

/** Whether the notice about the connection explains this error, so that nothing else has to. */
export const isExplained = (error: unknown): boolean => connectionStore.get() === 'lost' && isOutage(error)

/** Undefined until the first response; null if there is no valid session. */
export const sessionStore = createStore<Session | null | undefined>(undefined)

let pageUser: string | undefined
let isReloading = false

/** Identifies the user whose data this page shows. Does not change when the session expires. */
export const currentUser = (): string | undefined => pageUser

/** Shows the session from a response. If the session belongs to another user, reloads the page. */
export function adoptSession(session: Session): void {
  const user = JSON.stringify([session.email, session.account.name])
  if (pageUser === undefined || pageUser === user) {
    pageUser = user
    sessionStore.set(() => session)
    return
  }
  const { page } = parseRoute(location.hash)
  // The URL may contain a run id or a search text of the previous user.
  if (page !== undefined && page !== 'link') navigate(linkTo(page), { replace: true })
  startOver()
}

/** Hides all data and reloads the page. */
export function startOver(): void {
  isReloading = true
  sessionStore.set(() => undefined)
  location.reload()
}

/** True if the page is about to reload. It must no longer show or store data. */
export const isStartingOver = (): boolean => isReloading

/** Number of the last request that reads the session or the balance. A late response must not replace newer data. */
let reads = 0
/** Number of the request whose data is shown. */
let shownRead = 0

/** Numbers a request that reads the balance or the session. Call it before the request is sent. */
export const nextReadNumber = (): number => ++reads

/** Marks this read as the newest one. Returns false if the page already shows data of a later read. */
export function takeNewest(read: number): boolean {
  if (read < shownRead) return false
  shownRead = read
  return true
}

/** Shows the balance from a response, unless the page shows a newer one. */
export function setBalance(balance: number, read: number): void {
  if (!takeNewest(read)) return
  sessionStore.set((session) =>
    !session || session.account.balance === balance
      ? session
      : { ...session, account: { ...session.account, balance } },
  )
}

export interface ApiRequest {
  /** Values of the path parameters, such as `id` for `/runs/:id`. */
  readonly params?: Readonly<Record<string, string | number>>
  readonly query?: UrlQuery
  readonly body?: unknown
  readonly signal?: AbortSignal
  /** True if the response is text instead of JSON. */
  readonly isText?: boolean
  /** The service executes requests with the same idempotency key only once. */
  readonly idempotencyKey?: string
}

export type HttpMethod = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/**
 * Sends a request to a path of `protocol/console.ts`. Throws `ApiError`, or the abort reason of `signal`. If the same
 * user has signed in again in another tab, resends the request with the new session.
 */
export async function request<Answer>(
  method: HttpMethod,
  path: string,
  options: ApiRequest = {},
): Promise<Answer> {
  try {
    return await requestOnce<Answer>(method, path, options)
  } catch (error) {
    if (!hasCode(error, 'session_changed')) throw error
    await refreshSession()
    return await requestOnce<Answer>(method, path, options)
  }
}

/** Fetches the current session and shows it, unless the page shows a newer one. */
export async function refreshSession(signal?: AbortSignal): Promise<void> {
  const read = nextReadNumber()
  const session = await requestOnce<Session>(
    'GET',
    AUTH_PATHS.session,
    signal === undefined ? {} : { signal },
  )
  if (takeNewest(read)) adoptSession(session)
}

async function requestOnce<Answer>(method: HttpMethod, path: string, options: ApiRequest): Promise<Answer> {
  if (isReloading) return await NEVER
  const session = sessionStore.get()
  const answersBefore = answers
  const { response, text } = await send(method, path, options)
  options.signal?.throwIfAborted()
  if (isReloading) return await NEVER
  const parsed = parseJson(text)
  const body = parsed.ok ? parsed.value : undefined
  if (!response.ok) {
    const error = errorOf(path, response, body)
    noteConnection(isOutage(error), answersBefore)
    // If the session has changed since the request was sent, the error is about the previous session.
    if (error.code === 'not_signed_in' && sessionStore.get()?.id === session?.id) sessionStore.set(() => null)
    throw error
  }
  const isAnswer = response.status === 204 || options.isText === true || body !== undefined
  noteConnection(!isAnswer, answersBefore)
  if (!isAnswer) throw badResponse(response.status)
  if (response.status === 204) return undefined as Answer
  if (options.isText) return text as Answer
  return body as Answer
}

/** Result of requests while the page is about to reload. Never settles, so that callers do nothing. */
const NEVER = new Promise<never>(() => {})

/** Timeout of a GET, including its response body. */
const READ_TIMEOUT_MS = 30_000
const CHANGE_TIMEOUT_MS = 60_000
const TEXT_TIMEOUT_MS = 300_000
/** Upload rate of a slow connection (20 KB/s). Extends the timeout of a large request. */
const UPLOAD_BYTES_PER_MS = 20

/** Number of answers of the service. */
let answers = 0

/** If another request was answered after this one was sent, the connection works. */
function noteConnection(isOut: boolean, answersBefore: number): void {
  if (!isOut) answers++
  if (!isOut || answers === answersBefore) connectionStore.set(() => (isOut ? 'lost' : 'ok'))
}

async function send(method: HttpMethod, path: string, options: ApiRequest) {
  const { params, query = {}, body, signal, idempotencyKey } = options
  const init: RequestInit = { method, credentials: 'same-origin', headers: { accept: 'application/json' } }
  if (idempotencyKey !== undefined) init.headers = { ...init.headers, 'idempotency-key': idempotencyKey }
  if (body !== undefined || method !== 'GET') {
    init.headers = { ...init.headers, 'content-type': 'application/json' }
    init.body = writeJson(body ?? {})
  }
  const session = sessionStore.get()
  // Without the header, the session endpoint returns the cookie's session even if another user has signed in.
  if (session && path !== AUTH_PATHS.session) init.headers = { ...init.headers, [SESSION_HEADER]: session.id }
  const timeout = new AbortController()
  init.signal = signal === undefined ? timeout.signal : AbortSignal.any([signal, timeout.signal])
  const timer = setTimeout(() => timeout.abort(), timeoutMsOf(method, options, init))
  const answersBefore = answers
  try {
    const response = await fetch(
      new URL(withQuery(relativePath(path, params), query), document.baseURI),
      init,
    )
    return { response, text: await response.text() }
  } catch (error) {
    if (signal?.aborted) throw error
    noteConnection(true, answersBefore)
    throw new ApiError({ status: 0, code: 'network', message: 'The service did not answer. Try again.' })
  } finally {
    clearTimeout(timer)
  }
}

function timeoutMsOf(method: HttpMethod, { isText }: ApiRequest, { body }: RequestInit): number {
  if (method === 'GET') return isText ? TEXT_TIMEOUT_MS : READ_TIMEOUT_MS
  return CHANGE_TIMEOUT_MS + (typeof body === 'string' ? body.length : 0) / UPLOAD_BYTES_PER_MS
}

const badResponse = (status: number) =>
  new ApiError({
    status,
    code: 'bad_response',
    message: `The service sent an invalid response (${status}). If it stays, check the proxy.`,
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

/** Seconds from the `Retry-After` header. Without a valid header, the window of the rate limit. */
function retryAfterS(path: string, header: string | null): number {
  const { windowMs } = Object.values<string>(AUTH_PATHS).includes(path) ? AUTH_LIMIT : RUNS_LIMIT
  const seconds = header === null ? Number.NaN : Number(header)
  return Number.isFinite(seconds) ? Math.max(1, Math.ceil(seconds)) : windowMs / 1_000
}

/** Error message for the user, with the cause and the next step. */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof ApiError)) return thrown instanceof Error ? thrown.message : String(thrown)
  if (thrown.status !== 429) return thrown.message
  return `Too many requests. Wait ${plural(thrown.retryAfterS, 'second')}, then try again.`
}
