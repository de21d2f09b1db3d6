/** The operations of the document. */
import type { Kind } from '../../protocol/models.js'
import { OPENAPI_PATH, RUNS_PATH } from '../../protocol/routes.js'
import { LOCAL_STATUSES } from '../../protocol/run-state.js'
import { HEALTH_PATH, READY_PATH } from '../http/health-routes.js'
import type { RefusalCode } from '../rules/refusal.js'
import { OUTPUTS_PATH } from '../stored-run.js'
import { authPaths } from './auth-paths.js'
import { createExamples, OUTPUT_NAME, OUTPUT_TOKEN, RUN_ID, runExamples } from './examples.js'
import { ETAG, errorResponses, FILE_RESPONSES, LOCATION, runResponse } from './responses.js'
import { createSchema, type Json } from './schemas.js'

export interface Described {
  readonly models: Readonly<Record<Kind, string>>
  /** Whether the service has the authentication endpoints. */
  readonly hasConsole: boolean
  /** The start of all URLs of the service, without a slash at the end. */
  readonly baseUrl: string
}

/** The checks of every request with a key, in their order. */
const ADMISSION: readonly RefusalCode[] = [
  'missing_api_key',
  'invalid_api_key',
  'account_banned',
  'ip_not_allowed',
  'RATE_LIMITED',
]
const DATABASE: readonly RefusalCode[] = ['internal_error', 'not_ready']

const CREATE_ERRORS: readonly RefusalCode[] = [
  'bad_request',
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

const createRun = ({ models, baseUrl }: Described): Json => ({
  operationId: 'createRun',
  tags: ['runs'],
  summary: 'Create a run',
  description:
    'Accepts a run, and charges the account. The price is refunded if the run fails. The body is read as JSON, regardless of its content type. Only send a create again if it was certainly not accepted, or with the same Idempotency-Key: every other accepted create is a run that costs credits.',
  parameters: [
    inHeader(
      'Idempotency-Key',
      'An extension of this service: 1 to 255 printable ASCII characters, one for each run. A create that is sent again with the key of an earlier one within 24 hours gets the run of that one, and is not charged. With another body it is refused (`invalid_input`).',
    ),
  ],
  requestBody: {
    required: true,
    content: { 'application/json': { schema: createSchema(models), examples: createExamples(models) } },
  },
  responses: {
    '201': runResponse('The run was accepted.', runExamples(models, baseUrl, ['queued']), {
      Location: LOCATION,
      'Idempotent-Replayed': {
        description: '`true` when an earlier create with the same Idempotency-Key made the run',
        schema: { type: 'string', const: 'true' },
      },
    }),
    ...errorResponses(CREATE_ERRORS),
  },
})

const getRun = ({ models, baseUrl }: Described): Json => ({
  operationId: 'getRun',
  tags: ['runs'],
  summary: 'Get the status and the result of a run',
  description: 'Poll it until `status` is `succeeded` or `failed`.',
  parameters: [inPath('id', 'Identifier of the run', RUN_ID)],
  responses: {
    '200': runResponse('The run', runExamples(models, baseUrl, LOCAL_STATUSES)),
    ...errorResponses([...ADMISSION, 'run_not_found', ...DATABASE, 'overloaded']),
  },
})

const getOutput: Json = {
  operationId: 'getOutput',
  tags: ['outputs'],
  summary: 'Download an output',
  description:
    'The URLs are in `output.urls` of a run that has succeeded; do not build them. The URL is the secret, so the request needs no key. One range per request is supported; a request with several ranges gets the whole file.',
  ...PUBLIC,
  parameters: [
    inPath('token', 'The secret part of the URL', OUTPUT_TOKEN),
    inPath('name', 'Name of the file', OUTPUT_NAME),
    {
      name: 'download',
      in: 'query',
      description: 'If it is present, a browser saves the file instead of showing it',
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

export const paths = (described: Described): Json => ({
  [RUNS_PATH]: { post: createRun(described) },
  [`${RUNS_PATH}/{id}`]: { get: getRun(described) },
  [`${OUTPUTS_PATH}/{token}/{name}`]: { get: getOutput },
  [HEALTH_PATH]: { get: getHealth },
  [READY_PATH]: { get: getReadiness },
  [OPENAPI_PATH]: { get: getOpenapi },
  ...(described.hasConsole && authPaths()),
})
