/**
 * JSON Schema of the manifest, for editors, derived from the built-in schemas. A row that names its model may have any
 * further field, because an editor does not know the documents; other rows have the built-in parameters. Tests ensure
 * that it accepts what `readManifest` accepts, except for checks that need the disk, the settings or several rows (images,
 * outputs, duplicate names), or that compare placeholders and `exclude` with matrix keys.
 */
import { anyOf, type JsonSchema, list, NULL, orNull } from '../../protocol/json-schema.js'
import { KINDS, type Kind, type ParameterSchema } from '../../protocol/models.js'
import { builtInSchema, PARAMETER_NAMES } from '../../protocol/parameters.js'
import { FORBIDDEN_KEYS, KEY_PATTERN } from './combinations.js'
import { DEFAULTS_FIELDS, MAX_RUNS, OWN_FIELDS, ROW_FIELDS } from './sections.js'

type NamedSchemas = Readonly<Record<string, JsonSchema>>

const schemasFor = (names: readonly string[], schemaOf: (name: string) => JsonSchema): NamedSchemas =>
  Object.fromEntries(names.map((name) => [name, schemaOf(name)]))

const ref = (name: string): JsonSchema => ({ $ref: `#/definitions/${name}` })
const isSet: JsonSchema = { not: NULL }
const has = (name: string, schema: JsonSchema = isSet): JsonSchema => ({
  required: [name],
  properties: { [name]: schema },
})
// biome-ignore lint/suspicious/noThenProperty: the word of JSON Schema
const when = (condition: JsonSchema, result: JsonSchema): JsonSchema => ({ if: condition, then: result })

const MODEL: JsonSchema = { type: 'string', pattern: '^[^/\\s]+/\\S+$' }
const SCALAR: JsonSchema = { type: ['string', 'number', 'boolean'] }
const TEXT: JsonSchema = { ...SCALAR, pattern: '\\S' }
/** Text on one line: names and paths. */
const LINE: JsonSchema = {
  ...SCALAR,
  pattern:
    '^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$',
  maxLength: 1_000,
}
/** Text with a placeholder, for fields whose own type does not accept it. */
const PLACEHOLDER: JsonSchema = { type: 'string', pattern: '\\{[^{}]+\\}' }
/** Text on one line, without its spaces at the ends. Emoji have format characters. */
const LABEL: JsonSchema = { ...SCALAR, pattern: '^\\s*[^\\s\\p{Cc}]([^\\p{Cc}]*[^\\s\\p{Cc}])?\\s*$' }
const COUNT = anyOf([
  { type: 'integer', minimum: 1, maximum: MAX_RUNS },
  { type: 'string', pattern: '^0*([1-9][0-9]{0,3}|10000)$', maxLength: 5 },
])

/** Accepts listed values. A listed text may be written as a number: `duration: 5`. */
const choices = (allowed: readonly string[]): JsonSchema => ({
  enum: [...allowed, ...allowed.filter((each) => String(Number(each)) === each).map(Number)],
})

/** Whether a parameter accepts any text, or a list of texts. */
const takesAnyText = (schema: ParameterSchema): boolean =>
  schema.type === 'array' || (schema.type === 'string' && schema.enum === undefined)

/** Accepts placeholders too. The row schema refuses them if there is no matrix. */
function parameterSchema(schema: ParameterSchema): JsonSchema {
  if (schema.type === 'array') {
    const most = schema.maxItems === undefined ? {} : { maxItems: schema.maxItems }
    return { ...list({ type: 'string', pattern: '\\S' }), ...most }
  }
  if (takesAnyText(schema)) return TEXT
  const { description: _, ...typed } = schema
  return anyOf([schema.type === 'string' ? choices(schema.enum ?? []) : typed, PLACEHOLDER])
}

const schemasOf = (name: string) => KINDS.flatMap((kind) => builtInSchema(kind).properties[name] ?? [])

/** Accepts what either kind accepts for this field. `kindSchema` narrows it if the kind is known. */
const anyKind = (name: string): JsonSchema => anyOf(schemasOf(name).map(parameterSchema))

const values = (item: JsonSchema): JsonSchema => ({ ...list(item), minItems: 1, uniqueItems: true })

const MATRIX_FIELDS: NamedSchemas = {
  kind: values(anyOf([{ enum: KINDS }, PLACEHOLDER])),
  model: values(anyOf([MODEL, PLACEHOLDER])),
  input: values({ type: 'object' }),
}

const FIELD_SCHEMAS: Readonly<Record<keyof typeof OWN_FIELDS, JsonSchema>> = {
  name: LINE,
  kind: anyOf([{ enum: KINDS }, PLACEHOLDER]),
  model: anyOf([MODEL, PLACEHOLDER]),
  output: LINE,
  count: COUNT,
  label: anyOf([LABEL, list(LABEL)]),
  input: { type: 'object' },
  matrix: {
    type: 'object',
    minProperties: 1,
    propertyNames: { pattern: KEY_PATTERN, not: { enum: FORBIDDEN_KEYS } },
    properties: MATRIX_FIELDS,
    additionalProperties: values(isSet),
  },
  exclude: list({ type: 'object', minProperties: 1 }),
}

const FIELDS: NamedSchemas = {
  ...Object.fromEntries(
    Object.entries(FIELD_SCHEMAS).map(([name, schema]) => [
      name,
      { description: OWN_FIELDS[name as keyof typeof OWN_FIELDS], ...orNull(schema) },
    ]),
  ),
  ...schemasFor(PARAMETER_NAMES, (name) => ({
    description: [...new Set(schemasOf(name).map(({ description }) => description))].join('; '),
  })),
}

/** The built-in parameters. `ref(kind)` narrows their values if the kind is known. */
const PARAMETERS: NamedSchemas = schemasFor(PARAMETER_NAMES, (name) => orNull(anyKind(name)))

/** The fields of the defaults. Names that they cannot have are refused. */
const DEFAULTS = Object.fromEntries(
  Object.entries(FIELDS).map(([name, schema]) => [name, DEFAULTS_FIELDS.includes(name) ? schema : false]),
)

/** Matches a row whose matrix has this key. */
const sets = (name: string): JsonSchema => has('matrix', { type: 'object', required: [name] })

/** Matches a row that has this field or matrix key. */
const hasOrSets = (name: string): JsonSchema => ({ anyOf: [has(name), sets(name)] })

/** Properties of a row whose matrix cannot have these keys. */
const cannotSet = (names: readonly string[]): NamedSchemas => ({
  matrix: { properties: Object.fromEntries(names.map((name) => [name, false])) },
})

/** Fields of a kind. Fields of the other kind may only be `null`, and cannot be matrix keys. */
const kindSchema = (kind: Kind): JsonSchema => ({
  properties: {
    ...schemasFor(PARAMETER_NAMES, (name) => {
      const schema = builtInSchema(kind).properties[name]
      return schema === undefined ? NULL : orNull(parameterSchema(schema))
    }),
    ...cannotSet(PARAMETER_NAMES.filter((name) => !Object.hasOwn(builtInSchema(kind).properties, name))),
  },
})

/** Applies to each row whose model the manifest does not name. */
const BUILT_IN: JsonSchema = {
  propertyNames: { enum: ROW_FIELDS },
  properties: {
    ...PARAMETERS,
    matrix: {
      properties: { ...MATRIX_FIELDS, ...schemasFor(PARAMETER_NAMES, (name) => values(anyKind(name))) },
      additionalProperties: values(anyOf([SCALAR, { type: 'object', additionalProperties: SCALAR }])),
    },
  },
  allOf: [
    ...KINDS.map((kind) => when(has('kind', { const: kind }), ref(kind))),
    // Without a matrix, a field with listed values refuses placeholders.
    {
      anyOf: [
        has('matrix'),
        {
          properties: schemasFor(
            PARAMETER_NAMES.filter((name) => !schemasOf(name).every(takesAnyText)),
            () => ({ not: PLACEHOLDER }),
          ),
        },
      ],
    },
  ],
}

/** Applies to each row, with or without defaults. */
const ROW: JsonSchema = {
  type: 'object',
  properties: FIELDS,
  anyOf: [has('name'), has('output')],
  allOf: [
    { anyOf: [has('matrix'), { properties: { model: orNull(MODEL), kind: { not: PLACEHOLDER } } }] },
    when(has('exclude'), has('matrix')),
    ...['kind', 'model', 'input', ...PARAMETER_NAMES].map((name) =>
      when(sets(name), { properties: { [name]: NULL } }),
    ),
    when(hasOrSets('input'), { properties: cannotSet(['kind', ...PARAMETER_NAMES]) }),
    when(hasOrSets('input'), { properties: schemasFor(['kind', ...PARAMETER_NAMES], () => NULL) }),
  ],
}

/**
 * Fields that a row needs if the defaults do not have them. `takesKind`: rows that take their kind from the defaults.
 */
const NEEDS = {
  needsKind: { anyOf: [hasOrSets('kind'), hasOrSets('model')] },
  needsPrompt: { anyOf: [hasOrSets('prompt'), hasOrSets('input'), hasOrSets('model')] },
  needsModel: when(hasOrSets('input'), hasOrSets('model')),
  isBuiltIn: when({ not: hasOrSets('model') }, ref('builtIn')),
  takesKind: { not: { anyOf: [hasOrSets('kind'), hasOrSets('model'), hasOrSets('input')] } },
}

const inDefaults = (name: string, schema: JsonSchema = isSet): JsonSchema =>
  has('defaults', { type: 'object', ...has(name, schema) })

const rowsWhen = (condition: JsonSchema, row: JsonSchema): JsonSchema =>
  when(condition, { properties: { runs: { items: row } } })

/** Matches a manifest with a named model, except in `models`. */
const NAMES_MODEL: JsonSchema = {
  anyOf: [
    inDefaults('model'),
    { required: ['runs'], properties: { runs: { type: 'array', contains: hasOrSets('model') } } },
  ],
}

const unlessInDefaults = (names: readonly string[], row: JsonSchema): JsonSchema =>
  rowsWhen({ not: { anyOf: names.map((name) => inDefaults(name)) } }, row)

export const MANIFEST_SCHEMA: JsonSchema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'A manifest of rushes batch',
  description: 'A list of runs to create; see docs/batch.md.',
  definitions: {
    row: ROW,
    builtIn: BUILT_IN,
    ...NEEDS,
    ...schemasFor(KINDS, (kind) => kindSchema(kind as Kind)),
  },
  anyOf: [
    list({
      allOf: ['row', 'isBuiltIn', 'needsKind', 'needsPrompt', 'needsModel'].map(ref),
    }),
    {
      type: 'object',
      required: ['runs'],
      additionalProperties: false,
      patternProperties: { '^x-': {} },
      properties: {
        $schema: {},
        models: {
          description: 'Models by kind; default: the settings, then the lock file',
          ...orNull({
            type: 'object',
            additionalProperties: false,
            properties: schemasFor(KINDS, () => orNull(MODEL)),
          }),
        },
        defaults: {
          description: 'Defaults for fields that a run does not set',
          ...orNull({ type: 'object', properties: DEFAULTS }),
        },
        runs: list(ref('row'), 'Runs to create'),
      },
      allOf: [
        ...KINDS.map((kind) =>
          rowsWhen(
            { allOf: [inDefaults('kind', { const: kind }), { not: inDefaults('model') }] },
            when(ref('takesKind'), ref(kind)),
          ),
        ),
        unlessInDefaults(['model'], ref('isBuiltIn')),
        rowsWhen(inDefaults('model'), when(hasOrSets('kind'), ref('isBuiltIn'))),
        when(
          { not: NAMES_MODEL },
          { properties: { defaults: { propertyNames: { enum: DEFAULTS_FIELDS }, properties: PARAMETERS } } },
        ),
        unlessInDefaults(['kind', 'model'], ref('needsKind')),
        unlessInDefaults(['prompt', 'input', 'model'], ref('needsPrompt')),
        unlessInDefaults(['model'], ref('needsModel')),
      ],
    },
  ],
}
