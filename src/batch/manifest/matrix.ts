/** The matrix of a run: the combinations of its values, and the replacement of `{key}` in texts. Independent of models. */
import leven from 'leven'
import { writeJson } from '../../protocol/json.js'
import { fillParts, safePart } from '../../protocol/output-names.js'
import { isObject } from '../../protocol/parse.js'
import { shortened } from '../../protocol/text.js'
import { type Report, unknownMessage } from './parse.js'

/** The value of each key, in the order of the keys. */
export type Combination = ReadonlyMap<string, unknown>

/** Maximum number of combinations of a matrix. */
const MAX_COMBINATIONS = 1_000
/** The same before `exclude`, which looks at each of them. */
const MAX_PRODUCT = 100_000

/** Returns an empty list for a matrix that is not valid, after the report of its problems. */
export function combinationsOf(matrix: unknown, exclude: unknown, report: Report): readonly Combination[] {
  const keys = keysOf(matrix, report)
  if (keys === undefined) return []
  const product = [...keys.values()].reduce((count, { length }) => count * length, 1)
  if (product > MAX_PRODUCT) {
    report(`the matrix has ${product} combinations before exclude; the limit is ${MAX_PRODUCT}`, 'matrix')
    return []
  }
  let all: readonly Combination[] = [new Map()]
  for (const [key, values] of keys)
    all = all.flatMap((each) => values.map((value) => new Map(each).set(key, value)))
  const left = excluded(all, exclude ?? [], [...keys.keys()], report)
  if (left.length === 0) report('exclude leaves out every combination', 'exclude')
  if (left.length <= MAX_COMBINATIONS) return left
  report(`the matrix has ${left.length} combinations; the limit is ${MAX_COMBINATIONS}`, 'matrix')
  return []
}

/** Names that an output fills in itself, and of fields that a matrix cannot set. */
const FORBIDDEN_KEYS: readonly string[] = 'name output count matrix exclude index ext'.split(' ')
const VALID_KEY = /^[\p{L}_][\p{L}\p{M}\p{N}_-]*$/u

function keysOf(matrix: unknown, report: Report): ReadonlyMap<string, readonly unknown[]> | undefined {
  const keys = new Map<string, readonly unknown[]>()
  const given = isObject(matrix) ? Object.entries(matrix) : []
  for (const [key, values] of given) {
    let problem: string | undefined
    if (FORBIDDEN_KEYS.includes(key) || !VALID_KEY.test(key))
      problem = `"${shortened(key, 60)}" cannot be a key of the matrix: choose another name`
    else if (!Array.isArray(values) || values.length === 0 || values.includes(null))
      problem = `${key} must be a list of values`
    else if (new Set(values.map(textOf)).size < values.length) problem = `a value occurs twice in ${key}`
    else keys.set(key, values)
    if (problem !== undefined) report(problem, 'matrix', key)
  }
  if (given.length === 0) report('matrix must be a map of lists, such as {animal: [fox, bear]}', 'matrix')
  return keys.size > 0 && keys.size === given.length ? keys : undefined
}

/** Returns the combinations that `exclude` does not leave out. */
function excluded(
  all: readonly Combination[],
  exclude: unknown,
  keys: readonly string[],
  report: Report,
): readonly Combination[] {
  const usage = 'exclude must be a list of maps with keys of the matrix, such as [{animal: bear}]'
  if (!Array.isArray(exclude)) {
    report(usage, 'exclude')
    return all
  }
  let left = all
  for (const [at, entry] of exclude.entries()) {
    const wanted = isObject(entry) ? Object.entries(entry) : []
    const unknown = wanted.find(([key]) => !keys.includes(key))
    const kept = left.filter((each) => wanted.some(([key, value]) => textOf(each.get(key)) !== textOf(value)))
    if (wanted.length === 0) report(usage, 'exclude', at)
    else if (unknown !== undefined) report(unknownMessage('unknown key', unknown[0], keys), 'exclude', at)
    else if (kept.length === left.length)
      report(
        'this entry of exclude matches no combination that the entries before it have left',
        'exclude',
        at,
      )
    else left = kept
  }
  return left
}

type Scalar = string | number | bigint | boolean

const isText = (value: unknown): value is Scalar =>
  ['string', 'number', 'bigint', 'boolean'].includes(typeof value)

/** Whether texts can use the value: as `{key}`, or as `{key.field}` of a map. */
export const isUsableInText = (value: unknown): boolean => isText(value) || isObject(value)

/** The value that `{key}` stands for: a text, or the `name` of a map. */
const namedBy = (value: unknown): unknown => (isObject(value) ? value.name : value)

const textOf = (value: unknown): string => {
  const name = namedBy(value)
  return isText(name) ? String(name) : writeJson(value)
}

export const describe = (combination: Combination): string =>
  [...combination].map(([key, value]) => `${key}: ${shortened(textOf(value), 60)}`).join(', ')

const BRACES = /\{([^{}\n]+)\}/g

/** Returns a field with the values of a combination. In `output`, each value becomes a safe part of a file name. */
export function fillField(
  field: string,
  value: unknown,
  combination: Combination,
  report: (message: string) => void,
): unknown {
  const put = (word: string) => lookUp(combination, word, report)
  if (field !== 'output' || typeof value !== 'string') return fill(value, put)
  return fillParts(value, (part) =>
    part.replace(BRACES, (whole, word: string) => {
      const found = put(word)
      if (found === undefined) return whole
      return found === '' ? '' : safePart(`_${found}`).slice(1)
    }),
  )
}

/** Fills in a text, or the texts of a list. A text that is a single placeholder becomes the value with its type. */
function fill(value: unknown, put: (word: string) => Scalar | undefined): unknown {
  if (typeof value === 'string') {
    const [, only] = /^\{([^{}\n]+)\}$/.exec(value) ?? []
    if (only !== undefined) return put(only) ?? value
    // A YAML block ends with a line end that is not part of its text.
    return value.replace(BRACES, (whole, word: string) => String(put(word) ?? whole).replace(/\r?\n$/, ''))
  }
  return Array.isArray(value) ? value.map((each: unknown) => fill(each, put)) : value
}

/** Stricter than for names that must exist: `{b}` in a prompt does not mean the key `a`. */
const isMistyped = (word: string, key: string): boolean =>
  word.length < 60 &&
  leven(word.toLowerCase(), key.toLowerCase()) <= Math.floor(Math.min(word.length, key.length) / 3)

/** Returns the value of `{key}` or `{key.field}`. Undefined for other text in braces. */
function lookUp(
  combination: Combination,
  word: string,
  report: (message: string) => void,
): Scalar | undefined {
  const [key = '', field] = word.split(/\.(.*)/s)
  const value = combination.get(key)
  if (value === undefined) {
    // The user would pay for a text with a mistyped placeholder in it.
    const near = [...combination.keys()].find((each) => isMistyped(key.trim(), each))
    if (near !== undefined && !FORBIDDEN_KEYS.includes(key))
      report(`unknown placeholder {${word}}. Did you mean {${[near, field].filter(Boolean).join('.')}}?`)
    return undefined
  }
  const found = field === undefined ? namedBy(value) : isObject(value) ? value[field] : undefined
  if (isText(found)) return found
  const shown = shortened(writeJson(value), 60)
  report(`{${word}}: the value ${shown} of ${key} has no "${field ?? 'name'}".`)
  return undefined
}
