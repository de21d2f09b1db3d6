/**
 * `matrix` and `exclude` as JSON Schema, and what they change for the other fields of a row. The values of placeholders
 * and the entries of `exclude` cannot be compared with the keys here: the reader does that.
 */
import { KINDS, type Kind } from '../../protocol/models.js'
import { PARAMETER_NAMES, parametersOf } from '../../protocol/parameters.js'
import { FORBIDDEN_KEYS, KEY_PATTERN } from './matrix-values.js'
import {
  anyOf,
  has,
  isOpen,
  MODEL,
  NULL,
  orNull,
  PLACEHOLDER,
  parameterSchema,
  type Schema,
  when,
} from './schema-parts.js'

const values = (item: Schema): Schema => ({ type: 'array', minItems: 1, uniqueItems: true, items: item })

const schemasOf = (name: string) => KINDS.flatMap((kind) => parametersOf(kind)[name] ?? [])

const valuesOf = (name: string): Schema => values(anyOf(schemasOf(name).map(parameterSchema)))

const SCALAR: Schema = { type: ['string', 'number', 'boolean'] }

export const MATRIX: Schema = orNull({
  type: 'object',
  minProperties: 1,
  propertyNames: { pattern: KEY_PATTERN, not: { enum: FORBIDDEN_KEYS } },
  properties: {
    kind: values(anyOf([{ enum: KINDS }, PLACEHOLDER])),
    model: values(anyOf([MODEL, PLACEHOLDER])),
    input: values({ type: 'object' }),
    ...Object.fromEntries(PARAMETER_NAMES.map((name) => [name, valuesOf(name)])),
  },
  additionalProperties: values(anyOf([SCALAR, { type: 'object', additionalProperties: SCALAR }])),
})

export const EXCLUDE: Schema = orNull({ type: 'array', items: { type: 'object', minProperties: 1 } })

/** The matrix has this key. */
const sets = (name: string): Schema => has('matrix', { type: 'object', required: [name] })

/** A field of the row, or a key of its matrix. */
export const hasOrSets = (name: string): Schema => ({ anyOf: [has(name), sets(name)] })

/** For the properties of a row. */
const cannotSet = (names: readonly string[]): Schema => ({
  matrix: { properties: Object.fromEntries(names.map((name) => [name, false])) },
})

/** For the properties of a row of this kind: the keys of the other kind are not its fields. */
export const keysOfKind = (kind: Kind): Schema =>
  cannotSet(PARAMETER_NAMES.filter((name) => !Object.hasOwn(parametersOf(kind), name)))

const SETTABLE: readonly string[] = ['kind', 'model', 'input', ...PARAMETER_NAMES]

/** Placeholders are refused where they have no meaning: without a matrix, texts that are listed must be one of the list. */
const WITHOUT_MATRIX: Schema = {
  properties: {
    model: orNull(MODEL),
    ...Object.fromEntries(
      ['kind', ...PARAMETER_NAMES.filter((name) => !schemasOf(name).every(isOpen))].map((name) => [
        name,
        { not: PLACEHOLDER },
      ]),
    ),
  },
}

/** What holds for a row with or without a matrix. */
export const MATRIX_RULES: readonly Schema[] = [
  { anyOf: [has('matrix'), WITHOUT_MATRIX] },
  when(has('exclude'), has('matrix')),
  ...SETTABLE.map((name) => when(sets(name), { properties: { [name]: NULL } })),
  when(hasOrSets('input'), { properties: cannotSet(['kind', ...PARAMETER_NAMES]) }),
]
