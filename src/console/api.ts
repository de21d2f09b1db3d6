/**
 * Requests to the service, and their session. A page holds the data of one user. All tabs of a browser share one session
 * cookie: when it belongs to another user, the page reloads.
 */
import { AUTH_PATHS, SESSION_HEADER, type Session } from '../protocol/console.js'
import { AUTH_LIMIT, RUNS_LIMIT } from '../protocol/limits.js'
import { plural } from './format.js'
import { linkTo, navigate, parseRoute, relativePath, type UrlQuery, withQuery } from './routes.js'
import { createStore } from './store.js'

export interface ApiErrorParts {
  readonly status: number
  readonly code: string
  readonly message: string
  readonly retryAfterS?: number | undefined
}

/** `network`: no response. `bad_response`: a response from something else, such as a proxy. Otherwise a code of the service. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  /** 0 without a response. */
  readonly status: number
  readonly code: string
  /** For a 429. */
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

/** The last answer to a GET, for the error page. */
export const lastAnswerStore = createStore<unknown>(undefined)

/** Undefined until the service has answered; null without a valid session. */
export const sessionStore = createStore<Session | null | undefined>(undefined)

let pageUser: string | undefined
let isEnded = false

/** Identifies the user whose data this page has, also after the session has expired. */
export const currentUser = (): string | undefined => pageUser

/** Shows a session that the service has sent, or reloads the page when it is that of another user. */
export function adoptSession(session: Session): void {
  const user = JSON.stringify([session.email, session.account.name])
  if (pageUser === undefined || pageUser === user) {
    pageUser = user
    sessionStore.set(() => session)
    return
  }
  const { page } = parseRoute(location.hash)
  // The address may name a run or a search of the previous user.
  if (page !== undefined && !SHARED_PAGES.includes(page)) navigate(linkTo(page), { replace: true })
  startOver()
}

/** Pages whose address belongs to no user. */
const SHARED_PAGES: readonly (string | undefined)[] = ['link', 'login']

/** Hides everything, and reloads the page. */
export function startOver(): void {
  isEnded = true
  sessionStore.set(() => undefined)
  location.reload()
}

/** Whether the page is about to reload, and must not show or store anything. */
export const isStartingOver = (): boolean => isEnded

/** Reads of the session and of the balance are numbered, so that a late answer does not replace a newer one. */
let reads = 0
let shownRead = 0

/** Call before a request that reads the balance or the session. */
export const nextReadNumber = (): number => ++reads

/** Returns whether nothing that was read later is shown, and marks this read as the newest. */
export function takeNewest(read: number): boolean {
  if (read < shownRead) return false
  shownRead = read
  return true
}

/** Shows the balance of a response, unless a newer one is shown. */
export function setBalance(balance: number, read: number): void {
  if (!takeNewest(read)) return
  sessionStore.set((session) =>
    !session || session.account.balance === balance
      ? session
      : { ...session, account: { ...session.account, balance } },
  )
}

export interface ApiRequest {
  /** Values for the parts of the path that begin with a colon. */
  readonly params?: Readonly<Record<string, string | number>>
  readonly query?: UrlQuery
  readonly body?: unknown
  readonly signal?: AbortSignal
  /** The response is text, not JSON. */
  readonly isText?: boolean
  /** The service carries out requests with the same key once. */
  readonly idempotencyKey?: string
}

export type HttpMethod = 'GET' | 'POST' | 'PATCH' | 'DELETE'

/**
 * Sends a request to a path of `protocol/console.ts`. Throws `ApiError`, or the reason of an abort. When another tab has
 * signed in as the same user, the request is sent again in that session.
 */
export async function request<Answer>(
  method: HttpMethod,
  path: string,
  options: ApiRequest = {},
): Promise<Answer> {
  try {
    return await requestOnce<Answer>(method, path, options)
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'session_changed') throw error
    await refreshSession()
    return await requestOnce<Answer>(method, path, options)
  }
}

/** Reads the session of the browser, and shows it unless a newer one is shown. */
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
  if (isEnded) return await NEVER
  const session = sessionStore.get()
  const { response, text } = await send(method, path, options)
  options.signal?.throwIfAborted()
  if (isEnded) return await NEVER
  const body = parseJson(text)
  if (!response.ok) {
    const error = errorOf(path, response, body)
    // An answer to an earlier session does not end the current one.
    if (error.code === 'not_signed_in' && sessionStore.get()?.id === session?.id) {
      sessionStore.set(() => null)
      lastAnswerStore.set(() => undefined)
    }
    throw error
  }
  if (response.status === 204) return undefined as Answer
  if (options.isText) return text as Answer
  if (body === undefined) throw badResponse(response.status)
  if (method === 'GET') lastAnswerStore.set(() => body)
  return body as Answer
}

/** The answer to a request of a page that is about to reload. */
const NEVER = new Promise<never>(() => {})

/** For the whole response. */
const READ_TIMEOUT_MS = 30_000
const CHANGE_TIMEOUT_MS = 60_000
const TEXT_TIMEOUT_MS = 300_000
/** A slow connection: 20 KB per second. */
const UPLOAD_BYTES_PER_MS = 20

let answered = 0

async function send(method: HttpMethod, path: string, options: ApiRequest) {
  const { params, query = {}, body, signal, idempotencyKey } = options
  const init: RequestInit = { method, credentials: 'same-origin', headers: { accept: 'application/json' } }
  if (idempotencyKey !== undefined) init.headers = { ...init.headers, 'idempotency-key': idempotencyKey }
  if (body !== undefined || method !== 'GET') {
    init.headers = { ...init.headers, 'content-type': 'application/json' }
    init.body = JSON.stringify(body ?? {})
  }
  const session = sessionStore.get()
  // This request finds out which session the cookie has.
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
    // Not when another request was answered meanwhile.
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

function timeoutMsOf(method: HttpMethod, { isText }: ApiRequest, { body }: RequestInit): number {
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

/** Without the header: the whole window of the limit. */
function retryAfterS(path: string, header: string | null): number {
  const { windowMs } = Object.values<string>(AUTH_PATHS).includes(path) ? AUTH_LIMIT : RUNS_LIMIT
  const seconds = header === null ? Number.NaN : Number(header)
  return Number.isFinite(seconds) ? Math.max(1, Math.ceil(seconds)) : windowMs / 1_000
}

/** The message of an error, as a sentence that names the next step. */
export function messageOf(thrown: unknown): string {
  if (!(thrown instanceof ApiError)) return thrown instanceof Error ? thrown.message : String(thrown)
  if (thrown.status !== 429) return thrown.message
  return `Too many requests. Wait ${plural(thrown.retryAfterS, 'second')}, then try again.`
}
