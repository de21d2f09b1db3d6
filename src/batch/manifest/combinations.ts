/**
 * Reads one matrix: checks its keys and values, and returns its combinations without those that `exclude` removes.
 * Pure.
 */
import { writeJson } from '../../protocol/json.js'
import { shortened } from '../../protocol/text.js'
import {
  type Field,
  isNull,
  lostDigitsIn,
  type ManifestProblem,
  type MapNode,
  type Node,
  type Position,
  plainValue,
  type ReportProblem,
  type Scalar,
} from './nodes.js'
import { MAX_RUNS, type RowFields, unknownMessage } from './sections.js'

/** The value of each key, in the order of the keys. */
export type Combination = ReadonlyMap<string, Node>

export interface Matrix {
  readonly keys: MatrixKeys
  /** In order: the value of the last key changes fastest. */
  readonly combinations: readonly Combination[]
}

/** Maximum number of combinations before `exclude`, which checks each of them. */
const MAX_PRODUCT = 10 * MAX_RUNS

/**
 * Reads the matrix. If its keys or values are invalid, reports the problems and returns undefined. If only `exclude` is
 * invalid, returns the keys without combinations, so that the placeholders can still be checked.
 */
export function readMatrix(
  { at, value }: Field,
  exclude: Field | undefined,
  fields: RowFields,
  report: ReportProblem,
): Matrix | undefined {
  let isRefused = false
  const refuse: ReportProblem = (where, message) => {
    isRefused = true
    report(where, message)
  }
  const keys = readKeys(value, fields, refuse)
  const product = [...keys.values()].reduce((count, { length }) => count * length, 1)
  if (product > MAX_PRODUCT)
    refuse(at, `the matrix has ${product} combinations before exclude; the limit is ${MAX_PRODUCT}`)
  if (isRefused) return undefined
  const excludes = exclude === undefined ? [] : readExclude(exclude.value, keys, fields, refuse)
  if (isRefused) return { keys, combinations: [] }
  const combinations = remaining(combine(keys), excludes, refuse)
  if (combinations.length === 0) refuse(exclude?.at ?? at, 'exclude leaves out every combination')
  return { keys, combinations: isRefused ? [] : combinations }
}

function combine(keys: MatrixKeys): readonly Combination[] {
  let combinations: readonly Combination[] = [new Map()]
  for (const [key, values] of keys)
    combinations = combinations.flatMap((each) => values.map((value) => new Map(each).set(key, value)))
  return combinations
}

interface Exclude {
  readonly at: Position
  readonly values: Combination
}

function readExclude(
  node: Node,
  keys: MatrixKeys,
  fields: RowFields,
  report: ReportProblem,
): readonly Exclude[] {
  if (node.type !== 'list') {
    report(node.at, 'exclude must be a list of maps, such as [{animal: bear}]')
    return []
  }
  return node.items.flatMap((item) => {
    if (item.type === 'fields' && item.fields.size > 0)
      return [{ at: item.at, values: excludedValues(item, keys, fields, report) }]
    report(item.at, 'each entry of exclude must be a map with keys of the matrix, such as {animal: bear}')
    return []
  })
}

function excludedValues(
  { fields: excluded }: MapNode,
  keys: MatrixKeys,
  fields: RowFields,
  report: ReportProblem,
): Combination {
  const found = new Map<string, Node>()
  for (const [key, { at, value }] of excluded) {
    const values = keys.get(key)
    const match = values?.find((each) => idOf(key, each, fields) === idOf(key, value, fields))
    if (values === undefined) report(at, unknownMessage('unknown key', key, [...keys.keys()]))
    else if (match === undefined) report(value.at, unknownValue(key, value, values))
    else found.set(key, match)
  }
  return found
}

function unknownValue(key: string, value: Node, values: readonly Node[]): string {
  const known = values.flatMap((each) => namedBy(each)?.text ?? [])
  return shortened(
    unknownMessage(`unknown value of ${key}`, namedBy(value)?.text ?? 'a list or map', known),
    300,
  )
}

function remaining(
  all: readonly Combination[],
  excludes: readonly Exclude[],
  report: ReportProblem,
): readonly Combination[] {
  const used = new Set<Exclude>()
  const kept = all.filter((combination) => {
    const by = excludes.find(({ values }) =>
      [...values].every(([key, value]) => combination.get(key) === value),
    )
    if (by !== undefined) used.add(by)
    return by === undefined
  })
  for (const each of excludes)
    if (!used.has(each))
      report(each.at, 'this entry of exclude matches nothing that the entries before it have not left out')
  return kept
}

export type MatrixKeys = ReadonlyMap<string, readonly Node[]>

/** Placeholders that outputs may contain without a matrix. */
export const OUTPUT_PLACEHOLDERS: readonly string[] = ['name', 'kind', 'index', 'ext', 'id']

/**
 * Names that a matrix key cannot have. `kind` is allowed: it sets the field, and `{kind}` in an output has the same
 * value.
 */
const FORBIDDEN_KEYS: readonly string[] = 'name output count matrix exclude include index ext id'.split(' ')

const VALID_KEY = /^[\p{L}_][\p{L}\p{M}\p{N}_-]*$/u

/**
 * Message for `include`, which users of other tools expect. There it adds rows and also extends others, depending on
 * its keys.
 */
export const NO_INCLUDE = 'include is not supported: add a further row instead'

function readKeys(node: Node, fields: RowFields, report: ReportProblem): MatrixKeys {
  const keys = new Map<string, readonly Node[]>()
  if (node.type !== 'fields') report(node.at, 'matrix must be a map of lists, such as {animal: [fox, bear]}')
  else if (node.fields.size === 0)
    report(node.at, 'matrix is empty: add a key with its values, such as animal: [fox, bear]')
  else
    for (const [key, { at, value }] of node.fields) {
      const wrong = keyProblem(key)
      if (wrong === undefined) keys.set(key, readValues(key, value, fields, report))
      else report(at, wrong)
    }
  return keys
}

function keyProblem(key: string): string | undefined {
  if (key === 'include') return NO_INCLUDE
  if (key === 'exclude') return 'exclude belongs in the row, beside matrix'
  if (FORBIDDEN_KEYS.includes(key))
    return `${key} cannot be a key of the matrix: choose another key, and write it in name or output, such as "icon-{animal}"`
  return VALID_KEY.test(key)
    ? undefined
    : `"${shortened(key, 60)}" is not a valid key: it may contain letters, digits, _ and -, and starts with a letter`
}

function readValues(key: string, node: Node, fields: RowFields, report: ReportProblem): readonly Node[] {
  if (node.type !== 'list' || node.items.length === 0) {
    report(node.at, node.type === 'list' ? `${key} has no values` : `${key} must be a list of values`)
    return []
  }
  const seen = new Set<string>()
  for (const value of node.items) {
    const wrong = valueProblem(key, value, fields)
    const id = idOf(key, value, fields)
    if (wrong !== undefined) report(wrong, wrong.message)
    else if (seen.has(id)) report(value.at, `${labelOf(value)} occurs twice in ${key}`)
    seen.add(id)
  }
  return node.items
}

function valueProblem(key: string, value: Node, fields: RowFields): ManifestProblem | undefined {
  const problem = (message: string, { at } = value): ManifestProblem => ({ ...at, message })
  if (isNull(value)) return problem(`${key} contains an empty value`)
  if (fields.isList(key))
    return value.type === 'list'
      ? undefined
      : problem(`each value of ${key} must be a list, such as [[a.png], [b.png]]`)
  if (key === 'input' && value.type === 'scalar') return problem('each value of input must be a map')
  if (key !== 'input' && fields.isJson(key)) return lostDigitsIn(value).next().value
  if (value.type === 'list') return problem(`a value of ${key} cannot be a list`)
  if (key === 'input') return lostDigitsIn(value).next().value
  if (value.type !== 'fields') return undefined
  if (fields.has(key))
    return problem(
      `the values of ${key} set this field of the row and cannot be maps: ` +
        `choose another key, such as look, and write {look.text} in ${key}`,
    )
  for (const [name, field] of value.fields)
    if (field.value.type !== 'scalar' || isNull(field.value))
      return problem(`${name} must be a text, a number or a boolean`, field.value)
  return undefined
}

/** Returns the value of `{key}`: the scalar itself, or the `name` of a map. */
export function namedBy(value: Node | undefined): Scalar | undefined {
  const found = value?.type === 'fields' ? value.fields.get('name')?.value : value
  return found?.type === 'scalar' && !isNull(found) ? found : undefined
}

/** Id of a value. Equal for values that neither a placeholder nor `exclude` can tell apart. */
function idOf(key: string, value: Node, { isJson }: RowFields): string {
  // In JSON, `name` is a field like any other.
  const name = isJson(key) ? undefined : namedBy(value)
  return name === undefined ? writeJson(sorted(plainValue(value))) : `name ${name.text}`
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, each]) => ({ name, value: sorted(each) }))
}

/** Returns the text for a value in messages. */
function labelOf(value: Node): string {
  const name = namedBy(value)
  return name === undefined ? 'this value' : `"${shortened(name.text, 60)}"`
}
