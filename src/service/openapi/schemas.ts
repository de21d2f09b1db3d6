/** The JSON Schemas of the document. The inputs come from the model schemas, with the bounds of `rules/`. */
import { LOCAL_DEFAULTS } from '../../protocol/local-prices.js'
import { KINDS, type Kind, MODEL_INPUTS, type ModelSchema } from '../../protocol/models.js'
import { createSchemaName } from '../../protocol/routes.js'
import { LOCAL_STATUSES } from '../../protocol/run-state.js'
import { MAX_DEPTH, MAX_VALUES } from '../rules/body-structure.js'
import {
  MAX_IMAGES,
  MAX_PROMPT_CHARACTERS,
  MAX_UNKNOWN_BYTES,
  MAX_URL_CHARACTERS,
} from '../rules/input-bounds.js'
import type { RefusalCode } from '../rules/refusal.js'

export type Json = Readonly<Record<string, unknown>>

export const refTo = (name: string): Json => ({ $ref: `#/components/schemas/${name}` })

const capitalized = (kind: Kind): string => `${kind.charAt(0).toUpperCase()}${kind.slice(1)}`
const inputNameOf = (kind: Kind): string => `${capitalized(kind)}Input`
const storedInputNameOf = (kind: Kind): string => `${capitalized(kind)}RunInput`

/** An object whose keys are all required. */
export const record = (description: string, properties: Json): Json => ({
  type: 'object',
  description,
  required: Object.keys(properties),
  properties,
})

const orNull = (schema: Json): Json => ({ oneOf: [schema, { type: 'null' }] })

export const text = (description: string): Json => ({ type: 'string', description })
export const time = (description: string): Json => ({ type: 'string', format: 'date-time', description })
export const timeOrNull = (description: string): Json => ({
  type: ['string', 'null'],
  format: 'date-time',
  description,
})

/** Not `toLocaleString`, which takes 30 ms the first time. */
const count = (number: number): string => String(number).replace(/\B(?=(\d{3})+$)/g, ',')

const EXTRA_FIELDS = `Fields that this schema does not name are accepted and kept in the run, at most ${count(MAX_UNKNOWN_BYTES)} bytes of JSON together.`

const SENT_IMAGE: Json = {
  type: 'string',
  description: `An http or https URL of at most ${count(MAX_URL_CHARACTERS)} characters, or a data: URL with an image. An image that cannot be fetched is left out.`,
  // A schema cannot say more about data: URLs: their base64 or percent encoding must be valid too.
  if: { not: { pattern: '^[Dd][Aa][Tt][Aa]:' } },
  // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
  then: { maxLength: MAX_URL_CHARACTERS },
}

const STORED_IMAGE: Json = record('An image that was sent as a data: URL', {
  sha256: { ...text('SHA-256 of the image'), pattern: '^[0-9a-f]{64}$' },
  bytes: { type: 'integer', minimum: 0, description: 'Size of the image' },
  content_type: text('The media type that the data: URL declared'),
})

/** The bounds beside the model schemas, by parameter. */
const BOUNDS: Readonly<Record<string, Json>> = {
  prompt: { maxLength: MAX_PROMPT_CHARACTERS },
  image_urls: { maxItems: MAX_IMAGES },
}

/** The input of a model; its images are either as they are sent or as the run shows them. */
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

/** In words: with the keyword `default`, client generators make an optional parameter required. */
const defaultOf = (kind: Kind, name: string): string =>
  Object.hasOwn(LOCAL_DEFAULTS[kind], name) ? `; \`${LOCAL_DEFAULTS[kind][name]}\` if it is absent` : ''

const RUN: Json = record('A run. All keys are present; unknown values are null.', {
  id: text('Identifier of the run'),
  model: text('The model, as it was sent'),
  status: {
    type: 'string',
    enum: LOCAL_STATUSES,
    description: '`queued`, then `processing`, then `succeeded` or `failed`, which are final',
  },
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

/** An error response with one of these codes. */
export const errorWith = (codes: readonly RefusalCode[]): Json =>
  record('An error response', {
    error: record('The error', {
      message: text('The problem, for people'),
      code: { type: 'string', enum: codes, description: 'The problem, for programs' },
    }),
  })

export function createSchema(models: Readonly<Record<Kind, string>>): Json {
  return {
    description: `The model, and its input. Fields beside them are ignored. The whole body has at most ${count(MAX_DEPTH)} levels of nesting and ${count(MAX_VALUES)} values; beyond that it is \`invalid_input\`.`,
    oneOf: KINDS.map((kind) => refTo(createSchemaName(kind))),
    discriminator: {
      propertyName: 'model',
      mapping: Object.fromEntries(
        KINDS.map((kind) => [models[kind], `#/components/schemas/${createSchemaName(kind)}`]),
      ),
    },
  }
}

export function schemas(models: Readonly<Record<Kind, string>>): Json {
  const ofKind = (kind: Kind): Json => ({
    [createSchemaName(kind)]: record(MODEL_INPUTS[kind].description, {
      model: { type: 'string', const: models[kind], description: 'The model' },
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
      urls: {
        type: 'array',
        items: { type: 'string', format: 'uri' },
        description: 'URLs of the files, in their order. The URL is the secret: it needs no key.',
      },
    }),
    RunError: record('Why a run failed', {
      code: text(
        '`render_failed`; `renderer_crashed` after three crashes of its renderer; `not_recorded`, without a refund, when its end could not be recorded',
      ),
      message: text('What went wrong, for people'),
    }),
    StoredImage: STORED_IMAGE,
    ...Object.assign({}, ...KINDS.map(ofKind)),
  }
}
