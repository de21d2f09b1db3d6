/**
 * HTTP routes of the console: the files of its page, the authentication endpoints (`session.ts`), and the page's data.
 */
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { CONSOLE_PATHS, type KeyTermsBody } from '../../../protocol/console.js'
import { writeJson } from '../../../protocol/json.js'
import type { Console } from '../../console/index.js'
import type { Page, PageFile } from '../../console/page.js'
import type { FileReader } from '../../files/contract.js'
import { CONSOLE_BODIES, type Query } from '../../rules/console-requests.js'
import { bestCoding, pagePolicy } from '../../rules/page-rules.js'
import { Refusal } from '../../rules/refusal.js'
import type { UserRecord } from '../../store/console-store.js'
import {
  type ApiRoutes,
  announceRun,
  createStatusTurns,
  idempotencyKeyOf,
  sendTagged,
  tagged,
} from '../api-routes.js'
import { isKnownTag } from '../conditional-request.js'
import { leaveBodiesUnread, readJsonBodies, withBody } from '../request-body.js'
import { sendStoredFile } from '../stored-file.js'
import {
  addAuthRoutes,
  checkNotBanned,
  clearSessionCookie,
  readVisitors,
  sessionOf,
  visitorOf,
} from './session.js'

export interface ConsoleRoutes {
  readonly console: Console
  readonly api: ApiRoutes
  readonly page: Page
  readonly publicUrl: string | undefined
  readonly inputs: FileReader
  /** Origin of images and videos if they are in a bucket; undefined if the service sends them. */
  outputsOrigin(): Promise<string | undefined>
}

export async function addConsoleRoutes(app: FastifyInstance, options: ConsoleRoutes): Promise<void> {
  const { console, api, publicUrl } = options
  await app.register(addPageRoutes, options)
  await app.register(async (scope) => {
    await readVisitors(scope, console.sessions, publicUrl)
    await scope.register(addAuthRoutes, { console, bodyLimits: api.bodyLimits, publicUrl })
    await scope.register(addDataRoutes, options)
    await scope.register(addThumbnailRoute, console)
    await scope.register(addCreateRoute, options)
  })
}

/** Routes of the page's files. The service reads the files once, at startup, and sends them from memory. */
async function addPageRoutes(
  app: FastifyInstance,
  { page, publicUrl, outputsOrigin }: ConsoleRoutes,
): Promise<void> {
  app.get('/', async (request, reply) => {
    reply.headers({
      'cache-control': 'no-cache',
      'content-security-policy': pagePolicy([publicUrl, await outputsOrigin()]),
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'permissions-policy':
        'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
    })
    return sendFile(request, reply, page.index)
  })
  app.get<{ Params: { name: string } }>('/assets/:name', async (request, reply) => {
    const file = page.assets.get(request.params.name)
    if (file === undefined) throw new Refusal('not_found')
    // The name contains a hash of the content, so the file never changes.
    reply.header('cache-control', 'public, max-age=31536000, immutable')
    return sendFile(request, reply, file)
  })
}

function sendFile({ headers }: FastifyRequest, reply: FastifyReply, file: PageFile): FastifyReply {
  const coding = bestCoding(headers['accept-encoding'], [...file.encoded.keys()])
  const { bytes, etag } = (coding && file.encoded.get(coding)) || file
  reply.headers({
    etag,
    'content-type': file.contentType,
    'x-content-type-options': 'nosniff',
    ...(file.encoded.size > 0 && { vary: 'accept-encoding' }),
  })
  if (isKnownTag(headers, etag)) return reply.code(304).send()
  if (coding !== undefined) reply.header('content-encoding', coding)
  return reply.send(bytes)
}

interface ById {
  Params: { id: string }
}

const userOf = (request: FastifyRequest) => sessionOf(request).user
const accountOf = (request: FastifyRequest) => userOf(request).accountId
/** The user of a request that creates something. Throws `Refusal` (403) if the account is banned. */
function creator(request: FastifyRequest, reply: FastifyReply): UserRecord {
  checkNotBanned(sessionOf(request))
  reply.code(201)
  return userOf(request)
}

const selected = (request: FastifyRequest) => [accountOf(request), request.query as Query] as const

/** Routes of the page's data for every user, except creates and thumbnails, which have separate limits. */
async function addDataRoutes(app: FastifyInstance, options: ConsoleRoutes): Promise<void> {
  const { limits, models, runs, keys, sessions } = options.console
  readJsonBodies(app, options.api.bodyLimits)
  const inTurn = createStatusTurns(options.api.bodyLimits.clock)
  app.addHook('onRequest', async (request) => limits.countRequest(sessionOf(request).user.id))
  await app.register(addCreditsRoutes, options)

  // Serialized once: the models stay the same until the service ends.
  const list = tagged(writeJson({ models }))
  app.get(CONSOLE_PATHS.models, (request, reply) => sendTagged(request, reply, list, 'private, no-cache'))

  app.get(CONSOLE_PATHS.runs, (request) => runs.list(...selected(request)))
  app.get<ById>(CONSOLE_PATHS.run, async (request, reply) => {
    const account = accountOf(request)
    const body = await inTurn(account, async () => writeJson(await runs.find(account, request.params.id)))
    return reply.type('application/json; charset=utf-8').send(body)
  })
  app.post<ById>(CONSOLE_PATHS.cancel, async (request) => {
    const { id } = await options.api.endpoints.cancelRun(accountOf(request), request.params.id)
    return await runs.find(accountOf(request), id)
  })
  app.get<{ Params: { id: string; position: string } }>(CONSOLE_PATHS.reference, async (request, reply) => {
    const { id, position } = request.params
    const image = await runs.findReference(accountOf(request), id, position)
    return sendStoredFile(request, reply, options.inputs, image)
  })

  app.get(CONSOLE_PATHS.keys, (request) => keys.list(userOf(request), request.query as Query))
  app.post<{ Body: KeyTermsBody & { name: string } }>(
    CONSOLE_PATHS.keys,
    { schema: { body: CONSOLE_BODIES.newKey } },
    async (request, reply) => keys.create(creator(request, reply), request.body),
  )
  app.patch<ById & { Body: KeyTermsBody }>(
    CONSOLE_PATHS.key,
    { schema: { body: CONSOLE_BODIES.changedKey } },
    (request) => keys.change(userOf(request), request.params.id, request.body),
  )

  app.get(CONSOLE_PATHS.sessions, (request) => sessions.list(sessionOf(request)))
  app.delete<ById>(CONSOLE_PATHS.session, async (request, reply) => {
    const { id, user } = sessionOf(request)
    await sessions.end(user.id, request.params.id)
    if (String(id) === request.params.id) clearSessionCookie(reply, visitorOf(request))
    return reply.code(204).send()
  })
}

/** Routes of the balance and the ledger. */
async function addCreditsRoutes(
  app: FastifyInstance,
  { console: { credits } }: ConsoleRoutes,
): Promise<void> {
  app.get(CONSOLE_PATHS.credits, (request) => credits.entries(...selected(request)))
  app.get(CONSOLE_PATHS.spend, (request) => credits.spend(...selected(request)))
  app.get(CONSOLE_PATHS.csv, async (request, reply) => {
    const parts = credits.csv(...selected(request))
    // Wait for the first part: once the response begins, an error cannot change its status.
    const first = await parts.next()
    reply.header('content-disposition', 'attachment; filename="credits.csv"').type('text/csv; charset=utf-8')
    return Readable.from(prepended(first.value ?? '', parts), { objectMode: false })
  })
}

async function* prepended(first: string, others: AsyncGenerator<string>): AsyncGenerator<string> {
  yield first
  yield* others
}

/** Route of creates on the console. The body has the same format and size limit as a create of the API. */
async function addCreateRoute(
  app: FastifyInstance,
  { console: { limits, runs }, api }: ConsoleRoutes,
): Promise<void> {
  leaveBodiesUnread(app)
  app.addHook('onRequest', async (request) => {
    const session = sessionOf(request)
    checkNotBanned(session)
    await limits.countCreate(session.user.id)
  })
  app.post(CONSOLE_PATHS.runs, async (request, reply) => {
    const { id: user, accountId } = sessionOf(request).user
    const key = idempotencyKeyOf(request)
    const created = await withBody(request.raw, api.bodyLimits, accountId, (body) =>
      api.endpoints.createWithoutKey(accountId, body, key),
    )
    announceRun(app, reply, created, { account: accountId, user }, api)
    // A repeated request may have been charged before the price was changed.
    return created.isRepeated
      ? await runs.find(accountId, created.run.id)
      : runs.created(created.run, created.price)
  })
}

/** Route of thumbnails. The page loads them with `<img>`, so the browser caches them. */
async function addThumbnailRoute(app: FastifyInstance, { limits, thumbnails }: Console): Promise<void> {
  app.addHook('onRequest', async (request) => limits.countThumbnail(sessionOf(request).user.id))
  app.get<ById>(CONSOLE_PATHS.thumbnail, async (request, reply) => {
    const closed = new AbortController()
    const onClose = () => closed.abort(new Refusal('bad_request', 'The connection was closed.'))
    reply.raw.once('close', onClose)
    const { accountId } = sessionOf(request).user
    const { etag, read } = await thumbnails.find(accountId, request.params.id)
    const bytes = isKnownTag(request.headers, etag) ? undefined : await read(closed.signal)
    reply.headers({
      etag,
      'cache-control': 'private, max-age=31536000, immutable',
      'x-content-type-options': 'nosniff',
    })
    return bytes === undefined ? reply.code(304).send() : reply.type('image/webp').send(bytes)
  })
}
