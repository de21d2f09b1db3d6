/** What all pages have in common: the visitor of a request and the session cookie, forms, and how HTML is sent. */
import { STATUS_CODES } from 'node:http'
import { MIMEType } from 'node:util'
import { gzipSync } from 'node:zlib'
import cookies from '@fastify/cookie'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type Assets, renderPage, renderPart } from '../../console/layout.js'
import { MessagePage } from '../../console/sign-in-page.js'
import { RushesError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import type { FileStore } from '../files/contract.js'
import type { ApiRoutes } from '../http/api-routes.js'
import { clientAddress } from '../http/connections.js'
import { refusalOf, sendRefusal } from '../http/error-responses.js'
import { bodyOf } from '../http/request-body.js'
import { checkOwnOrigin, isPlainLoopback, type SeenRequest } from '../rules/console-requests.js'
import { Refusal, refusalSaying } from '../rules/refusal.js'
import type { Store } from '../store/index.js'
import type { SessionProof } from '../store/sql.js'
import type { SessionRecord } from '../store/users.js'
import { type AssetFiles, acceptsGzip } from './assets.js'
import { SESSION_MS, type Sender, type Sessions } from './sessions.js'
import type { MakeThumbnail } from './thumbnails.js'

export interface SiteOptions extends ApiRoutes {
  readonly store: Store
  readonly files: FileStore
  readonly sessions: Sessions
  /** Undefined: there are no thumbnails. */
  readonly makeThumbnail: MakeThumbnail | undefined
  readonly assets: AssetFiles
  readonly clock: Clock
  readonly publicUrl: string | undefined
  onError(error: unknown): void
}

type Component<Props> = Parameters<typeof renderPage<Props>>[0]
type FormHandler = (form: FormData, request: FastifyRequest, reply: FastifyReply) => Promise<unknown>
type Redraw = (
  problem: string,
  form: FormData,
  request: FastifyRequest,
  reply: FastifyReply,
) => Promise<unknown>

export interface ById {
  Params: { id: string }
}

export class Site {
  readonly options: SiteOptions
  /** URLs of the files of the pages. */
  readonly assets: Assets
  /** Path of the public URL, which the proxy removes; usually empty. */
  readonly #prefix: string

  constructor(options: SiteOptions) {
    this.options = options
    this.assets = Object.fromEntries([...options.assets].map(([name, { url }]) => [name, url]))
    const { publicUrl } = options
    this.#prefix = publicUrl === undefined ? '' : new URL(publicUrl).pathname.replace(/\/+$/, '')
  }

  page<Props>(
    reply: FastifyReply,
    page: Component<Props & { readonly assets: Assets }>,
    props: Props,
  ): FastifyReply {
    return this.#html(reply, renderPage(page, { ...props, assets: this.assets }))
  }

  /** A part has a URL of its own: at that of a page, Back would show it in place of the page. */
  part<Props>(reply: FastifyReply, part: Component<Props>, props: Props): FastifyReply {
    return this.#html(reply, renderPart(part, props))
  }

  /** A path as a browser sees it. */
  path(path: string): string {
    return `${this.#prefix}${path}`
  }

  redirect(reply: FastifyReply, path: string): FastifyReply {
    return reply.redirect(this.path(path), 303)
  }

  #html(reply: FastifyReply, text: string): FastifyReply {
    // Quotes in texts are escaped, so that only attributes of the pages match.
    const html =
      this.#prefix === ''
        ? text
        : text.replace(/( (?:href|src|action|formaction|hx-get|hx-post)=")(?=\/)/g, `$1${this.#prefix}`)
    const isGzip = acceptsGzip(reply.request.headers['accept-encoding']) && html.length > 1_000
    if (isGzip) reply.header('content-encoding', 'gzip')
    return reply
      .header('vary', 'accept-encoding')
      .type('text/html; charset=utf-8')
      .send(isGzip ? gzipSync(html) : html)
  }

  /** Throws `Refusal` (401) without a session. */
  session(request: FastifyRequest): SessionRecord {
    const { session } = visitorOf(request)
    if (session === undefined) throw new Refusal('not_signed_in')
    return session
  }

  account(request: FastifyRequest): number {
    return this.session(request).user.accountId
  }

  proof(request: FastifyRequest): SessionProof {
    return { session: this.session(request).hash, nowMs: this.options.clock.now() }
  }

  /** Adds a route for a form. `redraw`: shows the form again when it is refused. Default: an error page. */
  post(app: FastifyInstance, path: string, act: FormHandler, redraw?: Redraw): void {
    app.post(path, async (request, reply) => {
      const form = await formOf(request)
      try {
        return await act(form, request, reply)
      } catch (error) {
        const problem = formProblem(error)
        if (problem === undefined || redraw === undefined) throw error
        return await redraw(problem, form, request, reply.code(422))
      }
    })
  }

  /** Answers an error as a page, or without content for a live part, which then stays as it is. */
  error(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
    const refusal = refusalOf(error, request.routeOptions.bodyLimit)
    const { status, code, message } = refusal
    if (refusal !== error && status >= 500) this.options.onError(error)
    if (status === 503) reply.header('retry-after', 5)
    if (request.url.startsWith('/api/') && !isForm(request)) return sendRefusal(reply, refusal)
    if (request.headers['hx-request'] !== undefined) {
      if (code === 'not_signed_in') reply.header('hx-refresh', 'true')
      return reply.code(status).send('')
    }
    if (code === 'not_signed_in' && (request.method === 'GET' || request.method === 'HEAD'))
      return this.redirect(reply, '/sign-in')
    return this.page(reply.code(status), MessagePage, {
      title: `${status} ${STATUS_CODES[status]}`,
      message,
    })
  }
}

/** What is wrong with a form; undefined for an error that is not about it. */
function formProblem(error: unknown): string | undefined {
  if (error instanceof RushesError) return [error.message, error.hint].filter(Boolean).join(' ')
  return error instanceof Refusal && error.status !== 401 ? error.message : undefined
}

export const isForm = ({ headers }: FastifyRequest): boolean =>
  /^(application\/x-www-form-urlencoded|multipart\/form-data)/i.test(headers['content-type'] ?? '')

/** Far more than a form of these pages has. */
const MAX_FIELDS = 1_000

/** Reads a form of either encoding. */
export async function formOf(request: FastifyRequest): Promise<FormData> {
  const body = bodyOf(request)
  try {
    const type = new MIMEType(request.headers['content-type'] ?? '')
    checkFields(body, type)
    return await new Response(new Uint8Array(body), { headers: { 'content-type': `${type}` } }).formData()
  } catch (error) {
    throw error instanceof Refusal ? error : refusalSaying('bad_request', 'This form cannot be read.')
  }
}

/** Counts the fields before they are parsed: those in 64 MiB take gigabytes of memory, and block the service for half a minute. */
function checkFields(body: Buffer, { essence, params }: MIMEType): void {
  const separator = essence === 'multipart/form-data' ? (params.get('boundary') ?? '') : '&'
  let at = -1
  for (let fields = 0; fields <= MAX_FIELDS; fields++) {
    at = body.indexOf(separator, at + 1)
    if (at === -1) return
  }
  throw refusalSaying('bad_request', `This form has more than ${MAX_FIELDS} fields.`)
}

/** The text of a field, whose lines end with CR LF when a browser sends it. */
export function fieldOf(form: FormData, name: string): string {
  const value = form.get(name)
  return typeof value === 'string' ? value.replaceAll('\r\n', '\n') : ''
}

const SESSION_COOKIE = 'rushes_session'
const COOKIE = { path: '/', httpOnly: true, sameSite: 'strict' } as const

export interface Visitor extends Sender {
  readonly seen: SeenRequest
  /** Whether the browser is on this machine and uses plain HTTP. Then the cookie cannot be `Secure`. */
  readonly isPlain: boolean
  /** The token of the session. */
  readonly token: string | undefined
}

export const visitorOf = (request: FastifyRequest): Visitor => request.getDecorator<Visitor>('visitor')

/** Refuses requests from other websites, and identifies the visitor of every other request in this scope. */
export async function readVisitors(
  app: FastifyInstance,
  sessions: Sessions,
  publicUrl: string | undefined,
): Promise<void> {
  await app.register(cookies)
  app.decorateRequest('visitor')
  app.addHook('onRequest', async (request, reply) => {
    // Read the address before the first `await`: a closed connection has none.
    const address = clientAddress(request)
    const { protocol, host, headers, method } = request
    const seen: SeenRequest = {
      scheme: protocol,
      host,
      origin: headers.origin,
      fetchSite: headers['sec-fetch-site'] as string | undefined,
    }
    if (method !== 'GET' && method !== 'HEAD') checkOwnOrigin(seen, publicUrl)
    const isPlain = isPlainLoopback(seen, publicUrl)
    const token = request.cookies[SESSION_COOKIE]
    const found = await sessions.find(token)
    if (found?.isExtended && token !== undefined) setSession(reply, token, isPlain)
    request.setDecorator<Visitor>('visitor', {
      session: found?.record,
      token,
      seen,
      isPlain,
      address,
      userAgent: headers['user-agent'],
    })
  })
}

export const setSession = (reply: FastifyReply, token: string, isPlain: boolean): FastifyReply =>
  reply.setCookie(SESSION_COOKIE, token, { ...COOKIE, secure: !isPlain, maxAge: SESSION_MS / 1_000 })

export const clearSession = (reply: FastifyReply, { isPlain }: Visitor): FastifyReply =>
  reply.clearCookie(SESSION_COOKIE, { ...COOKIE, secure: !isPlain })
