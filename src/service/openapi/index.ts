/**
 * The service's API as OpenAPI 3.1, from the model schemas, the error table, the routes and the limits. Pure. The
 * service builds it at the first request; docs/openapi.json is the same text with the default names.
 */
import { CANCEL_PATH, MODELS_PATH, OPENAPI_PATH, RUNS_PATH } from '../../protocol/id.js'
import { writeJson } from '../../protocol/json.js'
import { POLL_INTERVAL_MS, RATE_LIMITED_WAITS_MS, RUNS_LIMIT } from '../../protocol/limits.js'
import type { ModelDocument } from '../../protocol/models.js'
import { LOCAL_STATUSES, type LocalStatus } from '../../protocol/run-state.js'
import { HEALTH_PATH, READY_PATH } from '../http/operations.js'
import type { RefusalCode } from '../rules/refusal.js'
import { OUTPUTS_PATH } from '../stored-run.js'
import { AUTHENTICATION } from './authentication.js'
import {
  createExamples,
  createSchema,
  OUTPUT_NAME,
  OUTPUT_TOKEN,
  RUN_ID,
  runExamples,
  schemas,
} from './models.js'
import {
  ETAG,
  errorResponses,
  FILE_RESPONSES,
  header,
  type Json,
  refTo,
  SHARED_RESPONSES,
} from './schemas.js'

const seconds = (...ms: readonly number[]): string => ms.map((each) => each / 1_000).join(', ')

const DESCRIPTION = [
  `Creates videos and images as asynchronous runs: create a run, poll it every ${seconds(POLL_INTERVAL_MS.min)} to ` +
    `${seconds(POLL_INTERVAL_MS.max)} seconds, then download its outputs.`,
  '**Rate limit.** Creates, status requests, cancellations and lists of models count together, per API key: by default ' +
    `${RUNS_LIMIT.requests} in any ${seconds(RUNS_LIMIT.windowMs)} seconds. Further requests get 429 ` +
    '`RATE_LIMITED` and do not count. Wait before ' +
    `each retry, for example ${seconds(...RATE_LIMITED_WAITS_MS)} seconds. The authentication operations have their own ` +
    'limits, and the others none.',
  '**Errors.** Every error response to a valid HTTP request has the form `{"error": {"message": …, "code": …}}`. A ' +
    'request is checked in this order: the key (401), the account and the IP address (403), the rate (429 ' +
    '`RATE_LIMITED`), the body (413, 400), the spend limit (403), the quota (429 `USAGE_EXCEEDED`), the balance (402).',
  '**Methods.** Every path with GET answers HEAD too.',
  '**Versions.** Within `/api/v1`, later releases may add error codes and fields. Ignore those that you do not know.',
].join('\n\n')

export interface DocumentedService {
  readonly models: readonly ModelDocument[]
  /** Whether the service has the authentication endpoints. */
  readonly hasConsole: boolean
  /** Base of all URLs of the service, without a trailing slash. */
  readonly baseUrl: string
}

export const openapiDocument = (service: DocumentedService): Json => ({
  openapi: '3.1.0',
  info: {
    title: 'rushes: the local service',
    summary: 'Asynchronous runs of video and image models',
    description: DESCRIPTION,
    // Version of the API, as in its paths. Callers without a key do not see the program's version.
    version: 'v1',
    license: { name: 'MIT', identifier: 'MIT' },
  },
  servers: [{ url: service.baseUrl }],
  tags: [
    { name: 'runs', description: 'Create runs, and follow them' },
    { name: 'models', description: 'What the service can create' },
    { name: 'outputs', description: 'Download the files of runs' },
    { name: 'operations', description: 'Health of the service, and this document' },
    ...(service.hasConsole ? [AUTHENTICATION.tag] : []),
  ],
  security: [{ apiKey: [] }],
  paths: paths(service),
  components: {
    securitySchemes: {
      apiKey: {
        type: 'http',
        scheme: 'bearer',
        description: 'The API key, as `Authorization: Bearer <API_KEY>`',
      },
      ...(service.hasConsole && { session: AUTHENTICATION.securityScheme }),
    },
    responses: SHARED_RESPONSES,
    schemas: { ...schemas(service.models), ...(service.hasConsole && AUTHENTICATION.schemas) },
  },
})

export const openapiText = (service: DocumentedService): string =>
  `${writeJson(openapiDocument(service), { indent: 2 })}\n`

/** Errors of the checks that every request with a key passes, in their order. */
const ADMISSION: readonly RefusalCode[] = [
  'missing_api_key',
  'invalid_api_key',
  'account_banned',
  'ip_not_allowed',
  'RATE_LIMITED',
]
const DATABASE: readonly RefusalCode[] = ['internal_error', 'not_ready']

const CREATE_ERRORS: readonly RefusalCode[] = [
  'invalid_json',
  'missing_model',
  'missing_input',
  'model_not_found',
  'invalid_input',
  ...ADMISSION,
  'insufficient_balance',
  'api_key_spend_limit_exceeded',
  'request_timeout',
  'payload_too_large',
  'USAGE_EXCEEDED',
  ...DATABASE,
  'overloaded',
]

const OUTPUT_ERRORS: readonly RefusalCode[] = [
  'not_found',
  'gone',
  'precondition_failed',
  'range_not_satisfiable',
  ...DATABASE,
]

/** These operations need no key. */
const PUBLIC = { security: [] }

const inPath = (name: string, description: string, example: string): Json => ({
  name,
  in: 'path',
  required: true,
  description,
  schema: { type: 'string' },
  example,
})

const inHeader = (name: string, description: string): Json => ({
  name,
  in: 'header',
  description,
  schema: { type: 'string' },
})

const status = (word: string): Json => ({
  'application/json': {
    schema: { type: 'object', required: ['status'], properties: { status: { type: 'string', const: word } } },
  },
})

const runResponse = (description: string, examples: Json, headers: Json = {}): Json => ({
  description,
  headers: { ...headers, 'Cache-Control': header('Always `no-store`') },
  content: { 'application/json': { schema: refTo('Run'), examples } },
})

const createRun = ({ models, baseUrl }: DocumentedService): Json => ({
  operationId: 'createRun',
  tags: ['runs'],
  summary: 'Create a run',
  description:
    'Accepts a run, and charges the account. The price is refunded if the run fails. The body is read as JSON, ' +
    'regardless of its content type. Only send a create again if it was certainly not accepted, or with the ' +
    'same Idempotency-Key: every other accepted create is a run that costs credits.',
  parameters: [
    inHeader(
      'Idempotency-Key',
      'An extension of this service: 1 to 255 printable ASCII characters, one for each run. A create that is ' +
        'sent again with the key of an earlier one within 24 hours gets the run of that one, and is not ' +
        'charged. With another body it is refused (`invalid_input`).',
    ),
  ],
  requestBody: {
    required: true,
    content: { 'application/json': { schema: createSchema(models), examples: createExamples(models) } },
  },
  responses: {
    '201': runResponse('The run was accepted.', runExamples(models, baseUrl, ['queued']), {
      Location: header('URL of the run', { type: 'string', format: 'uri' }),
      'Idempotent-Replayed': header(
        '`true` when an earlier create with the same Idempotency-Key made the run',
        { type: 'string', const: 'true' },
      ),
    }),
    ...errorResponses(CREATE_ERRORS),
  },
})

const ofRun = ({ models, baseUrl }: DocumentedService, statuses: readonly LocalStatus[]): Json => ({
  parameters: [inPath('id', 'Identifier of the run', RUN_ID)],
  responses: {
    '200': runResponse('The run', runExamples(models, baseUrl, statuses)),
    ...errorResponses([...ADMISSION, 'run_not_found', ...DATABASE, 'overloaded']),
  },
})

const getRun = (service: DocumentedService): Json => ({
  operationId: 'getRun',
  tags: ['runs'],
  summary: 'Get the status and the result of a run',
  description: 'Poll it until `status` is `succeeded`, `failed` or `canceled`.',
  ...ofRun(service, LOCAL_STATUSES),
})

const cancelRun = (service: DocumentedService): Json => ({
  operationId: 'cancelRun',
  tags: ['runs'],
  summary: 'Cancel a run',
  description:
    'An extension of this service. Cancels and refunds a queued run. A run in processing is canceled at once, and refunded ' +
    'only if its engine certainly cost nothing. A run that has ended stays as it is. Counts for the rate limit of the key.',
  ...ofRun(service, ['canceled', 'succeeded', 'failed']),
})

const listModels: Json = {
  operationId: 'listModels',
  tags: ['models'],
  summary: 'List the models',
  description:
    'An extension of this service: name, kind, input and price of each model. It counts for the rate limit of the key.',
  parameters: [inHeader('If-None-Match', 'Send the list only if it has none of these ETags')],
  responses: {
    '200': {
      description: 'The models, which stay the same until the service is started again',
      headers: { ETag: ETAG },
      content: { 'application/json': { schema: refTo('ModelList') } },
    },
    '304': { description: 'The client has this list already', headers: { ETag: ETAG } },
    ...errorResponses([...ADMISSION, ...DATABASE]),
  },
}

const getOutput: Json = {
  operationId: 'getOutput',
  tags: ['outputs'],
  summary: 'Download an output',
  description:
    'The URLs are in `output.urls` of a run that has succeeded; do not build them. The URL is the secret, so ' +
    'the request needs no key. One range per request is supported; a request with several ranges gets the whole file.',
  ...PUBLIC,
  parameters: [
    inPath('token', 'The secret part of the URL', OUTPUT_TOKEN),
    inPath('name', 'Name of the file', OUTPUT_NAME),
    {
      name: 'download',
      in: 'query',
      description:
        'If it is present, a browser saves the file instead of showing it. A value with the extension of the file is its name.',
      allowEmptyValue: true,
      schema: { type: 'string' },
    },
    inHeader('Range', 'The part to send, for example `bytes=1024-`'),
    inHeader('If-Range', 'Send the range only if the file has this ETag or date, otherwise the whole file'),
    inHeader('If-Match', 'Send the file only if it has one of these ETags, otherwise 412'),
    inHeader('If-None-Match', 'Send the file only if it has none of these ETags, otherwise 304'),
    inHeader('If-Modified-Since', 'Send the file only if it was written later, otherwise 304'),
    inHeader('If-Unmodified-Since', 'Send the file only if it was not written later, otherwise 412'),
  ],
  responses: { ...FILE_RESPONSES, ...errorResponses(OUTPUT_ERRORS) },
}

const getHealth: Json = {
  operationId: 'getHealth',
  tags: ['operations'],
  summary: 'Whether the process responds',
  ...PUBLIC,
  responses: { '200': { description: 'It responds.', content: status('ok') }, ...errorResponses([]) },
}

const getReadiness: Json = {
  operationId: 'getReadiness',
  tags: ['operations'],
  summary: 'Whether the service can accept runs',
  description: 'It is not ready while the database cannot be written, and while it shuts down.',
  ...PUBLIC,
  responses: {
    '200': { description: 'It is ready.', content: status('ready') },
    ...errorResponses(['not_ready']),
  },
}

const getOpenapi: Json = {
  operationId: 'getOpenapi',
  tags: ['operations'],
  summary: 'This document',
  ...PUBLIC,
  parameters: [inHeader('If-None-Match', 'Send the document only if it has none of these ETags')],
  responses: {
    '200': {
      description: 'The document, with the model names and the URL of this service',
      headers: { ETag: ETAG },
      content: { 'application/json': { schema: { type: 'object' } } },
    },
    '304': { description: 'The client has this document already', headers: { ETag: ETAG } },
    ...errorResponses([]),
  },
}

const paths = (service: DocumentedService): Json => ({
  [RUNS_PATH]: { post: createRun(service) },
  [`${RUNS_PATH}/{id}`]: { get: getRun(service) },
  [`${RUNS_PATH}/{id}${CANCEL_PATH}`]: { post: cancelRun(service) },
  [MODELS_PATH]: { get: listModels },
  [`${OUTPUTS_PATH}/{token}/{name}`]: { get: getOutput },
  [HEALTH_PATH]: { get: getHealth },
  [READY_PATH]: { get: getReadiness },
  [OPENAPI_PATH]: { get: getOpenapi },
  ...(service.hasConsole && AUTHENTICATION.paths()),
})
