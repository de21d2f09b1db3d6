/**
 * docs/schemas/manifest.json, for editors: the fields of a row, and the parameters of the built-in models. It accepts every manifest that
 * `rushes batch` accepts; what depends on defaults or on other rows, only `rushes batch` checks.
 */
import { parse } from 'yaml'
import { MAX_RUNS, OWN_FIELDS } from '../../src/batch/manifest/row.js'
import {
  builtInSchema,
  KINDS,
  type Kind,
  PARAMETER_NAMES,
  type ParameterSchema,
} from '../../src/protocol/models.js'

type Json = Readonly<Record<string, unknown>>

const orNull = (...schemas: readonly Json[]): Json => ({ anyOf: [...schemas, { type: 'null' }] })
const listOf = (items: Json): Json => ({ type: 'array', items, minItems: 1, uniqueItems: true })
const mapOver = (names: readonly string[], of: (name: string) => unknown): Json =>
  Object.fromEntries(names.map((name) => [name, of(name)]))

/** What several fields share, and the fields of a row that are not parameters. */
const { shared, fields: OWN } = parse(
  `
shared:
  placeholder: &placeholder { type: string, pattern: '\\{[^{}]+\\}' }
  model: &model { type: string, pattern: '^[^/\\s]+/\\S+$' }
  kind: &kind { anyOf: [{ enum: [${KINDS}] }, *placeholder] }
  name: &name
    type: [string, number, boolean, "null"]
    pattern: '^[^\\u0000-\\u001f\\u007f-\\u009f]*[^\\s\\u0000-\\u001f\\u007f-\\u009f][^\\u0000-\\u001f\\u007f-\\u009f]*$'
    maxLength: 1000
  label: &label
    type: [string, number, boolean]
    pattern: '^\\s*[^\\s\\p{Cc}]([^\\p{Cc}]*[^\\s\\p{Cc}])?\\s*$'
fields:
  name:
    description: "Name of the run, here and in the lock file; default: the path of the output"
    <<: *name
  kind:
    description: Image or video
    anyOf: [{ enum: [${KINDS}] }, *placeholder, { type: "null" }]
  model:
    description: Identifier published for the model, instead of the one in \`models\` or the settings
    anyOf: [*model, *placeholder, { type: "null" }]
  output:
    description: "Path of the file, relative to the manifest; default: <name>.<ext>"
    <<: *name
  count:
    description: Number of runs of the same input, each with its own file
    anyOf:
      - { type: integer, minimum: 1, maximum: ${MAX_RUNS} }
      - { type: string, pattern: '^0*[1-9][0-9]*$', maxLength: 5 }
      - { type: "null" }
  label:
    description: A label, or a list of labels, that the journal keeps with each run; never sent
    anyOf: [*label, { type: array, items: *label }, { type: "null" }]
  matrix:
    description: "Lists of values: one run for each combination; {key} is replaced in all its texts"
    type: [object, "null"]
    minProperties: 1
    propertyNames:
      pattern: '^[\\p{L}_][\\p{L}\\p{M}\\p{N}_-]*$'
      not: { enum: [name, output, count, matrix, exclude, ext] }
    properties:
      kind: { type: array, items: *kind, minItems: 1, uniqueItems: true }
    additionalProperties: { type: array, items: { not: { type: "null" } }, minItems: 1, uniqueItems: true }
  exclude:
    description: 'Combinations of the matrix that are left out: [{animal: bear, aspect_ratio: "16:9"}]'
    type: [array, "null"]
    items: { type: object, minProperties: 1 }
`,
  { merge: true },
)
const { placeholder: PLACEHOLDER, model: MODEL } = shared

/** A value of a parameter in a row. */
function parameterValue(schema: ParameterSchema): Json {
  if (schema.type === 'array')
    return { type: 'array', items: { type: 'string', pattern: '\\S' }, maxItems: schema.maxItems }
  if (schema.type === 'integer' || schema.type === 'number') {
    const { type, minimum, maximum } = schema
    return { anyOf: [{ type, minimum, maximum }, { type: 'string', pattern: '^\\s*-?\\d' }, PLACEHOLDER] }
  }
  if (schema.type === 'boolean') return { anyOf: [{ enum: [true, false, 'true', 'false'] }, PLACEHOLDER] }
  if (!('enum' in schema) || schema.enum === undefined)
    return { type: ['string', 'number', 'boolean'], pattern: '\\S' }
  const values = schema.enum.flatMap((value) => (/^\d+$/.test(`${value}`) ? [value, Number(value)] : [value]))
  return { anyOf: [{ enum: values }, PLACEHOLDER] }
}

/** The parameters of a kind; those of the other kind are not set. */
const ofKind = (kind: Kind): Json => {
  const { properties } = builtInSchema(kind)
  const given = (name: string, of: (value: Json) => unknown, otherwise: unknown) =>
    properties[name] === undefined ? otherwise : of(parameterValue(properties[name]))
  return {
    ...mapOver(PARAMETER_NAMES, (name) => given(name, (value) => orNull(value), { type: 'null' })),
    matrix: { properties: mapOver(PARAMETER_NAMES, (name) => given(name, listOf, false)) },
  }
}

const descriptionOf = (name: string): Json => ({
  description: [
    ...new Set(KINDS.flatMap((kind) => builtInSchema(kind).properties[name]?.description ?? [])),
  ].join('; '),
})

const inMatrix = (name: string): Json => ({
  required: ['matrix'],
  properties: { matrix: { type: 'object', required: [name] } },
})
const hasField = (...names: readonly string[]): Json => ({
  anyOf: names.flatMap((name) => [{ required: [name] }, inMatrix(name)]),
})
const ofDefaults = (keys: readonly string[]): Json => ({
  required: ['defaults'],
  properties: { defaults: { type: 'object', required: keys } },
})

export function manifestSchema(): Json {
  for (const name of OWN_FIELDS)
    if (OWN[name] === undefined) throw new Error(`describe the field ${name} here`)
  const row = '#/definitions/row'
  const builtInRow = { allOf: [{ $ref: row }, { $ref: '#/definitions/builtIn' }] }
  return {
    $schema: 'http://json-schema.org/draft-07/schema#',
    title: 'rushes: the manifest of batch',
    description: 'A list of runs to create; see docs/batch.md.',
    definitions: {
      row: {
        type: 'object',
        properties: { ...OWN, ...mapOver(PARAMETER_NAMES, descriptionOf) },
        anyOf: [{ required: ['name'] }, { required: ['output'] }],
      },
      builtIn: {
        if: hasField('model'),
        else: {
          propertyNames: { enum: [...OWN_FIELDS, ...PARAMETER_NAMES] },
          allOf: KINDS.map((kind) => ({
            if: { required: ['kind'], properties: { kind: { const: kind } } },
            // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
            then: { properties: ofKind(kind) },
          })),
        },
      },
    },
    if: { type: 'array' },
    // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema
    then: { items: { allOf: [builtInRow, hasField('kind', 'model'), hasField('prompt', 'model')] } },
    else: {
      type: 'object',
      required: ['runs'],
      additionalProperties: false,
      patternProperties: { '^x-': {} },
      properties: {
        $schema: {},
        models: {
          description: 'Models by kind; default: the settings, then the lock file',
          type: ['object', 'null'],
          additionalProperties: false,
          properties: mapOver(KINDS, () => orNull(MODEL)),
        },
        defaults: {
          description: 'Defaults for fields that a run does not set',
          type: ['object', 'null'],
          properties: {
            ...mapOver(OWN_FIELDS, (name) =>
              ['name', 'matrix', 'exclude'].includes(name) ? false : OWN[name],
            ),
            ...mapOver(PARAMETER_NAMES, descriptionOf),
          },
        },
        runs: { description: 'Runs to create', type: 'array', items: { $ref: row } },
      },
      if: ofDefaults(['model']),
      else: { properties: { runs: { items: builtInRow } } },
    },
  }
}
