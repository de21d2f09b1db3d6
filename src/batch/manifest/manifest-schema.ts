/**
 * The manifest as JSON Schema, for editors, derived from the model schemas. Tests hold it to accept what `readManifest`
 * accepts, except for checks that need the disk or several rows: images, outputs, duplicate names.
 */
import { KINDS, type Kind, type ParameterSchema } from '../../protocol/models.js'
import { kindsWith, PARAMETER_NAMES, parametersOf } from '../../protocol/parameters.js'
import { EXCLUDE, hasOrSets, keysOfKind, MATRIX, MATRIX_RULES } from './matrix-schema.js'
import { DEFAULTS_FIELDS, MAX_RUNS, OWN_FIELDS } from './row-fields.js'
import {
  anyOf,
  has,
  isSet,
  LINE,
  MODEL,
  NULL,
  orNull,
  PLACEHOLDER,
  parameterSchema,
  ref,
  type Schema,
  when,
} from './schema-parts.js'

/** A field of both kinds accepts what either accepts; `kindSchema` narrows it where the kind is known. */
function anyKind(name: string): Schema {
  const schemas = kindsWith(name).map((kind) => parametersOf(kind)[name] as ParameterSchema)
  return {
    description: [...new Set(schemas.map(({ description }) => description))].join('; '),
    ...orNull(anyOf(schemas.map(parameterSchema))),
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
  kind: described('kind', orNull({ enum: KINDS }, PLACEHOLDER)),
  model: described('model', orNull(MODEL, PLACEHOLDER)),
  output: described('output', orNull(LINE)),
  count: described('count', COUNT),
  input: described('input', { type: ['object', 'null'] }),
  matrix: described('matrix', MATRIX),
  exclude: described('exclude', EXCLUDE),
  ...Object.fromEntries(PARAMETER_NAMES.map((name) => [name, anyKind(name)])),
}

const DEFAULTS = Object.fromEntries(Object.entries(FIELDS).filter(([name]) => DEFAULTS_FIELDS.includes(name)))

/** The fields of a kind; fields of the other kind may only be `null`. */
const kindSchema = (kind: Kind): Schema => ({
  properties: {
    ...Object.fromEntries(
      PARAMETER_NAMES.map((name) => {
        const schema = parametersOf(kind)[name]
        return [name, schema === undefined ? NULL : orNull(parameterSchema(schema))]
      }),
    ),
    ...keysOfKind(kind),
  },
})

/** What holds for a row whatever the defaults are. */
const ROW: Schema = {
  type: 'object',
  additionalProperties: false,
  properties: FIELDS,
  anyOf: [has('name'), has('output')],
  allOf: [
    ...KINDS.map((kind) => when(has('kind', { const: kind }), ref(kind))),
    ...MATRIX_RULES,
    when(hasOrSets('input'), {
      properties: { kind: NULL, ...Object.fromEntries(PARAMETER_NAMES.map((name) => [name, NULL])) },
    }),
  ],
}

/** What a row needs when the defaults lack it; `takesKind`: rows that take their kind from the defaults. */
const NEEDS = {
  needsKind: { anyOf: [hasOrSets('kind'), hasOrSets('model')] },
  needsPrompt: { anyOf: [hasOrSets('prompt'), hasOrSets('input')] },
  needsModel: when(hasOrSets('input'), hasOrSets('model')),
  takesKind: { not: { anyOf: [hasOrSets('kind'), hasOrSets('model'), hasOrSets('input')] } },
}

const inDefaults = (name: string, schema: Schema = isSet): Schema =>
  has('defaults', { type: 'object', ...has(name, schema) })

const rowsWhen = (condition: Schema, row: Schema): Schema =>
  when(condition, { properties: { runs: { items: row } } })

const unlessInDefaults = (names: readonly string[], row: Schema): Schema =>
  rowsWhen({ not: { anyOf: names.map((name) => inDefaults(name)) } }, row)

export const MANIFEST_SCHEMA: Schema = {
  $schema: 'http://json-schema.org/draft-07/schema#',
  title: 'A manifest of rushes batch',
  description: 'A list of runs to create; see docs/batch.md.',
  definitions: {
    row: ROW,
    ...NEEDS,
    ...Object.fromEntries(KINDS.map((kind) => [kind, kindSchema(kind)])),
  },
  anyOf: [
    {
      type: 'array',
      items: { allOf: [ref('row'), ref('needsKind'), ref('needsPrompt'), ref('needsModel')] },
    },
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
            properties: Object.fromEntries(KINDS.map((kind) => [kind, orNull(MODEL)])),
          }),
        },
        defaults: {
          description: 'Defaults for fields that a run does not set',
          ...orNull({ type: 'object', additionalProperties: false, properties: DEFAULTS }),
        },
        runs: { description: 'Runs to create', type: 'array', items: ref('row') },
      },
      allOf: [
        ...KINDS.map((kind) =>
          rowsWhen(inDefaults('kind', { const: kind }), when(ref('takesKind'), ref(kind))),
        ),
        unlessInDefaults(['kind', 'model'], ref('needsKind')),
        unlessInDefaults(['prompt', 'input'], ref('needsPrompt')),
        unlessInDefaults(['model'], ref('needsModel')),
      ],
    },
  ],
}
