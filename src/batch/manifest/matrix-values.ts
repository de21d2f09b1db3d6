/** The keys of a matrix with their values, checked. Pure. */
import { shortened } from '../../protocol/text.js'
import { isNull, lostDigitsIn, type Node, plainValue, type Scalar } from './nodes.js'
import type { ManifestProblem, ReportProblem } from './position.js'
import { LIST_FIELDS, ROW_FIELDS } from './row-fields.js'

export type MatrixKeys = ReadonlyMap<string, readonly Node[]>

/** Placeholders of outputs that have a value without a matrix. */
export const OUTPUT_PLACEHOLDERS: readonly string[] = ['name', 'kind', 'index', 'ext', 'id']

/** `kind` is not one of them: as a key it sets the field, and `{kind}` in an output stands for the same text. */
export const FORBIDDEN_KEYS = [
  'name',
  'output',
  'count',
  'matrix',
  'exclude',
  'include',
  'index',
  'ext',
  'id',
] as const

export const KEY_PATTERN = '^[\\p{L}_][\\p{L}\\p{M}\\p{N}_-]*$'
const VALID_KEY = new RegExp(KEY_PATTERN, 'u')

/** Users of other tools expect `include`, which there adds rows and extends others, depending on its keys. */
export const NO_INCLUDE = 'include is not supported: add a further row instead'

export const setsField = (key: string): boolean => ROW_FIELDS.includes(key)

export function readKeys(node: Node, report: ReportProblem): MatrixKeys {
  const keys = new Map<string, readonly Node[]>()
  if (node.type !== 'fields') report(node.at, 'matrix must be a map of lists, such as {animal: [fox, bear]}')
  else if (node.fields.size === 0)
    report(node.at, 'matrix is empty: add a key with its values, such as animal: [fox, bear]')
  else
    for (const [key, { at, value }] of node.fields) {
      const wrong = keyProblem(key)
      if (wrong === undefined) keys.set(key, readValues(key, value, report))
      else report(at, wrong)
    }
  return keys
}

function keyProblem(key: string): string | undefined {
  switch (key as (typeof FORBIDDEN_KEYS)[number]) {
    case 'include':
      return NO_INCLUDE
    case 'exclude':
      return 'exclude belongs in the row, beside matrix'
    case 'name':
    case 'output':
      return `matrix cannot set ${key}: choose another key, and write it in ${key}, such as ${key}: "icon-{animal}"`
    case 'count':
    case 'matrix':
      return `matrix cannot set ${key}`
    case 'index':
    case 'ext':
    case 'id':
      return `{${key}} already has a meaning in output: choose another key`
    default:
      return VALID_KEY.test(key)
        ? undefined
        : `"${shortened(key, 60)}" is not a valid key: it may contain letters, digits, _ and -, and starts with a letter`
  }
}

function readValues(key: string, node: Node, report: ReportProblem): readonly Node[] {
  if (node.type !== 'list' || node.items.length === 0) {
    report(node.at, node.type === 'list' ? `${key} has no values` : `${key} must be a list of values`)
    return []
  }
  const seen = new Set<string>()
  for (const value of node.items) {
    const wrong = valueProblem(key, value)
    const id = idOf(key, value)
    if (wrong !== undefined) report(wrong, wrong.message)
    else if (seen.has(id)) report(value.at, `${labelOf(value)} occurs twice in ${key}`)
    seen.add(id)
  }
  return node.items
}

function valueProblem(key: string, value: Node): ManifestProblem | undefined {
  const problem = (message: string, { at } = value): ManifestProblem => ({ ...at, message })
  if (isNull(value)) return problem(`${key} contains an empty value`)
  if (LIST_FIELDS.includes(key))
    return value.type === 'list'
      ? undefined
      : problem(`each value of ${key} must be a list, such as [[a.png], [b.png]]`)
  if (value.type === 'list') return problem(`a value of ${key} cannot be a list`)
  if (key === 'input')
    return value.type === 'fields'
      ? lostDigitsIn(value).next().value
      : problem('each value of input must be a map')
  if (value.type !== 'fields') return undefined
  if (setsField(key))
    return problem(
      `the values of ${key} set this field of the row and cannot be maps: choose another key, such as look, and write {look.text} in ${key}`,
    )
  for (const [name, field] of value.fields)
    if (field.value.type !== 'scalar' || isNull(field.value))
      return problem(`${name} must be a text, a number or a boolean`, field.value)
  return undefined
}

/** What `{key}` stands for: a scalar itself, the `name` of a map. */
export function namedBy(value: Node | undefined): Scalar | undefined {
  const found = value?.type === 'fields' ? value.fields.get('name')?.value : value
  return found?.type === 'scalar' && !isNull(found) ? found : undefined
}

/** Equal for values that neither a placeholder nor `exclude` can tell apart. */
export function idOf(key: string, value: Node): string {
  // The `name` in an input is a parameter like any other.
  const name = key === 'input' ? undefined : namedBy(value)
  return name === undefined ? JSON.stringify(sorted(plainValue(value))) : `name ${name.text}`
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, each]) => ({ name, value: sorted(each) }))
}

/** A value in a message. */
export function labelOf(value: Node): string {
  const name = namedBy(value)
  return name === undefined ? 'this value' : `"${shortened(name.text, 60)}"`
}
