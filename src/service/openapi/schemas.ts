/**
 * Schemas, error responses and examples of the OpenAPI document. Inputs come from the model schemas and the limits in
 * `rules/`, errors from the error table.
 */
import { createSchemaName } from '../../protocol/id.js'
import { LOCAL_DEFAULTS } from '../../protocol/limits.js'
import { KINDS, type Kind, MODEL_INPUTS, type ModelSchema } from '../../protocol/models.js'
import { LOCAL_STATUSES, type LocalStatus } from '../../protocol/run-state.js'
import {
  MAX_DEPTH,
  MAX_IMAGES,
  MAX_PROMPT_CHARACTERS,
  MAX_UNKNOWN_BYTES,
  MAX_URL_CHARACTERS,
  MAX_VALUES,
} from '../rules/create-request.js'
import { REFUSALS, type RefusalCode } from '../rules/refusal.js'
import { runObject, type StoredRun } from '../stored-run.js'

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

const capitalized = (kind: Kind): string => `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`
const inputNameOf = (kind: Kind): string => `${capitalized(kind)}Input`
const storedInputNameOf = (kind: Kind): string => `${capitalized(kind)}RunInput`

/** Adds thousands separators. `toLocaleString` takes 30 ms the first time. */
const count = (number: number): string => String(number).replace(/\B(?=(\d{3})+$)/g, ',')

const EXTRA_FIELDS =
  `Fields that this schema does not name are accepted and kept in the run, at most ` +
  `${count(MAX_UNKNOWN_BYTES)} bytes of JSON together.`

const SENT_IMAGE: Json = {
  type: 'string',
  description:
    `An http or https URL of at most ${count(MAX_URL_CHARACTERS)} characters, or a data: URL with an ` +
    `image. An image that cannot be fetched is left out.`,
  // A schema cannot describe more of a data: URL: its base64 or percent encoding must be valid too.
  if: { not: { pattern: '^[Dd][Aa][Tt][Aa]:' } },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { maxLength: MAX_URL_CHARACTERS },
}

const STORED_IMAGE: Json = record('An image that was sent as a data: URL', {
  sha256: { ...text('SHA-256 of the image'), pattern: '^[0-9a-f]{64}$' },
  bytes: integer('Size of the image', { minimum: 0 }),
  content_type: text('The media type that the data: URL declared'),
})

/** Limits that the model schemas do not have, by parameter. */
const BOUNDS: Readonly<Record<string, Json>> = {
  prompt: { maxLength: MAX_PROMPT_CHARACTERS },
  image_urls: { maxItems: MAX_IMAGES },
}

/** Schema of a model's input. `images` describes its images as they are sent, or as the run shows them. */
function inputSchema(kind: Kind, description: string, images: Json): Json {
  const { required, properties } = MODEL_INPUTS[kind] as ModelSchema
  const bounded = Object.entries(properties).map(([name, schema]) => [
    name,
    {
      ...schema,
      description: `${schema.description}${defaultOf(kind, name)}`,
      ...BOUNDS[name],
      ...(name === 'image_urls' && { items: images }),
    },
  ])
  return { type: 'object', description, required, properties: Object.fromEntries(bounded) }
}

/** Describes the default as text: client generators make a parameter with the keyword `default` required. */
const defaultOf = (kind: Kind, name: string): string =>
  Object.hasOwn(LOCAL_DEFAULTS[kind], name) ? `; \`${LOCAL_DEFAULTS[kind][name]}\` if it is absent` : ''

const RUN: Json = record('A run. All keys are present; unknown values are null.', {
  id: text('Identifier of the run'),
  model: text('The model, as it was sent'),
  status: text('`queued`, then `processing`, then `succeeded` or `failed`, which are final', {
    enum: LOCAL_STATUSES,
  }),
  input: {
    description: 'The input, as it was sent',
    anyOf: KINDS.map((kind) => refTo(storedInputNameOf(kind))),
  },
  output: { description: 'Null until the run has succeeded', ...orNull(refTo('RunOutput')) },
  error: { description: 'Null unless the run has failed', ...orNull(refTo('RunError')) },
  created_at: time('When the create was accepted'),
  started_at: timeOrNull('When the render started; null while the run is queued'),
  finished_at: timeOrNull('When the run succeeded or failed; null before'),
})

export const createSchema = (models: Readonly<Record<Kind, string>>): Json => ({
  description:
    `The model, and its input. Fields beside them are ignored. The whole body has at most ` +
    `${count(MAX_DEPTH)} levels of nesting and ${count(MAX_VALUES)} values; beyond that it is \`invalid_input\`.`,
  oneOf: KINDS.map((kind) => refTo(createSchemaName(kind))),
  discriminator: {
    propertyName: 'model',
    mapping: Object.fromEntries(KINDS.map((kind) => [models[kind], refTo(createSchemaName(kind)).$ref])),
  },
})

export function schemas(models: Readonly<Record<Kind, string>>): Json {
  const ofKind = (kind: Kind): Json => ({
    [createSchemaName(kind)]: record(MODEL_INPUTS[kind].description, {
      model: text('The model', { const: models[kind] }),
      input: refTo(inputNameOf(kind)),
    }),
    [inputNameOf(kind)]: inputSchema(
      kind,
      `Input of the ${kind} model. ${EXTRA_FIELDS} The prompt's length is counted in UTF-16 code units.`,
      SENT_IMAGE,
    ),
    [storedInputNameOf(kind)]: inputSchema(
      kind,
      `Input of a run of the ${kind} model. Parameters that were not sent are absent.`,
      { oneOf: [text('The URL, as it was sent'), refTo('StoredImage')] },
    ),
  })
  return {
    Run: RUN,
    RunOutput: record('The results of a run that has succeeded', {
      urls: typed('array')('URLs of the files, in their order. The URL is the secret: it needs no key.', {
        items: { type: 'string', format: 'uri' },
      }),
    }),
    RunError: record('Why a run failed', {
      code: text(
        '`render_failed`; `renderer_crashed` after three crashes of its renderer; `not_recorded`, without a ' +
          'refund, when its end could not be recorded',
      ),
      message: text('What went wrong, for people'),
    }),
    StoredImage: STORED_IMAGE,
    ...Object.assign({}, ...KINDS.map(ofKind)),
  }
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

export const RUN_ID = 'run_7k2m9x4c8v1b6n3q5w0z'
export const OUTPUT_TOKEN = 'qX3vT8mLr0Zk5NwYb1HsJd7PfC2aGu9EiV6oKxRt'
export const OUTPUT_NAME = 'picture.png'

const CREATED_MS = Date.UTC(2026, 0, 15, 9, 30)

const IMAGE_SHA256 = '3f79bb7b435b05321651daefd374cdc681dc06faa65e374e38337b88ca046dea'

const INPUTS: Readonly<Record<Kind, Json>> = {
  video: { prompt: 'a boat leaves the harbour at dawn', aspect_ratio: '16:9', duration: '5' },
  image: { prompt: 'a red fox in fresh snow', quality: 'high' },
}

const REFERENCE_INPUT = {
  prompt: 'the same fox, at night',
  image_urls: ['https://example.com/sketch.jpg', 'data:image/png;base64,iVBORw0KGgo='],
}

export const createExamples = (models: Readonly<Record<Kind, string>>): Json => ({
  ...Object.fromEntries(
    KINDS.map((kind) => [
      kind,
      { summary: `A new ${kind}`, value: { model: models[kind], input: INPUTS[kind] } },
    ]),
  ),
  reference: {
    summary: 'An image from references',
    value: { model: models.image, input: REFERENCE_INPUT },
  },
})

const NEW_RUN = {
  id: RUN_ID,
  accountId: 1,
  kind: 'image',
  input: INPUTS.image,
  outputs: [],
  failure: undefined,
  createdAtMs: CREATED_MS,
  startedAtMs: undefined,
  finishedAtMs: undefined,
} as const

const RUN_EXAMPLES: Readonly<Record<LocalStatus, Partial<StoredRun>>> = {
  queued: {},
  processing: { startedAtMs: CREATED_MS + 200 },
  succeeded: {
    startedAtMs: CREATED_MS + 200,
    finishedAtMs: CREATED_MS + 2_900,
    outputs: [
      {
        token: OUTPUT_TOKEN,
        name: OUTPUT_NAME,
        contentType: 'image/png',
        bytes: 1_204_551,
        sha256: IMAGE_SHA256,
      },
    ],
  },
  failed: {
    input: {
      ...INPUTS.image,
      image_urls: [{ sha256: IMAGE_SHA256, bytes: 48_213, content_type: 'image/jpeg' }],
    },
    startedAtMs: CREATED_MS + 200,
    finishedAtMs: CREATED_MS + 1_400,
    failure: { code: 'render_failed', message: 'The renderer wrote no output file.' },
  },
}

/** A run of the image model in each of these statuses. */
export function runExamples(model: string, baseUrl: string, statuses: readonly LocalStatus[]): Json {
  const ofStatus = (status: LocalStatus): Json => {
    const run = { ...NEW_RUN, model, status, ...RUN_EXAMPLES[status] }
    return { summary: `Status: ${status}`, value: runObject(run, baseUrl) }
  }
  return Object.fromEntries(statuses.map((status) => [status, ofStatus(status)]))
}
