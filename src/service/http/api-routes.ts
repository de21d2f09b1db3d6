/** HTTP routes of the API: runs, their outputs, the models, and the OpenAPI document. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { CANCEL_PATH, MODELS_PATH, OPENAPI_PATH, RUNS_PATH } from '../../protocol/id.js'
import { writeJson } from '../../protocol/json.js'
import { documentJson } from '../../protocol/model-document.js'
import type { ModelDocument } from '../../protocol/models.js'
import type { FileReader } from '../files/contract.js'
import { defaultDocument } from '../models/served-model.js'
import type { Caller } from '../rules/key-checks.js'
import { invalidInput, Refusal } from '../rules/refusal.js'
import type { Store } from '../store/index.js'
import { OUTPUTS_PATH, outputKey, runObject, type StoredRun } from '../store/run.js'
import type { Worker } from '../worker/worker.js'
import { type BaseUrl, clientAddress } from './connections.js'
import type { Endpoints } from './endpoints.js'
import { type BodyMemory, bodyOf, readBodies } from './request-body.js'
import { sendStoredFile } from './stored-file.js'

interface OutputRoutes {
  readonly files: FileReader
  readonly store: Pick<Store, 'findOutput'>
}

export interface ApiRoutes extends OutputRoutes {
  readonly endpoints: Endpoints
  readonly bodyMemory: BodyMemory
  readonly models: readonly ModelDocument[]
  readonly baseUrl: BaseUrl
  /** It knows the progress of the runs that this process renders. */
  readonly worker: Pick<Worker, 'renderStateOf'>
}

export async function addRunRoutes(app: FastifyInstance, routes: ApiRoutes): Promise<void> {
  const { endpoints, bodyMemory, baseUrl, worker } = routes
  app.decorateRequest('caller')

  readBodies(app, bodyMemory)
  app.addHook('onRequest', async (request) => {
    const { headers } = request.raw
    // Bodies are JSON, whatever their type says.
    if ('content-type' in headers) headers['content-type'] = 'application/json'
    request.setDecorator<Caller>(
      'caller',
      await endpoints.admit(headers.authorization, () => clientAddress(request)),
    )
  })

  function runSeenBy(reply: FastifyReply, run: StoredRun) {
    reply.header('cache-control', 'no-store')
    return runObject(run, baseUrl(reply.request), worker.renderStateOf(run.id))
  }

  app.post(RUNS_PATH, async (request, reply) => {
    const caller = request.getDecorator<Caller>('caller')
    const key = idempotencyKeyOf(request)
    const { run } = await endpoints.create(caller, [bodyOf(request)], key)
    // The id of a run whose body is lost on the way.
    reply.code(201).header('location', `${baseUrl(request)}${RUNS_PATH}/${run.id}`)
    return runSeenBy(reply, run)
  })

  app.get<{ Params: { id: string } }>(`${RUNS_PATH}/:id`, async (request, reply) => {
    const caller = request.getDecorator<Caller>('caller')
    return runSeenBy(reply, await endpoints.findRun(caller, request.params.id))
  })

  app.post<{ Params: { id: string } }>(`${RUNS_PATH}/:id${CANCEL_PATH}`, async (request, reply) => {
    const { accountId } = request.getDecorator<Caller>('caller')
    return runSeenBy(reply, await endpoints.cancelRun(accountId, request.params.id))
  })

  // The list stays the same until the service ends. The documents contain nothing about engines.
  const { models } = routes
  const listed = models.map((document) =>
    documentJson({ ...document, default: defaultDocument(models, document.kind) === document }),
  )
  const list = writeJson({ models: listed })
  app.get(MODELS_PATH, (_request, reply) => sendJson(reply, list, 'private, no-cache'))
}

const sendJson = (reply: FastifyReply, text: string, cacheControl: string): FastifyReply =>
  reply.header('cache-control', cacheControl).type('application/json; charset=utf-8').send(text)

/**
 * Returns the Idempotency-Key, with which a client can repeat a create without paying twice. Throws `Refusal` (400) for
 * an invalid key.
 */
function idempotencyKeyOf({ headers }: FastifyRequest): string | undefined {
  const key = headers['idempotency-key']
  if (key === undefined) return undefined
  if (typeof key !== 'string' || !/^[\x21-\x7e]{1,255}$/.test(key))
    throw invalidInput(
      'Idempotency-Key is not valid: it must have 1 to 255 printable ASCII characters, without spaces.',
    )
  return key
}

/**
 * Routes of outputs. An output's URL is a secret, so the routes need no key and no rate limit. The URL is only looked
 * up in the database, whose names identify the file: no path is built from a URL.
 */
export async function addOutputRoutes(app: FastifyInstance, { files, store }: OutputRoutes): Promise<void> {
  app.get<{ Params: { token: string; name: string } }>(
    `${OUTPUTS_PATH}/:token/:name`,
    async (request, reply) => {
      const output = await store.findOutput(request.params.token, request.params.name)
      if (output === undefined) throw new Refusal('not_found')
      return sendStoredFile(request, reply, files, { ...output, key: outputKey(output) })
    },
  )
}

/** URL of the service in the OpenAPI document. */
const DOCUMENTED_URL = 'http://127.0.0.1:7878'

/**
 * Route of the OpenAPI document. It needs no key and no rate limit, since the document contains nothing about accounts
 * or runs.
 */
export async function addOpenapiRoute(app: FastifyInstance, { baseUrl }: ApiRoutes): Promise<void> {
  app.get(OPENAPI_PATH, async (request, reply) => {
    // Made by `npm run docs`. Loaded at the first request, since most services never get one.
    const { default: text } = await import('../../../docs/openapi.json?raw')
    return sendJson(reply, text.replaceAll(DOCUMENTED_URL, baseUrl(request)), 'no-cache')
  })
}
