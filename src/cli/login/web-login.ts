/**
 * `rushes login --web`: the user signs in on the service's console. The console then redirects the browser to a port of
 * this process, with a code. The code is exchanged for a key together with a secret that only this process knows (PKCE,
 * RFC 7636), so neither a link nor a browser's history contains the key.
 */
import { createHash, randomBytes } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { hostname } from 'node:os'
import {
  errorOfAnswer,
  isRateLimited,
  networkError,
  readAnswer,
  type ServiceAnswer,
} from '../../client/requests.js'
import { messageOf, RushesError, usageError } from '../../errors.js'
import { raceAbort, withTimeout } from '../../host/abort.js'
import { HttpFailure, type HttpRequest } from '../../host/http.js'
import { BodyTooLarge } from '../../host/receive-text.js'
import { retry } from '../../host/retry.js'
import { AUTH_PATHS, type LoginCode } from '../../protocol/console.js'
import { createSchemaName, OPENAPI_PATH } from '../../protocol/id.js'
import { isModelName, KINDS, type Kind } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { printable } from '../../protocol/text.js'
import type { Context } from '../context/context.js'

/** Time for the user to open the page and to sign in. */
const MAX_WAIT_MS = 10 * 60_000

const NO_WEB_HINT =
  "Create a key in the account's settings (API keys), then run `rushes login` without --web and paste it."

const randomText = (bytes: number): string => randomBytes(bytes).toString('base64url')

export interface WebLogin {
  readonly apiKey: string
  /** Models of the service, from its OpenAPI document. */
  readonly models: ServiceModels
}

export type ServiceModels = Readonly<Partial<Record<Kind, string>>>

/**
 * Gets a key from the console. Throws `usage` when the service has no console, and `no_api_key` when the user declines
 * or does not confirm in time.
 */
export async function logInOnWeb(ctx: Context, baseUrl: string): Promise<WebLogin> {
  const { origin } = new URL(baseUrl)
  const models = await checkConsole(ctx, baseUrl)
  const verifier = randomText(32)
  const state = randomText(16)
  const server = await listenForCallback((params) => params.get('state') === state)
  try {
    const query = new URLSearchParams({
      port: String(server.port),
      challenge: createHash('sha256').update(verifier).digest('base64url'),
      state,
      name: `rushes on ${printable(hostname())}`.slice(0, 100),
    })
    await showPage(ctx, origin, `${baseUrl.replace(/\/+$/, '')}/#/login?${query}`)
    const callback = await waitForCallback(ctx, server.received)
    return { apiKey: await exchangeCode(ctx, baseUrl, { callback, verifier }), models }
  } finally {
    server.close()
  }
}

/**
 * Checks in the OpenAPI document whether the service has a console; nothing else shows it. Returns the models that the
 * document names.
 */
async function checkConsole(ctx: Context, baseUrl: string): Promise<ServiceModels> {
  const { status, text } = await send(ctx, baseUrl, { method: 'GET', path: OPENAPI_PATH })
  const document = parseJson(text)
  if (status === 200 && valueAt(document, 'paths', AUTH_PATHS.login) !== undefined) return modelsIn(document)
  throw usageError(`${new URL(baseUrl).origin} does not support \`rushes login --web\`.`, NO_WEB_HINT)
}

function modelsIn(document: unknown): ServiceModels {
  const names = KINDS.map((kind) => {
    const schema = ['components', 'schemas', createSchemaName(kind), 'properties', 'model', 'const']
    return [kind, valueAt(document, ...schema)] as const
  })
  return Object.fromEntries(names.filter(([, name]) => typeof name === 'string' && isModelName(name)))
}

const valueAt = (document: unknown, ...path: readonly string[]): unknown =>
  path.reduce<unknown>(
    (holder, part) => (isObject(holder) && Object.hasOwn(holder, part) ? holder[part] : undefined),
    document,
  )

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Opens the page and shows its URL in every mode, because an opener can start without opening a page. */
async function showPage({ out, openResult }: Context, origin: string, page: string): Promise<void> {
  const onlyWarnings = out.mode.quiet || out.mode.json
  if (onlyWarnings) out.warn(`Confirm the login in a browser on this machine: ${page}`)
  try {
    await openResult(page)
    out.note(`Opening ${origin} in the browser. If no page opens, use this URL within 10 minutes:`)
    out.note(page)
  } catch (error) {
    if (!onlyWarnings)
      out.warn(`Could not open a browser (${messageOf(error)}). Open this URL on this machine: ${page}`)
  }
}

const waitForCallback = ({ clock, interrupts }: Context, received: Promise<Callback>): Promise<Callback> =>
  withTimeout((signal) => raceAbort(received, signal), {
    timeoutMs: MAX_WAIT_MS,
    reason: () =>
      new RushesError(
        'no_api_key',
        'The login was not confirmed in the browser within 10 minutes; nothing was stored.',
        {
          hint: 'Run the command again. On a machine without a browser, use `rushes login` and paste a key.',
        },
      ),
    clock,
    signal: interrupts.first,
  })

async function exchangeCode(
  ctx: Context,
  baseUrl: string,
  { callback, verifier }: { readonly callback: Callback; readonly verifier: string },
): Promise<string> {
  try {
    const code = callback.params.get('code')
    if (code === null)
      throw new RushesError('no_api_key', 'The login was declined in the browser; nothing was stored.')
    const body: LoginCode = { code, verifier }
    const answer = await sendWithinLimit(ctx, baseUrl, { method: 'POST', path: AUTH_PATHS.login, body })
    if (answer.status !== 200) throw refusedError(answer)
    const apiKey = keyOf(answer.text)
    await callback.reply(200, 'rushes is logged in', 'The command has the key. You can close this window.')
    return apiKey
  } catch (error) {
    await callback.reply(400, 'rushes is not logged in', 'The command says why. You can close this window.')
    throw error
  }
}

/**
 * A service allows few sign-ins per minute from one address, and other users may have used them. The code is valid for
 * longer than these retries.
 */
const LIMIT_WAIT_MS = 5_000
const MAX_LIMIT_TRIES = 14

async function sendWithinLimit(
  ctx: Context,
  baseUrl: string,
  request: ConsoleRequest,
): Promise<ServiceAnswer> {
  let isNoted = false
  return await retry<ServiceAnswer, ServiceAnswer>({
    clock: ctx.clock,
    signal: ctx.interrupts.first,
    attempt: () => send(ctx, baseUrl, request),
    decide: (answer, number) =>
      isRateLimited(answer) && number < MAX_LIMIT_TRIES ? { retryInMs: LIMIT_WAIT_MS } : { done: answer },
    onRetry() {
      if (!isNoted) ctx.out.note('Too many sign-ins from this address. Trying again for a minute.')
      isNoted = true
    },
  })
}

function refusedError(answer: ServiceAnswer): RushesError {
  const error = errorOfAnswer(answer).with({ consequence: 'No API key was stored.' })
  return isRateLimited(answer)
    ? error.with({
        hint: 'The service counts the sign-ins of all users at this address. Wait a minute, then run `rushes login --web` again.',
      })
    : error
}

function keyOf(text: string): string {
  const key = (parseJson(text) as { api_key?: unknown } | null | undefined)?.api_key
  if (typeof key === 'string') return key
  throw new RushesError('bad_response', 'The service sent no API key.', { hint: NO_WEB_HINT })
}

interface ConsoleRequest {
  readonly method: HttpRequest['method']
  readonly path: string
  readonly body?: unknown
}

async function send(
  ctx: Context,
  baseUrl: string,
  { method, path, body }: ConsoleRequest,
): Promise<ServiceAnswer> {
  const url = new URL(`${baseUrl.replace(/\/+$/, '')}${path}`)
  const fetch = await ctx.fetch()
  try {
    const response = await fetch({
      method,
      url,
      headers: {
        accept: 'application/json',
        // The same `origin` header that the page sends: the service refuses requests from other origins.
        ...(body !== undefined && { 'content-type': 'application/json', origin: url.origin }),
      },
      ...(body !== undefined && { body: Buffer.from(JSON.stringify(body)) }),
      signal: ctx.interrupts.first,
    })
    return await readAnswer(response)
  } catch (error) {
    if (error instanceof HttpFailure) throw networkError(error, url.host)
    if (error instanceof BodyTooLarge)
      throw new RushesError('bad_response', `Invalid response from ${url.host}: ${error.message}.`)
    throw error
  }
}

/**
 * A request from the user's browser to this process: the console's page passes its result to a program on the same
 * machine.
 */
export interface Callback {
  readonly params: URLSearchParams
  /** Sends a page with this title and text. Resolves when the browser has received it or has disconnected. */
  reply(status: number, title: string, text: string): Promise<void>
}

interface CallbackServer {
  /** Port on 127.0.0.1. */
  readonly port: number
  /** Resolves with the first request that `isExpected` accepts. Other requests get 404. */
  readonly received: Promise<Callback>
  /** Stops the server and closes its open connections. */
  close(): void
}

const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

const pageOf = (title: string, text: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escapeHtml(title)}</title>
<h1>${escapeHtml(title)}</h1>
<p>${escapeHtml(text)}</p>
</html>
`

const HEADERS = {
  'content-type': 'text/html; charset=utf-8',
  'content-security-policy': "default-src 'none'",
  'cache-control': 'no-store',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  connection: 'close',
}

/** Listens on a free port of 127.0.0.1. Rejects when that fails. */
export async function listenForCallback(
  isExpected: (params: URLSearchParams) => boolean,
): Promise<CallbackServer> {
  let resolve: (callback: Callback) => void
  const received = new Promise<Callback>((resolved) => {
    resolve = resolved
  })
  let isReceived = false
  const server = createServer((request, response) => {
    const send = (status: number, title: string, text: string): Promise<void> =>
      new Promise((sent) => {
        response.on('close', sent)
        response.writeHead(status, HEADERS).end(pageOf(title, text))
      })
    const url = URL.canParse(request.url ?? '', 'http://127.0.0.1')
      ? new URL(request.url ?? '', 'http://127.0.0.1')
      : undefined
    const isCallback = request.method === 'GET' && url?.pathname === '/' && isExpected(url.searchParams)
    if (!isCallback || isReceived)
      return void send(404, 'Not found', 'This address is used once, by a command that waits.')
    isReceived = true
    resolve({ params: url.searchParams, reply: send })
  })
  await new Promise<void>((listening, failed) => {
    server.once('error', failed)
    server.listen({ host: '127.0.0.1', port: 0 }, listening)
  })
  return {
    port: (server.address() as AddressInfo).port,
    received,
    close() {
      server.close()
      server.closeAllConnections()
    },
  }
}
