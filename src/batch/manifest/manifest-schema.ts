/**
 * The manifest as JSON Schema, for editors, derived from the model schemas. Tests hold it to accept what `readManifest`
 * accepts, except for checks that need the disk or several rows: images, outputs, duplicate names.
 */
import { KINDS, type Kind, type ParameterSchema } from '../../protocol/models.js'
import { kindsWith, PARAMETER_NAMES, parametersOf } from '../../protocol/parameters.js'
import { MAX_RUNS, OWN_FIELDS } from './row-fields.js'

type Schema = Readonly<Record<string, unknown>>

const NULL: Schema = { type: 'null' }
const orNull = (...schemas: readonly Schema[]): Schema => ({ anyOf: [...schemas, NULL] })
const ref = (name: string): Schema => ({ $ref: `#/definitions/${name}` })
const isSet: Schema = { not: NULL }

const MODEL: Schema = { type: 'string', pattern: '^[^/\\s]+/\\S+$' }
const TEXT: Schema = { type: ['string', 'number', 'boolean'], pattern: '\\S' }
/** Names and paths. */
const LINE: Schema = {
  ...TEXT,
  pattern:
    '^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$',
  maxLength: 1_000,
}

/** A listed text may be written as a number: `duration: 5`. */
const choices = (allowed: readonly string[]): Schema => ({
  enum: [...allowed, ...allowed.filter((each) => String(Number(each)) === each).map(Number)],
})

function parameterSchema(schema: ParameterSchema): Schema {
  if (schema.type === 'array') {
    const most = schema.maxItems === undefined ? {} : { maxItems: schema.maxItems }
    return { type: 'array', items: { type: 'string', pattern: '\\S' }, ...most }
  }
  if (schema.type === 'string') return schema.enum === undefined ? TEXT : choices(schema.enum)
  const { description: _, ...typed } = schema
  return typed
}

/** A field of both kinds accepts what either accepts; `kindSchema` narrows it where the kind is known. */
function anyKind(name: string): Schema {
  const schemas = kindsWith(name).map((kind) => parametersOf(kind)[name] as ParameterSchema)
  const unique = [...new Map(schemas.map((each) => [JSON.stringify(parameterSchema(each)), each])).values()]
  return {
    description: [...new Set(schemas.map(({ description }) => description))].join('; '),
    ...orNull(...unique.map(parameterSchema)),
  }
}

const described = (name: keyof typeof OWN_FIELDS, schema: Schema): Schema => ({
  description: OWN_FIELDS[name],
  ...schema,
})

const COUNT = orNull(
  { type: 'integer', minimum: 1, maximum: MAX_RUNS },
  { type: 'string', pattern: '^0*([1-9][0-9]{0,3}|10000)$', maxLength: 5 },
)

const FIELDS: Readonly<Record<string, Schema>> = {
  name: described('name', orNull(LINE)),
  kind: described('kind', { enum: [...KINDS, null] }),
  model: described('model', orNull(MODEL)),
  output: described('output', orNull(LINE)),
  count: described('count', COUNT),
  input: described('input', { type: ['object', 'null'] }),
  ...Object.fromEntries(PARAMETER_NAMES.map((name) => [name, anyKind(name)])),
}

const { name: _, ...DEFAULTS } = FIELDS

/** The fields of a kind; fields of the other kind may only be `null`. */
const kindSchema = (kind: Kind): Schema => ({
  properties: Object.fromEntries(
    PARAMETER_NAMES.map((name) => {
      const schema = parametersOf(kind)[name]
      return [name, schema === undefined ? NULL : orNull(parameterSchema(schema))]
    }),
  ),
})

const has = (name: string, schema: Schema = isSet): Schema => ({
  required: [name],
  properties: { [name]: schema },
})

// biome-ignore lint/suspicious/noThenProperty: the word of JSON Schema
const when = (condition: Schema, result: Schema): Schema => ({ if: condition, then: result })

/** What holds for a row whatever the defaults are. */
const ROW: Schema = {
  type: 'object',
  additionalProperties: false,
  properties: FIELDS,
  anyOf: [has('name'), has('output')],
  allOf: [
    ...KINDS.map((kind) => when(has('kind', { const: kind }), ref(kind))),
    when(has('input'), {
      properties: { kind: NULL, ...Object.fromEntries(PARAMETER_NAMES.map((name) => [name, NULL])) },
    }),
  ],
}

/** What a row needs when the defaults lack it. */
const NEEDS_KIND: Schema = { anyOf: [has('kind'), has('model')] }
const NEEDS_PROMPT: Schema = { anyOf: [has('prompt'), has('input')] }
const NEEDS_MODEL: Schema = when(has('input'), has('model'))

const inDefaults = (name: string, schema: Schema = isSet): Schema =>
  has('defaults', { type: 'object', ...has(name, schema) })

const rowsWhen = (condition: Schema, row: Schema): Schema =>
  when(condition, { properties: { runs: { items: row } } })

const unlessInDefaults = (names: readonly string[], row: Schema): Schema =>
  rowsWhen({ not: { anyOf: names.map((name) => inDefaults(name)) } }, row)

/** Rows that take their kind from the defaults. */
const takesKind: Schema = { not: { anyOf: [has('kind'), has('model'), has('input')] } }

export const MANIFEST_SCHEMA: Schema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'A manifest of rushes batch',
  description: 'A list of runs to create; see docs/batch.md.',
  definitions: {
    row: ROW,
    ...Object.fromEntries(KINDS.map((kind) => [kind, kindSchema(kind)])),
  },
  anyOf: [
    { type: 'array', items: { allOf: [ref('row'), NEEDS_KIND, NEEDS_PROMPT, NEEDS_MODEL] } },
    {
      type: 'object',
      required: ['runs'],
      additionalProperties: false,
      patternProperties: { '^x-': {} },
      properties: {
        $schema: {},
        models: {
          description: 'the models by kind; else those of the settings, else what the lock file recorded',
          ...orNull({
            type: 'object',
            additionalProperties: false,
            properties: Object.fromEntries(KINDS.map((kind) => [kind, orNull(MODEL)])),
          }),
        },
        defaults: {
          description: 'what a run has where it says nothing itself',
          ...orNull({ type: 'object', additionalProperties: false, properties: DEFAULTS }),
        },
        runs: { description: 'the runs to create', type: 'array', items: ref('row') },
      },
      allOf: [
        ...KINDS.map((kind) => rowsWhen(inDefaults('kind', { const: kind }), when(takesKind, ref(kind)))),
        unlessInDefaults(['kind', 'model'], NEEDS_KIND),
        unlessInDefaults(['prompt', 'input'], NEEDS_PROMPT),
        unlessInDefaults(['model'], NEEDS_MODEL),
      ],
    },
  ],
}
