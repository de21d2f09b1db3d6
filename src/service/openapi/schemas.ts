/**
 * Schemas, error responses and examples of the OpenAPI document. Inputs come from the model schemas and the limits in
 * `rules/`, errors from the error table.
 */
import { LOCAL_STATUSES } from '../../protocol/run-state.js'
import { REFUSALS, type RefusalCode } from '../rules/refusal.js'

export type Json = Readonly<Record<string, unknown>>

export const refTo = (name: string): Json => ({ $ref: `#/components/schemas/${name}` })

/** An object whose keys are all required. */
export const record = (description: string, properties: Json): Json => ({
  type: 'object',
  description,
  required: Object.keys(properties),
  properties,
})

/**
 * Unlike the builders of `protocol/json-schema.ts`, keeps the document's order of keywords, and gives times a `format`.
 */
const typed =
  (...types: readonly string[]) =>
  (description: string, more: Json = {}): Json => ({
    type: types.length === 1 ? types[0] : types,
    ...more,
    description,
  })

export const text = typed('string')
export const textOrNull = typed('string', 'null')
export const flag = typed('boolean')
export const integer = typed('integer')
export const integerOrNull = typed('integer', 'null')
export const listOrNull = typed('array', 'null')

const DATE_TIME = { format: 'date-time' }
export const time = (description: string): Json => text(description, DATE_TIME)
export const timeOrNull = (description: string): Json => textOrNull(description, DATE_TIME)

const orNull = (schema: Json): Json => ({ oneOf: [schema, { type: 'null' }] })

/** Schema of a run. `inputs`: the schemas of its input. */
export const runSchema = (inputs: readonly Json[]): Json =>
  record('A run. All keys are present; unknown values are null.', {
    id: text('Identifier of the run'),
    model: text('The model, as it was sent'),
    status: text('`queued`, then `processing`, then `succeeded` or `failed`, which are final', {
      enum: LOCAL_STATUSES,
    }),
    input: {
      description: 'The input, as it was sent',
      anyOf: inputs,
    },
    output: { description: 'Null until the run has succeeded', ...orNull(refTo('RunOutput')) },
    error: { description: 'Null unless the run has failed', ...orNull(refTo('RunError')) },
    created_at: time('When the create was accepted'),
    started_at: timeOrNull('When the render started; null while the run is queued'),
    finished_at: timeOrNull('When the run succeeded or failed; null before'),
  })

/** Schemas that do not depend on the models. */
export const SHARED_SCHEMAS: Json = {
  RunOutput: record('The results of a run that has succeeded', {
    urls: typed('array')('URLs of the files, in their order. The URL is the secret: it needs no key.', {
      items: { type: 'string', format: 'uri' },
    }),
  }),
  RunError: record('Why a run failed', {
    code: text(
      '`render_failed`; `renderer_crashed` after three crashes of its renderer; `not_recorded` when ' +
        'its end could not be recorded; `outcome_unknown` when its provider may have accepted it, and the credits stay charged',
    ),
    message: text('What went wrong, for people'),
  }),
}

export const header = (description: string, schema: Json = { type: 'string' }): Json => ({
  description,
  schema,
})

/** Errors of requests at any path, before an operation handles them. */
const BEFORE_OPERATIONS: readonly RefusalCode[] = [
  'bad_request',
  'not_found',
  'method_not_allowed',
  'request_timeout',
  'expectation_failed',
  'headers_too_large',
]

const RETRY_AFTER = { 'Retry-After': header('Seconds until a retry', { type: 'integer', minimum: 0 }) }

const HEADERS: Partial<Record<RefusalCode, Json>> = {
  method_not_allowed: { Allow: header('The methods of this path, with a 405') },
  range_not_satisfiable: { 'Content-Range': header('The size of the file, as `bytes */<size>`') },
  overloaded: RETRY_AFTER,
  not_ready: RETRY_AFTER,
}

const line = (code: RefusalCode, status = ''): string => `* ${status}\`${code}\`: ${REFUSALS[code].cause}`

function errorResponse(description: string, codes: readonly RefusalCode[]): Json {
  const headers = Object.assign({}, ...codes.map((code) => HEADERS[code] ?? {}))
  return {
    description,
    ...(Object.keys(headers).length > 0 && { headers }),
    content: {
      'application/json': {
        schema: record('An error response', {
          error: record('The error', {
            message: text('The problem, for people'),
            code: text('The problem, for programs', { enum: codes }),
          }),
        }),
        examples: Object.fromEntries(
          codes.map((code) => [
            code,
            { summary: code, value: { error: { message: REFUSALS[code].cause, code } } },
          ]),
        ),
      },
    },
  }
}

/** One response for each status of these codes, and the default response. */
export function errorResponses(codes: readonly RefusalCode[]): Json {
  const responses: Record<string, Json> = {}
  for (const { status } of codes.map((code) => REFUSALS[code])) {
    const group = codes.filter((code) => REFUSALS[code].status === status)
    responses[status] = errorResponse(group.map((code) => line(code)).join('\n'), group)
  }
  return { ...responses, default: { $ref: '#/components/responses/BeforeOperations' } }
}

const BEFORE_LINES = BEFORE_OPERATIONS.map((code) => line(code, `${REFUSALS[code].status} `))

export const SHARED_RESPONSES: Json = {
  BeforeOperations: errorResponse(
    `The request was refused before an operation handled it:\n\n${BEFORE_LINES.join('\n')}`,
    BEFORE_OPERATIONS,
  ),
}
