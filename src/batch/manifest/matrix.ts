/** Expands a run with a matrix into one run for each combination: the product, and a replacement of text, before runs are checked. */
import leven from 'leven'
import { writeJson } from '../../protocol/json.js'
import type { ModelSchema } from '../../protocol/models.js'
import { safePart, unreserved } from '../../protocol/output-names.js'
import { isObject } from '../../protocol/parse.js'
import { didYouMean, shortened } from '../../protocol/text.js'
import type { Path } from './parse.js'
import {
  type Fields,
  isParameter,
  type ReportProblem,
  ROW_FIELDS,
  type Sections,
  unknownMessage,
  type WrittenRow,
} from './row.js'

/** Returns the schema of a run, if it is known. */
type SchemaOf = (fields: Fields, defaults: Fields) => ModelSchema | undefined

/** The value of each key, in the order of the keys. */
type Combination = ReadonlyMap<string, unknown>
type Keys = ReadonlyMap<string, readonly unknown[]>

/** Maximum number of combinations of a matrix. */
const MAX_COMBINATIONS = 1_000
/** The same before `exclude`, which looks at each of them. */
const MAX_PRODUCT = 100_000

/** Returns an empty list for a matrix that is not valid, after the report of its problems. */
export function expandRow(
  { path, fields }: Sections['rows'][number],
  defaults: Fields,
  schemaOf: SchemaOf,
  report: ReportProblem,
): readonly WrittenRow[] {
  const { matrix = null, exclude = null, ...own } = fields
  if (matrix === null) {
    if (exclude !== null) report([...path, 'exclude'], 'exclude needs a matrix in the same run')
    return [{ path, fields: own, defaults, template: undefined, report }]
  }
  let isValid = true
  const refuse: ReportProblem = (at, message) => {
    isValid = false
    report(at[0] === 'defaults' ? at : [...path, ...at], message)
  }
  const keys = keysOf(matrix, refuse)
  const combinations = isValid ? combinationsOf(keys, exclude, refuse) : []
  const name = own.name ?? own.output ?? defaults.output
  const template = { name: typeof name === 'string' ? name : undefined }
  // Most problems are repeated by the other combinations.
  const firstAt = new Map<string, Combination>()
  const rows = combinations.map((combination): WrittenRow => {
    const filled = fillRow(own, defaults, combination, schemaOf, refuse)
    return {
      ...filled,
      path,
      template,
      report(at, message) {
        const place = at.join('\n')
        if (!firstAt.has(place)) firstAt.set(place, combination)
        if (firstAt.get(place) === combination) report(at, `${message} (${describe(combination)})`)
      },
    }
  })
  const [first] = rows
  if (first !== undefined) refuseUnused([...keys.keys()], { ...defaults, ...own }, first, schemaOf, refuse)
  return isValid ? rows : []
}

/** Names that an output fills in itself, and of fields that a matrix cannot set. */
const FORBIDDEN_KEYS: readonly string[] = 'name output count matrix exclude include index ext id'.split(' ')
const VALID_KEY = /^[\p{L}_][\p{L}\p{M}\p{N}_-]*$/u

function keysOf(matrix: unknown, refuse: ReportProblem): Keys {
  if (!isObject(matrix) || Object.keys(matrix).length === 0) {
    refuse(['matrix'], 'matrix must be a map of lists, such as {animal: [fox, bear]}')
    return new Map()
  }
  const keys = new Map<string, readonly unknown[]>()
  for (const [key, values] of Object.entries(matrix)) {
    const at = ['matrix', key]
    if (FORBIDDEN_KEYS.includes(key) || !VALID_KEY.test(key))
      refuse(at, `"${shortened(key, 60)}" cannot be a key of the matrix: choose another name`)
    else if (!Array.isArray(values) || values.length === 0 || values.includes(null))
      refuse(at, `${key} must be a list of values`)
    else if (new Set(values.map(textOf)).size < values.length) refuse(at, `a value occurs twice in ${key}`)
    else keys.set(key, values)
  }
  return keys
}

function combinationsOf(keys: Keys, exclude: unknown, refuse: ReportProblem): readonly Combination[] {
  const product = [...keys.values()].reduce((count, { length }) => count * length, 1)
  if (product > MAX_PRODUCT) {
    refuse(['matrix'], `the matrix has ${product} combinations before exclude; the limit is ${MAX_PRODUCT}`)
    return []
  }
  let left: readonly Combination[] = [new Map()]
  for (const [key, values] of keys)
    left = left.flatMap((each) => values.map((value) => new Map(each).set(key, value)))
  if (exclude !== null && !Array.isArray(exclude))
    refuse(['exclude'], 'exclude must be a list of maps, such as [{animal: bear}]')
  for (const [at, entry] of (Array.isArray(exclude) ? exclude : []).entries()) {
    const wanted = isObject(entry) ? Object.entries(entry) : []
    const unknown = wanted.find(([key]) => !keys.has(key))
    const kept = left.filter((each) => wanted.some(([key, value]) => textOf(each.get(key)) !== textOf(value)))
    let problem: string | undefined
    if (wanted.length === 0)
      problem = 'each entry of exclude must be a map with keys of the matrix, such as {animal: bear}'
    else if (unknown !== undefined) problem = unknownMessage('unknown key', unknown[0], [...keys.keys()])
    else if (kept.length === left.length)
      problem = 'this entry of exclude matches no combination that the entries before it have left'
    else left = kept
    if (problem !== undefined) refuse(['exclude', at], problem)
  }
  if (left.length === 0) refuse(['exclude'], 'exclude leaves out every combination')
  if (left.length <= MAX_COMBINATIONS) return left
  refuse(['matrix'], `the matrix has ${left.length} combinations; the limit is ${MAX_COMBINATIONS}`)
  return []
}

/** Sets the fields that are keys of the matrix, and fills in the others. */
function fillRow(
  own: Fields,
  defaults: Fields,
  combination: Combination,
  schemaOf: SchemaOf,
  refuse: ReportProblem,
): Pick<WrittenRow, 'fields' | 'defaults'> {
  const fillField = (place: Path, field: string, value: unknown): unknown => {
    if (field === 'count') return value
    const put = (word: string) => lookUp(combination, word, (message) => refuse(place, message))
    return field === 'output' && typeof value === 'string' ? fillPath(value, put) : fill(value, put)
  }
  const filled = (fields: Fields, ...above: Path): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(fields).map(([field, value]) => [field, fillField([...above, field], field, value)]),
    )
  const inherited = Object.entries(defaults).filter(([name]) => !(name in own) && !combination.has(name))
  const fields = filled(own)
  const rest = filled(Object.fromEntries(inherited), 'defaults')
  const set = (key: string) => {
    if ((own[key] ?? null) !== null) refuse([key], `${key} is also a key of the matrix: remove one of them`)
    fields[key] = fillField([key], key, combination.get(key))
  }
  // Kind and model say what the other keys are.
  for (const key of combination.keys()) if (ROW_FIELDS.includes(key)) set(key)
  const schema = schemaOf(fields, rest)
  for (const [key, value] of combination)
    if (ROW_FIELDS.includes(key)) continue
    else if (isParameter(schema, key)) set(key)
    else if (![value].flatMap((each) => (isObject(each) ? Object.values(each) : [each])).every(isText))
      refuse(['matrix', key], `each value of ${key} must be a text, a number, or a map of them`)
  return { fields, defaults: rest }
}

/** A mistyped parameter would make runs of one input, and each would be paid for. */
function refuseUnused(
  keys: readonly string[],
  { name: _name, output: _output, label: _label, ...texts }: Fields,
  { fields, defaults }: WrittenRow,
  schemaOf: SchemaOf,
  refuse: ReportProblem,
): void {
  const text = writeJson(texts)
  const settable = Object.keys(schemaOf(fields, defaults)?.properties ?? {})
  for (const key of keys) {
    if (ROW_FIELDS.includes(key) || settable.includes(key)) continue
    const near = settable.find((each) => isMistyped(key, each))
    if (near !== undefined && !text.includes(`{${key}}`) && !text.includes(`{${key}.`))
      refuse(['matrix', key], `no text of the run uses {${key}}. Did you mean "${near}"?`)
  }
}

type Scalar = string | number | bigint | boolean

const isText = (value: unknown): value is Scalar =>
  ['string', 'number', 'bigint', 'boolean'].includes(typeof value)

/** The value that `{key}` stands for: a text, or the `name` of a map. */
const namedBy = (value: unknown): unknown => (isObject(value) ? value.name : value)

const textOf = (value: unknown): string => {
  const name = namedBy(value)
  return isText(name) ? String(name) : writeJson(value)
}

const describe = (combination: Combination): string =>
  [...combination].map(([key, value]) => `${key}: ${shortened(textOf(value), 60)}`).join(', ')

/** Returns the value of `{key}` or `{key.field}`. Undefined for other text in braces. */
function lookUp(
  combination: Combination,
  word: string,
  refuse: (message: string) => void,
): Scalar | undefined {
  const [key = '', field] = word.split(/\.(.*)/s)
  const value = combination.get(key)
  if (value === undefined) {
    // The user would pay for a text with a mistyped placeholder in it.
    const near = [...combination.keys()].find((each) => isMistyped(key.trim(), each))
    if (near !== undefined && !FORBIDDEN_KEYS.includes(key))
      refuse(`unknown placeholder {${word}}. Did you mean {${[near, field].filter(Boolean).join('.')}}?`)
    return undefined
  }
  const found = field === undefined ? namedBy(value) : isObject(value) ? value[field] : undefined
  if (isText(found)) return found
  const wanted = field ?? 'name'
  const names = isObject(value) ? Object.keys(value) : []
  refuse(
    `{${word}}: the value ${shortened(writeJson(value), 60)} of ${key} has no "${wanted}".${didYouMean(wanted, names)}`,
  )
  return undefined
}

/** Stricter than for required names: `{b}` in a prompt does not mean the key `a`. */
const isMistyped = (word: string, key: string): boolean =>
  word.length < 60 &&
  leven(word.toLowerCase(), key.toLowerCase()) <= Math.floor(Math.min(word.length, key.length) / 3)

type Put = (word: string) => Scalar | undefined

const BRACES = /\{([^{}\n]+)\}/g

/** A text that is a single placeholder gets the value with its type, such as `seed: "{seed}"`. */
function fill(value: unknown, put: Put): unknown {
  if (typeof value === 'string') {
    const [, only] = /^\{([^{}\n]+)\}$/.exec(value) ?? []
    if (only !== undefined) return put(only) ?? value
    // A YAML block ends with a line end that is not part of its text.
    return value.replace(BRACES, (whole, word: string) => String(put(word) ?? whole).replace(/\r?\n$/, ''))
  }
  if (Array.isArray(value)) return value.map((each: unknown) => fill(each, put))
  return isObject(value)
    ? Object.fromEntries(Object.entries(value).map(([name, each]) => [name, fill(each, put)]))
    : value
}

/** Makes each value safe as a part of a file name. */
const fillPath = (text: string, put: Put): string =>
  text.replace(/[^/]+/g, (component) => {
    const filled = component.replace(BRACES, (whole, word: string) => {
      const value = put(word)
      return value === undefined || value === '' ? (value ?? whole) : safePart(`_${value}`).slice(1)
    })
    return filled === component ? component : unreserved(filled)
  })
