/**
 * Makes docs/openapi.json: the schemas of the built-in models and the meaning of each error code are written into it. An operation,
 * a field of a run or of a create, and the codes of a response are changed in the file itself.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { KINDS, type ModelDocument, type ParameterSchema } from '../../src/protocol/models.js'
import { PREVIEW_DOCUMENTS } from '../../src/service/models/served-model.js'
import { MAX_FILES, MAX_PROMPT_CHARACTERS } from '../../src/service/rules/create-request.js'
import { REFUSALS, type RefusalCode } from '../../src/service/rules/refusal.js'
import { ROOT } from '../support/project.js'

type Json = Readonly<Record<string, unknown>>

export const OPENAPI_FILE = join(ROOT, 'docs/openapi.json')
/** Names of the schemas of models. */
const MODEL_SCHEMA = /^Create|Input$/

export function openapiDocument() {
  const document = JSON.parse(readFileSync(OPENAPI_FILE, 'utf8'))
  const models = KINDS.map((kind) => PREVIEW_DOCUMENTS[kind])
  const before: Schemas = document.components.schemas
  const { Run, ...others } = Object.fromEntries(
    Object.entries(before).filter(([name]) => !MODEL_SCHEMA.test(name)),
  )
  document.components.schemas = {
    Run,
    ...others,
    ...Object.assign({}, ...models.map((model) => schemasOf(model, before))),
  }
  for (const operations of Object.values<Operations>(document.paths))
    for (const { responses } of Object.values(operations))
      for (const response of Object.values(responses)) describeCodes(response)
  return document
}

type Schemas = Readonly<Record<string, { readonly properties?: Json }>>

interface ErrorResponse {
  description: string
  readonly content?: Readonly<
    Record<
      string,
      { schema?: { properties?: { error?: { properties?: { code?: { enum?: RefusalCode[] } } } } } }
    >
  >
}

type Operations = Readonly<Record<string, { readonly responses: Readonly<Record<string, ErrorResponse>> }>>

/** Writes the meaning of each code of an error response, as the service sends it. */
function describeCodes(response: ErrorResponse): void {
  const codes = response.content?.['application/json']?.schema?.properties?.error?.properties?.code?.enum
  if (codes === undefined) return
  response.description = codes.map((code) => `* \`${code}\`: ${REFUSALS[code]?.cause}`).join('\n')
}

const refTo = (name: string): { readonly $ref: string } => ({ $ref: `#/components/schemas/${name}` })

function schemasOf(document: ModelDocument, before: Schemas): Json {
  const kind = `${document.kind.charAt(0).toUpperCase()}${document.kind.slice(1)}`
  const create = `Create${kind}Run`
  return {
    [create]: {
      type: 'object',
      description: document.input.description,
      required: ['model', 'input'],
      properties: {
        ...before[create]?.properties,
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
  return Object.fromEntries(
    KEYWORDS.flatMap((name) => (name in schema ? [[name, (schema as unknown as Json)[name]]] : [])),
  )
}

const atMost = (schema: object, name: string, limit: number): number =>
  Math.min(limit, Number((schema as Json)[name] ?? limit))

/** Describes the default as text: client generators make a parameter with the keyword `default` required. */
const describeDefault = (schema: ParameterSchema): string =>
  'default' in schema && schema.default !== undefined ? `; \`${schema.default}\` if it is absent` : ''
