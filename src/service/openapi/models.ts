/**
 * The models in the OpenAPI document: the schemas of creates and inputs, and examples. Inputs come from the documents of
 * the models and the limits in `rules/`.
 */
import { createSchemaName } from '../../protocol/id.js'
import { KINDS, type Kind, type ModelDocument, type ParameterSchema } from '../../protocol/models.js'
import type { LocalStatus } from '../../protocol/run-state.js'
import { inputProblems, unknownFields } from '../../protocol/validate.js'
import { defaultDocument } from '../models/served-model.js'
import {
  MAX_DEPTH,
  MAX_IMAGES,
  MAX_PARAMETER_BYTES,
  MAX_PROMPT_CHARACTERS,
  MAX_URL_CHARACTERS,
  MAX_VALUES,
} from '../rules/create-request.js'
import { runObject, type StoredRun } from '../stored-run.js'
import { flag, integer, type Json, record, refTo, runSchema, SHARED_SCHEMAS, text } from './schemas.js'

type Models = readonly ModelDocument[]

interface SchemaNames {
  readonly document: ModelDocument
  /** Body of a create. */
  readonly create: string
  readonly input: string
  /** Input of a run, as the service shows it. */
  readonly stored: string
}

/** Names the schemas of a model by its kind if it is the default of the kind, else by its name. */
function nameSchemas(models: Models): readonly SchemaNames[] {
  const taken = new Set<string>()
  const defaults = KINDS.flatMap((kind) => defaultDocument(models, kind) ?? [])
  const others = models.filter((document) => !defaults.includes(document))
  return [...defaults, ...others].map((document) => {
    const wanted = pascalCase(defaults.includes(document) ? document.kind : document.name)
    for (let number = 1; ; number++) {
      const base = number === 1 ? wanted : `${wanted}${number}`
      const names = { create: createSchemaName(base), input: `${base}Input`, stored: `${base}RunInput` }
      if (Object.values(names).some((name) => taken.has(name))) continue
      for (const name of Object.values(names)) taken.add(name)
      return { document, ...names }
    }
  })
}

/** `AcmeFlux2` for `acme/flux-2`. Names of schemas have only ASCII letters and digits. */
const pascalCase = (name: string): string =>
  name
    .split(/[^A-Za-z0-9]+/)
    .map((word) => `${word.charAt(0).toUpperCase()}${word.slice(1)}`)
    .join('') || 'Model'

/** Adds thousands separators. `toLocaleString` takes 30 ms the first time. */
const count = (number: number): string => String(number).replace(/\B(?=(\d{3})+$)/g, ',')

const EXTRA_FIELDS =
  `Fields that this schema does not name are accepted and kept in the run. All fields but \`prompt\` and ` +
  `\`image_urls\` have at most ${count(MAX_PARAMETER_BYTES)} bytes of JSON together.`

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

/** The keywords that the service checks. */
const KEYWORDS = ['type', 'enum', 'minimum', 'maximum', 'maxLength', 'maxItems', 'items'] as const

/** Schema of a model's input. `images` describes its images as they are sent, or as the run shows them. */
function inputSchema({ input }: ModelDocument, description: string, images: Json): Json {
  const properties = Object.entries(input.properties).map(([name, schema]) => [
    name,
    {
      ...checkedKeywords(schema),
      description: `${schema.description}${describeDefault(schema)}`,
      ...(name === 'prompt' && { maxLength: atMost(schema, 'maxLength', MAX_PROMPT_CHARACTERS) }),
      ...(name === 'image_urls' && { maxItems: atMost(schema, 'maxItems', MAX_IMAGES), items: images }),
    },
  ])
  const missing = Object.hasOwn(input.properties, 'image_urls') ? {} : { not: { required: ['image_urls'] } }
  return {
    ...{ type: 'object', description, required: input.required },
    properties: Object.fromEntries(properties),
    ...missing,
  }
}

function checkedKeywords(schema: ParameterSchema): Json {
  if (schema.type === 'other') return {}
  const keywords = Object.fromEntries(
    KEYWORDS.flatMap((name) => (name in schema ? [[name, (schema as unknown as Json)[name]]] : [])),
  )
  return 'orObject' in schema ? { anyOf: [keywords, { type: 'object' }] } : keywords
}

const atMost = (schema: object, name: string, limit: number): number =>
  Math.min(limit, Number((schema as Json)[name] ?? limit))

/** Describes the default as text: client generators make a parameter with the keyword `default` required. */
const describeDefault = (schema: ParameterSchema): string =>
  'default' in schema && schema.default !== undefined ? `; \`${schema.default}\` if it is absent` : ''

/** Schema of the body of a create. */
export const createSchema = (models: Models): Json => ({
  description:
    `The model, and its input. Fields beside them are ignored. The whole body has at most ` +
    `${count(MAX_DEPTH)} levels of nesting and ${count(MAX_VALUES)} values; beyond that it is \`invalid_input\`.`,
  oneOf: nameSchemas(models).map(({ create }) => refTo(create)),
  discriminator: {
    propertyName: 'model',
    mapping: Object.fromEntries(
      nameSchemas(models).map(({ document, create }) => [document.name, refTo(create).$ref]),
    ),
  },
})

const MODEL: Json = {
  type: 'object',
  description: 'A model of this service',
  required: ['name', 'kind', 'input'],
  properties: {
    name: text('The name that a create sends'),
    kind: text('What it creates', { enum: KINDS }),
    input: {
      type: 'object',
      description: 'JSON Schema of its input. Fields that it does not name are accepted.',
    },
    price: {
      type: 'object',
      required: ['run', 'factors'],
      description:
        'The price in credits. Every possible price of a run is whole. Without it, a run costs nothing.',
      properties: {
        run: { type: 'number', description: 'Price of a run', minimum: 0 },
        round_up: flag('The price of a run is rounded up to a whole number'),
        factors: {
          type: 'object',
          description: 'Factors of the price, by parameter and value',
          additionalProperties: { type: 'object', additionalProperties: { type: 'number', minimum: 0 } },
        },
      },
    },
    default: flag('It is the default model of its kind'),
  },
}

export function schemas(models: Models): Json {
  const named = nameSchemas(models)
  const ofModel = ({ document, create, input, stored }: SchemaNames): Json => ({
    [create]: record(document.input.description, {
      model: text('The model', { const: document.name }),
      input: refTo(input),
    }),
    [input]: inputSchema(
      document,
      `Input of ${document.name}. ${EXTRA_FIELDS} The prompt's length is counted in UTF-16 code units.`,
      SENT_IMAGE,
    ),
    [stored]: inputSchema(
      document,
      `Input of a run of ${document.name}. Parameters that were not sent are absent.`,
      { oneOf: [text('The URL, as it was sent'), refTo('StoredImage')] },
    ),
  })
  return {
    Run: runSchema(named.map(({ stored }) => refTo(stored))),
    ...SHARED_SCHEMAS,
    StoredImage: STORED_IMAGE,
    ModelList: record('The models of this service', {
      models: { type: 'array', items: refTo('Model'), description: 'In the order of the service' },
    }),
    Model: MODEL,
    ...Object.assign({}, ...named.map(ofModel)),
  }
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

/** Returns the values if they are a valid input of the model. */
const exampleInput = ({ input }: ModelDocument, values: Json): Json | undefined =>
  inputProblems(input, values).length + unknownFields(input, values).length === 0 ? values : undefined

/** A create of the default model of each kind, without the models that have another input. */
export function createExamples(models: Models): Json {
  const example = (name: string, kind: Kind, summary: string, values: Json) => {
    const document = defaultDocument(models, kind)
    const input = document && exampleInput(document, values)
    return input === undefined ? [] : [[name, { summary, value: { model: document?.name, input } }]]
  }
  return Object.fromEntries([
    ...KINDS.flatMap((kind) => example(kind, kind, `A new ${kind}`, INPUTS[kind])),
    ...example('reference', 'image', 'An image from references', REFERENCE_INPUT),
  ])
}

const NEW_RUN = {
  id: RUN_ID,
  accountId: 1,
  kind: 'image',
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
    startedAtMs: CREATED_MS + 200,
    finishedAtMs: CREATED_MS + 1_400,
    failure: { code: 'render_failed', message: 'The engine wrote no output file.' },
  },
}

const SENT_REFERENCE = { sha256: IMAGE_SHA256, bytes: 48_213, content_type: 'image/jpeg' }

/** A run in each of these statuses: of the default image model, if the service has one. */
export function runExamples(models: Models, baseUrl: string, statuses: readonly LocalStatus[]): Json {
  const document = defaultDocument(models, 'image') ?? models[0]
  if (document === undefined) return {}
  const takesImages = Object.hasOwn(document.input.properties, 'image_urls')
  const input = exampleInput(document, INPUTS[document.kind]) ?? {}
  const ofStatus = (status: LocalStatus): Json => {
    const more = status === 'failed' && takesImages && { image_urls: [SENT_REFERENCE] }
    const run = {
      ...{ ...NEW_RUN, model: document.name, status, input: { ...input, ...more } },
      ...RUN_EXAMPLES[status],
    }
    return { summary: `Status: ${status}`, value: runObject(run, baseUrl) }
  }
  return Object.fromEntries(statuses.map((status) => [status, ofStatus(status)]))
}
