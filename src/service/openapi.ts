/**
 * The service's API as OpenAPI 3.1. docs/openapi.json is its source, with the built-in models: an operation, a code or a
 * text is changed there. This file fills in the URL and the models of a service. Pure.
 */
import source from '../../docs/openapi.json?raw'
import { RUNS_PATH } from '../protocol/id.js'
import { writeJson } from '../protocol/json.js'
import { KINDS, type ModelDocument, type ParameterSchema } from '../protocol/models.js'
import { inputProblems, unknownFields } from '../protocol/validate.js'
import { defaultDocument, findDocument } from './models/served-model.js'
import { MAX_IMAGES, MAX_PROMPT_CHARACTERS } from './rules/create-request.js'

type Json = Readonly<Record<string, unknown>>
type Models = readonly ModelDocument[]

export interface DocumentedService {
  readonly models: Models
  /** Base of all URLs of the service, without a trailing slash. */
  readonly baseUrl: string
}

interface Example {
  readonly value: { readonly model: string; readonly input: Json }
}

interface Content {
  readonly 'application/json'?: { schema: Json; examples?: Record<string, Example> }
}

interface Operation {
  readonly requestBody?: { readonly content: Content }
  readonly responses: Readonly<Record<string, { readonly content?: Content }>>
}

/** The parts of the document that this file reads or changes. */
interface OpenapiDocument {
  readonly paths: Record<string, Readonly<Record<string, Operation>>>
  readonly components: { schemas: Record<string, Json> }
}

/** URL of the service in the source. */
const SOURCE_URL = 'http://127.0.0.1:7878'
/** Names of the schemas of models in the source. */
const MODEL_SCHEMA = /^Create|Input$/

export function openapiDocument({ models, baseUrl }: DocumentedService): OpenapiDocument {
  const document: OpenapiDocument = JSON.parse(source.replaceAll(SOURCE_URL, baseUrl))
  const { paths, components } = document
  const named = nameSchemas(models)
  const { Run, ...others } = Object.fromEntries(
    Object.entries(components.schemas).filter(([name]) => !MODEL_SCHEMA.test(name)),
  )
  components.schemas = {
    Run: withInputs(Run, named),
    ...others,
    ...Object.assign({}, ...named.map(schemasOf)),
  }
  for (const [path, operations] of Object.entries(paths))
    for (const [method, { requestBody, responses }] of Object.entries(operations)) {
      const create = path === RUNS_PATH && method === 'post' && requestBody?.content['application/json']
      if (create) {
        create.schema = withCreates(create.schema, named)
        create.examples = validExamples(create.examples, models)
      }
      for (const { content } of Object.values(responses)) {
        const run = content?.['application/json']
        if (run?.schema.$ref === refTo('Run').$ref) run.examples = validExamples(run.examples, models)
      }
    }
  return document
}

export const openapiText = (service: DocumentedService): string =>
  `${writeJson(openapiDocument(service), { indent: 2 })}\n`

const refTo = (name: string): { readonly $ref: string } => ({ $ref: `#/components/schemas/${name}` })

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
      const names = { create: `Create${base}Run`, input: `${base}Input`, stored: `${base}RunInput` }
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

function withInputs(run: Json = {}, named: readonly SchemaNames[]): Json {
  const properties = run.properties as Readonly<Record<string, Json>>
  const input = { ...properties.input, anyOf: named.map(({ stored }) => refTo(stored)) }
  return { ...run, properties: { ...properties, input } }
}

const withCreates = (schema: Json, named: readonly SchemaNames[]): Json => ({
  ...schema,
  oneOf: named.map(({ create }) => refTo(create)),
  discriminator: {
    propertyName: 'model',
    mapping: Object.fromEntries(named.map(({ document, create }) => [document.name, refTo(create).$ref])),
  },
})

const schemasOf = ({ document, create, input, stored }: SchemaNames): Json => ({
  [create]: {
    type: 'object',
    description: document.input.description,
    required: ['model', 'input'],
    properties: {
      model: { type: 'string', const: document.name, description: 'The model' },
      input: refTo(input),
    },
  },
  [input]: inputSchema(document, `Input of ${document.name}.`, refTo('SentImage')),
  [stored]: inputSchema(
    document,
    `Input of a run of ${document.name}. Parameters that were not sent are absent.`,
    { oneOf: [{ type: 'string', description: 'The URL, as it was sent' }, refTo('StoredImage')] },
  ),
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

/** Leaves out the examples of models that the service does not have, or whose schemas refuse them. */
const validExamples = (examples: Record<string, Example> = {}, models: Models): Record<string, Example> =>
  Object.fromEntries(
    Object.entries(examples).filter(([, { value }]) => {
      const document = findDocument(models, value.model)
      const { image_urls: images, ...fields } = value.input
      return (
        document !== undefined &&
        inputProblems(document.input, fields).length + unknownFields(document.input, fields).length === 0 &&
        (images === undefined || Object.hasOwn(document.input.properties, 'image_urls'))
      )
    }),
  )
