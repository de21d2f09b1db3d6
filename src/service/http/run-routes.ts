/** The routes of the two endpoints (section 4). */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { RUNS_PATH } from '../../protocol/routes.js'
import type { CreatedRun, Endpoints } from '../endpoints.js'
import type { Caller } from '../rules/caller.js'
import { refusalSaying } from '../rules/refusal.js'
import { runObject } from '../stored-run.js'
import { createOwnedTurns } from '../turns.js'
import { clientAddress } from './client-address.js'
import { type BodyLimits, withBody } from './request-body.js'

export interface RunRoutes {
  readonly endpoints: Endpoints
  readonly bodyLimits: BodyLimits
  readonly logPrompts: boolean
  /** The start of all URLs of the service, without a slash at the end. */
  baseUrl(): string
}

/** Fastify does not read the body: the handler does, once the caller is known, whatever the content type. */
export function leaveBodiesUnread(app: FastifyInstance): void {
  acceptAnyContentType(app)
  app.addContentTypeParser('*', (_request, _body, done) => done(null))
}

/** The body of every request goes to the parser for `*`. Call it before other hooks are added. */
export function acceptAnyContentType(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  app.addHook('onRequest', async ({ raw }) => {
    if ('content-type' in raw.headers) raw.headers['content-type'] = 'application/octet-stream'
  })
}

/** By which a client repeats a create without paying twice. Throws `Refusal` (400) for one that is no key. */
export function idempotencyKeyOf({ headers }: FastifyRequest): string | undefined {
  const key = headers['idempotency-key']
  if (key === undefined) return undefined
  if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key))
    throw refusalSaying(
      'invalid_input',
      'Idempotency-Key is not valid: it must have 1 to 255 printable ASCII characters, without spaces.',
    )
  return key
}

/** The log, status and headers of an accepted create. `by`: who created it. */
export function announceRun(
  app: FastifyInstance,
  reply: FastifyReply,
  { run, isRepeated }: CreatedRun,
  by: object,
  { logPrompts, baseUrl }: Pick<RunRoutes, 'logPrompts' | 'baseUrl'>,
): void {
  const prompt = logPrompts && { prompt: run.input.prompt }
  app.log.info(
    { run: run.id, kind: run.kind, ...by, ...prompt },
    isRepeated ? 'create repeated' : 'run accepted',
  )
  if (isRepeated) reply.header('idempotent-replayed', 'true')
  reply.code(201).header('location', `${baseUrl()}${RUNS_PATH}/${run.id}`).header('cache-control', 'no-store')
}

/** Status requests of one account that are answered at once, and that wait. */
const STATUS_AT_ONCE = 4
const MAX_STATUS_WAITING = 500
const LARGE_BYTES = 65_536
const LARGE_BYTES_PER_MS = 32_768

/**
 * The bodies of status requests, in turns of their account. A run can have 0.8 MB, and an account 200 keys with 20 requests in 10 s
 * each: sent as fast as they can be, they would hold others up for seconds. So a large body keeps its turn for a while.
 */
function createStatusTurns(clock: BodyLimits['clock']) {
  const inTurn = createOwnedTurns({
    atOnce: STATUS_AT_ONCE,
    maxWaiting: MAX_STATUS_WAITING,
    refusal: () =>
      refusalSaying('overloaded', 'Too many status requests of this account are waiting. Try again later.'),
  })
  return (accountId: number, read: () => Promise<string>): Promise<string> =>
    new Promise((resolve, reject) => {
      inTurn(accountId, async () => {
        const body = await read()
        resolve(body)
        if (body.length <= LARGE_BYTES) return
        await new Promise<void>((end) =>
          clock.alarm((STATUS_AT_ONCE * body.length) / LARGE_BYTES_PER_MS, end),
        )
      }).catch(reject)
    })
}

export async function addRunRoutes(app: FastifyInstance, routes: RunRoutes): Promise<void> {
  const { endpoints, bodyLimits, baseUrl } = routes
  const inTurn = createStatusTurns(bodyLimits.clock)
  app.decorateRequest('caller')

  leaveBodiesUnread(app)

  app.addHook('onRequest', async (request) => {
    request.setDecorator<Caller>(
      'caller',
      await endpoints.admit(request.headers.authorization, () => clientAddress(request)),
    )
  })

  app.post(RUNS_PATH, async (request, reply) => {
    const caller = request.getDecorator<Caller>('caller')
    const key = idempotencyKeyOf(request)
    const created = await withBody(request.raw, bodyLimits, caller.accountId, (body) =>
      endpoints.create(caller, body, key),
    )
    announceRun(app, reply, created, { account: caller.accountId, key: caller.keyId }, routes)
    return runObject(created.run, baseUrl())
  })

  app.get<{ Params: { id: string } }>(`${RUNS_PATH}/:id`, async (request, reply) => {
    const caller = request.getDecorator<Caller>('caller')
    const body = await inTurn(caller.accountId, async () =>
      JSON.stringify(runObject(await endpoints.findRun(caller, request.params.id), baseUrl())),
    )
    reply.header('cache-control', 'no-store').type('application/json; charset=utf-8')
    return body
  })
}
