/** Expands a run with a matrix into one run for each combination: the product, and a replacement of text, before runs are checked. */
import leven from 'leven'
import { writeJson } from '../../protocol/json.js'
import type { ModelSchema } from '../../protocol/models.js'
import { safePart, unreserved } from '../../protocol/output-names.js'
import { isObject } from '../../protocol/parse.js'
import { didYouMean, nearest, shortened } from '../../protocol/text.js'
import type { Path } from './format.js'
import {
  type Fields,
  isParameter,
  type ReportProblem,
  ROW_FIELDS,
  type Sections,
  unknownMessage,
  type WrittenRow,
} from './sections.js'

/** Returns the schema of a run, if it is known. */
type SchemaOf = (fields: Fields, defaults: Fields) => ModelSchema | undefined

/** The value of each key, in the order of the keys. */
type Combination = ReadonlyMap<string, unknown>

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
  const problems: [Path, string][] = []
  const refuse: ReportProblem = (at, message) => problems.push([[...path, ...at], message])
  const refuseDefault: ReportProblem = (at, message) => problems.push([['defaults', ...at], message])
  const keys = keysOf(matrix, refuse)
  const combinations = problems.length > 0 ? [] : combinationsOf(keys, exclude, refuse)
  const name = own.name ?? own.output ?? defaults.output
  const template = { name: typeof name === 'string' ? name : undefined }
  const firstAt = new Map<string, Combination>()
  const used = new Set<string>()
  const rows = combinations.map((combination): WrittenRow => {
    // Most problems are repeated by the other combinations. A value of the matrix has a line of its own.
    const reportHere: ReportProblem = (at, message) => {
      const [field = '', ...rest] = at.slice(path.length)
      const index = keys.get(String(field))?.indexOf(combination.get(String(field)))
      const place = index === undefined ? at : [...path, 'matrix', field, index, ...rest]
      const id = place.join('\n')
      if (!firstAt.has(id)) firstAt.set(id, combination)
      if (firstAt.get(id) === combination) report(place, `${message} (${describe(combination)})`)
    }
    const filled = fillRow({ own, defaults, combination, used, refuse, refuseDefault }, schemaOf)
    return { path, ...filled, template, report: reportHere }
  })
  const settable = rows[0] && Object.keys(schemaOf(rows[0].fields, rows[0].defaults)?.properties ?? {})
  for (const key of keys.keys()) {
    // All runs would have the same input, and each would be paid for.
    const near = used.has(key) ? undefined : nearest(key, settable ?? [])
    if (near !== undefined && isMistyped(key, near))
      refuse(['matrix', key], `no text of the run uses {${key}}. Did you mean "${near}"?`)
  }
  for (const [at, message] of problems) report(at, message)
  return problems.length > 0 ? [] : rows
}

/** Names that an output fills in itself, and of fields that a matrix cannot set. */
const FORBIDDEN_KEYS: readonly string[] = 'name output count matrix exclude include index ext id'.split(' ')
const OUTPUT_PLACEHOLDERS: readonly string[] = ['name', 'kind', 'index', 'ext', 'id']
const VALID_KEY = /^[\p{L}_][\p{L}\p{M}\p{N}_-]*$/u

function keysOf(matrix: unknown, refuse: ReportProblem): ReadonlyMap<string, readonly unknown[]> {
  const keys = new Map<string, readonly unknown[]>()
  if (!isObject(matrix) || Object.keys(matrix).length === 0) {
    refuse(['matrix'], 'matrix must be a map of lists, such as {animal: [fox, bear]}')
    return keys
  }
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

function combinationsOf(
  keys: ReadonlyMap<string, readonly unknown[]>,
  exclude: unknown,
  refuse: ReportProblem,
): readonly Combination[] {
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
    const kept = left.filter(
      (each) => !wanted.every(([key, value]) => textOf(each.get(key)) === textOf(value)),
    )
    if (unknown !== undefined)
      refuse(['exclude', at, unknown[0]], unknownMessage('unknown key', unknown[0], [...keys.keys()]))
    else if (wanted.length === 0)
      refuse(
        ['exclude', at],
        'each entry of exclude must be a map with keys of the matrix, such as {animal: bear}',
      )
    else if (kept.length === left.length)
      refuse(
        ['exclude', at],
        'this entry of exclude matches no combination that the entries before it have left',
      )
    else left = kept
  }
  if (left.length === 0) refuse(['exclude'], 'exclude leaves out every combination')
  if (left.length > MAX_COMBINATIONS)
    refuse(['matrix'], `the matrix has ${left.length} combinations; the limit is ${MAX_COMBINATIONS}`)
  return left.length > MAX_COMBINATIONS ? [] : left
}

interface FillParts {
  readonly own: Fields
  readonly defaults: Fields
  readonly combination: Combination
  /** Gets the keys that change the input. */
  readonly used: Set<string>
  readonly refuse: ReportProblem
  readonly refuseDefault: ReportProblem
}

const NO_INPUT: readonly string[] = ['name', 'output', 'label']

/** Sets the fields that are keys of the matrix, and fills in the others. */
function fillRow(parts: FillParts, schemaOf: SchemaOf): Pick<WrittenRow, 'fields' | 'defaults'> {
  const { own, defaults, combination, used, refuse, refuseDefault } = parts
  const fillField = (field: string, value: unknown, refuseAt: ReportProblem = refuse): unknown => {
    const put = (word: string): Scalar | undefined => {
      if (field === 'output' && OUTPUT_PLACEHOLDERS.includes(word) && !combination.has(word)) return undefined
      const [key = '', ofMap] = word.split(/\.(.*)/s)
      if (combination.has(key) && !NO_INPUT.includes(field)) used.add(key)
      const found = lookUp(combination, key, ofMap, word)
      if (typeof found === 'object') refuseAt([field], found.problem)
      return typeof found === 'object' ? undefined : found
    }
    return field === 'output' && typeof value === 'string' ? fillPath(value, put) : fill(value, put)
  }
  const filled = (fields: Fields, refuseAt?: ReportProblem): Record<string, unknown> =>
    Object.fromEntries(
      Object.entries(fields).map(([field, value]) => [
        field,
        field === 'count' ? value : fillField(field, value, refuseAt),
      ]),
    )
  const set = (key: string) => {
    if ((own[key] ?? null) !== null) refuse([key], `${key} is also a key of the matrix: remove one of them`)
    used.add(key)
    return fillField(key, combination.get(key))
  }
  const isOwn = (name: string) => name in own || combination.has(name)
  const fields = filled(own)
  const inherited = Object.fromEntries(Object.entries(defaults).filter(([name]) => !isOwn(name)))
  const rest = filled(inherited, refuseDefault)
  for (const key of combination.keys()) if (ROW_FIELDS.includes(key)) fields[key] = set(key)
  const schema = schemaOf(fields, rest)
  for (const [key, value] of combination)
    if (ROW_FIELDS.includes(key)) continue
    else if (isParameter(schema, key)) fields[key] = set(key)
    else if (!isText(value) && !(isObject(value) && Object.values(value).every(isText)))
      refuse(['matrix', key], `each value of ${key} must be a text, a number, or a map of them`)
  return { fields, defaults: rest }
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

/** Returns undefined for other text in braces, and a problem for a placeholder that has no value. */
function lookUp(
  combination: Combination,
  key: string,
  field: string | undefined,
  word: string,
): Scalar | { readonly problem: string } | undefined {
  if (!combination.has(key)) {
    // The user would pay for a text with a mistyped placeholder in it.
    const near = word.length > 60 ? undefined : nearest(key.trim(), [...combination.keys()])
    if (near === undefined || !isMistyped(key.trim(), near)) return undefined
    const meant = field === undefined ? near : `${near}.${field}`
    return { problem: `unknown placeholder {${word}}. Did you mean {${meant}}?` }
  }
  const value = combination.get(key)
  const found = field === undefined ? namedBy(value) : isObject(value) ? value[field] : undefined
  if (isText(found)) return found
  const names = isObject(value) ? Object.keys(value) : []
  return {
    problem: `{${word}}: the value ${shortened(writeJson(value), 60)} of ${key} has no "${field ?? 'name'}".${didYouMean(field ?? 'name', names)}`,
  }
}

/** Stricter than for required names: `{b}` in a prompt does not mean the key `a`. */
const isMistyped = (word: string, key: string): boolean =>
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

/** Makes each value safe as a part of a file name. Only at the beginning of a name, a dot or dash is unsafe. */
const fillPath = (text: string, put: Put): string =>
  text.replace(/[^/]+/g, (component) => {
    const filled = component.replace(BRACES, (whole, word: string, at: number) => {
      const value = put(word)
      if (value === undefined || value === '') return value ?? whole
      return at > 0 ? safePart(`_${value}`).slice(1) : safePart(String(value))
    })
    return filled === component ? component : unreserved(filled)
  })
