/** The combinations of a matrix, without those that `exclude` leaves out. Pure. */
import { nearest } from '../../protocol/nearest.js'
import { shortened } from '../../protocol/text.js'
import { idOf, labelOf, type MatrixKeys, namedBy, readKeys } from './matrix-values.js'
import type { Field, Fields, Node } from './nodes.js'
import type { Position, ReportProblem } from './position.js'
import { MAX_RUNS } from './row-fields.js'
import { unknownMessage } from './sections.js'

/** A value for each key, in the order of the keys. */
export type Combination = ReadonlyMap<string, Node>

export interface Matrix {
  readonly keys: MatrixKeys
  /** The last key changes fastest. */
  readonly combinations: readonly Combination[]
}

/** Counted before `exclude`, which looks at each combination. */
const MAX_PRODUCT = 10 * MAX_RUNS

/**
 * Undefined when the keys or values are wrong, which has been reported. Without combinations when `exclude` is: then the
 * placeholders can still be checked.
 */
export function readMatrix(
  { at, value }: Field,
  exclude: Field | undefined,
  report: ReportProblem,
): Matrix | undefined {
  let isRefused = false
  const refuse: ReportProblem = (where, message) => {
    isRefused = true
    report(where, message)
  }
  const keys = readKeys(value, refuse)
  const product = [...keys.values()].reduce((count, { length }) => count * length, 1)
  if (product > MAX_PRODUCT)
    refuse(at, `the matrix has ${product} combinations before exclude; the limit is ${MAX_PRODUCT}`)
  if (isRefused) return undefined
  const excludes = exclude === undefined ? [] : readExclude(exclude.value, keys, refuse)
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

function readExclude(node: Node, keys: MatrixKeys, report: ReportProblem): readonly Exclude[] {
  if (node.type !== 'list') {
    report(node.at, 'exclude must be a list of maps, such as [{animal: bear}]')
    return []
  }
  return node.items.flatMap((item) => {
    if (item.type === 'fields' && item.fields.size > 0)
      return [{ at: item.at, values: excludedValues(item, keys, report) }]
    report(item.at, 'each entry of exclude must be a map with keys of the matrix, such as {animal: bear}')
    return []
  })
}

function excludedValues({ fields }: Fields, keys: MatrixKeys, report: ReportProblem): Combination {
  const found = new Map<string, Node>()
  for (const [key, { at, value }] of fields) {
    const values = keys.get(key)
    const match = values?.find((each) => idOf(key, each) === idOf(key, value))
    if (values === undefined) report(at, unknownMessage('unknown key', key, [...keys.keys()]))
    else if (match === undefined) report(value.at, unknownValue(key, value, values))
    else found.set(key, match)
  }
  return found
}

const MAX_LISTED = 12

function unknownValue(key: string, value: Node, values: readonly Node[]): string {
  const name = namedBy(value)
  if (name === undefined && value.type === 'list')
    return `an entry of exclude has one value for each key: add an entry for each value of ${key}`
  const known = values.flatMap((each) => namedBy(each)?.text ?? [])
  const near = name === undefined ? undefined : nearest(name.text, known)
  const listed = known.length <= MAX_LISTED ? `: ${shortened(known.join(', '), 300)}` : ''
  return `${labelOf(value)} is not a value of ${key}${near === undefined ? listed : `. Did you mean "${near}"?`}`
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
