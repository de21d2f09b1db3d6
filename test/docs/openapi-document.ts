/**
 * Makes docs/openapi.json: the schemas of the built-in models are written into it. An operation, a code or a text is changed
 * in the file itself.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { KINDS, type ModelDocument, type ParameterSchema } from '../../src/protocol/models.js'
import { PREVIEW_DOCUMENTS } from '../../src/service/models/served-model.js'
import { MAX_FILES, MAX_PROMPT_CHARACTERS } from '../../src/service/rules/create-request.js'
import { ROOT } from '../support/project.js'

type Json = Readonly<Record<string, unknown>>

export const OPENAPI_FILE = join(ROOT, 'docs/openapi.json')
/** Names of the schemas of models. */
const MODEL_SCHEMA = /^Create|Input$/

export function openapiDocument() {
  const document = JSON.parse(readFileSync(OPENAPI_FILE, 'utf8'))
  const models = KINDS.map((kind) => PREVIEW_DOCUMENTS[kind])
  const { Run, ...others } = Object.fromEntries(
    Object.entries<Json>(document.components.schemas).filter(([name]) => !MODEL_SCHEMA.test(name)),
  )
  document.components.schemas = { Run, ...others, ...Object.assign({}, ...models.map(schemasOf)) }
  return document
}

const refTo = (name: string): { readonly $ref: string } => ({ $ref: `#/components/schemas/${name}` })

function schemasOf(document: ModelDocument): Json {
  const kind = `${document.kind.charAt(0).toUpperCase()}${document.kind.slice(1)}`
  return {
    [`Create${kind}Run`]: {
      type: 'object',
      description: document.input.description,
      required: ['model', 'input'],
      properties: {
        model: { type: 'string', const: document.name, description: 'The model' },
        input: refTo(`${kind}Input`),
      },
    },
    [`${kind}Input`]: inputSchema(document, `Input of ${document.name}.`, refTo('SentImage')),
    [`${kind}RunInput`]: inputSchema(
      document,
      `Input of a run of ${document.name}. Parameters that were not sent are absent.`,
      { oneOf: [{ type: 'string', description: 'The URL, as it was sent' }, refTo('StoredImage')] },
    ),
  }
}

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
      ...(name === 'image_urls' && { maxItems: atMost(schema, 'maxItems', MAX_FILES), items: images }),
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
