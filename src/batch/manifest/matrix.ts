/** Expands each row with a matrix into one row per combination, before the rest of the row is read. Pure. */
import { writeJson } from '../../protocol/json.js'
import { nearest, shortened } from '../../protocol/text.js'
import { type Combination, type Matrix, namedBy, readMatrix } from './combinations.js'
import {
  type Field,
  type FieldMap,
  isNull,
  type MapNode,
  type Node,
  type Position,
  plainValue,
  type ReportProblem,
} from './nodes.js'
import type { Naming } from './output-paths.js'
import { createPlaceholders, isNear, type Placeholders } from './placeholders.js'
import { schemasOfRow } from './row-model.js'
import {
  fieldsOf,
  isOfMatrix,
  MAX_COMBINATIONS,
  MAX_RUNS,
  ROW_FIELDS,
  type RowFields,
  type Sections,
} from './sections.js'

/** Manifest row with a matrix. All its combinations share this object. */
export interface RowTemplate {
  /** Name as written, with its placeholders. The output, if the row has no name. */
  readonly name: string | undefined
}

interface ExpandedRow {
  readonly node: MapNode
  /** Sections with the placeholders of the defaults filled in. */
  readonly sections: Sections
  readonly report: ReportProblem
  /** Undefined for a row without a matrix. */
  readonly template: RowTemplate | undefined
  /** Keys with several values that set a parameter only because of a document: they could only name the rows before. */
  readonly addedKeys?: readonly string[]
}

interface ExpandOptions {
  readonly naming: Naming
  /** `--max-runs`: allows more combinations than `MAX_COMBINATIONS`. */
  readonly maxRuns?: number | undefined
}

/** Leaves out rows whose matrix is invalid. */
export function expandRows(
  sections: Sections,
  { naming, maxRuns }: ExpandOptions,
  report: ReportProblem,
): readonly ExpandedRow[] {
  const matrices = readMatrices(sections, report)
  const rows: ExpandedRow[] = []
  if (areTooMany(matrices, maxRuns, report)) return rows
  for (const node of sections.rows) {
    const matrix = matrices.get(node)
    const expanded = matrix && expand({ node, matrix, sections, naming, report })
    if (expanded !== undefined) rows.push(...expanded)
    else if (presentField(node, 'matrix') === undefined)
      rows.push({ node, sections, report, template: undefined })
  }
  return rows
}

/** Returns the field. `null` means the same as an absent field. */
function presentField({ fields }: MapNode, name: string): Field | undefined {
  const field = fields.get(name)
  return field === undefined || isNull(field.value) ? undefined : field
}

/** A matrix, and the fields that its keys can set. */
interface FieldMatrix extends Matrix {
  readonly fields: RowFields
}

/**
 * Reads the matrix of each row. Stops when there are too many combinations: the combinations of 10,000 rows would not
 * fit into memory.
 */
function readMatrices(sections: Sections, report: ReportProblem): ReadonlyMap<MapNode, FieldMatrix> {
  const matrices = new Map<MapNode, FieldMatrix>()
  let total = 0
  for (const node of sections.rows) {
    const field = presentField(node, 'matrix')
    const exclude = presentField(node, 'exclude')
    if (field === undefined) {
      if (exclude !== undefined) report(exclude.at, 'exclude needs a matrix in the same row')
    } else if (total <= MAX_RUNS) {
      const fields = fieldsOf(schemasOfRow(node, sections), isUnused(node, sections))
      const matrix = readMatrix(field, exclude, fields, report)
      if (matrix !== undefined) matrices.set(node, { ...matrix, fields })
      total += matrix?.combinations.length ?? 0
    }
  }
  return matrices
}

/**
 * Returns whether no text of the row's input has a placeholder for the key. Only such a key sets a parameter of a document:
 * a manifest with {style} in its prompts means the same when its model gets a parameter `style`.
 */
function isUnused({ fields }: MapNode, { defaults }: Sections): (key: string) => boolean {
  const inputs = [...defaults, ...fields].filter(([name]) => !NO_INPUT.includes(name))
  const texts = writeJson(inputs.map(([, { value }]) => plainValue(value)))
  return (key) => !texts.includes(`{${key}}`) && !texts.includes(`{${key}.`)
}

function areTooMany(
  matrices: ReadonlyMap<MapNode, FieldMatrix>,
  maxRuns: number | undefined,
  report: ReportProblem,
): boolean {
  const limit = Math.min(MAX_RUNS, Math.max(MAX_COMBINATIONS, maxRuns ?? 0))
  let total = 0
  let over: Position | undefined
  for (const [node, { combinations }] of matrices) {
    total += combinations.length
    if (total > limit) over ??= presentField(node, 'matrix')?.at
  }
  if (over === undefined) return false
  report(
    over,
    total > MAX_RUNS
      ? `the matrices of the manifest have more than ${MAX_RUNS} combinations`
      : `the matrices of the manifest have ${total} combinations; the limit is ${limit} (--max-runs ${total} allows them)`,
  )
  return true
}

interface MatrixRow {
  readonly node: MapNode
  readonly matrix: FieldMatrix
  readonly sections: Sections
  readonly naming: Naming
  readonly report: ReportProblem
}

const NO_INPUT: readonly string[] = ['name', 'output', 'count', 'label', 'matrix', 'exclude']

/** Fields whose placeholders are not filled in: `count` is a number, and expanded rows do not have the others. */
const NOT_FILLED: readonly string[] = ['count', 'matrix', 'exclude']

/** Expands one row. If a placeholder cannot be filled in, reports the problem and returns undefined. */
function expand(row: MatrixRow): readonly ExpandedRow[] | undefined {
  const { node, matrix, sections, naming, report } = row
  const { defaults } = sections
  const placeholders = createPlaceholders(matrix.keys, matrix.fields, naming)
  const setting = settingKeys(row)
  const own = new Map([...node.fields].filter(([name]) => !setting.has(name) && !isOfMatrix(name)))
  const inherited = new Map([...defaults].filter(([name]) => !setting.has(name) && !own.has(name)))
  if (!checkTexts(row, placeholders, [...own, ...inherited, ...valuesOf(setting, matrix)])) return undefined

  const fill = (fields: FieldMap, combination: Combination): FieldMap =>
    new Map(
      [...fields].map(([name, { at, value }]) => {
        const filled = NOT_FILLED.includes(name) ? value : placeholders.fill(name, value, combination)
        return [name, { at, value: filled }]
      }),
    )
  const valuesSet = (combination: Combination): FieldMap =>
    new Map(
      [...setting].flatMap(([key, at]) => {
        const value = combination.get(key)
        return value === undefined ? [] : [[key, { at, value }]]
      }),
    )
  const template = {
    name: writtenText(own.get('name')) ?? writtenText(own.get('output') ?? inherited.get('output')),
  }
  const reportFor = firstAtEachPosition(report)
  const addedKeys = [...setting.keys()].filter(
    (key) => !ROW_FIELDS.includes(key) && (matrix.keys.get(key)?.length ?? 0) > 1,
  )
  return matrix.combinations.map((combination) => ({
    node: { ...node, fields: fill(new Map([...own, ...valuesSet(combination)]), combination) },
    sections: { ...sections, defaults: fill(defaults, combination) },
    report: reportFor(combination),
    template,
    addedKeys,
  }))
}

/** Returns the matrix keys that set a field of the row, with their positions. */
function settingKeys({ node, matrix, report }: MatrixRow): ReadonlyMap<string, Position> {
  const keys = new Map<string, Position>()
  for (const key of matrix.keys.keys()) {
    if (!matrix.fields.has(key)) continue
    const own = presentField(node, key)
    if (own !== undefined) report(own.at, `${key} is also a key of the matrix: remove one of them`)
    keys.set(key, keyPosition(node, key))
  }
  return keys
}

function keyPosition(node: MapNode, key: string): Position {
  const matrix = presentField(node, 'matrix')?.value
  return (matrix?.type === 'fields' ? matrix.fields.get(key)?.at : undefined) ?? node.at
}

const valuesOf = (setting: ReadonlyMap<string, Position>, { keys }: Matrix): readonly [string, Field][] =>
  [...setting].flatMap(([key, at]) =>
    (keys.get(key) ?? []).map((value): [string, Field] => [key, { at, value }]),
  )

const writtenText = (field: Field | undefined): string | undefined =>
  field?.value.type === 'scalar' && !isNull(field.value) ? field.value.text : undefined

/** False if the row cannot be expanded: its combinations would only repeat the problems reported here. */
function checkTexts(
  { node, matrix, report }: MatrixRow,
  placeholders: Placeholders,
  fields: readonly (readonly [string, Field])[],
): boolean {
  /** Keys that change the input. */
  const used = new Set<string>()
  let canBeExpanded = true
  for (const [name, { value }] of fields) {
    if (NOT_FILLED.includes(name)) continue
    const checked = placeholders.check(name, value, report)
    canBeExpanded &&= checked.canBeFilled
    if (!NO_INPUT.includes(name)) for (const key of checked.keys) used.add(key)
  }
  // An unused key that looks like a parameter is an error: all runs would have the same input, and each would be paid
  // for.
  const settable = matrix.fields.names.filter((name) => !NO_INPUT.includes(name))
  for (const key of matrix.keys.keys()) {
    const near = matrix.fields.has(key) || used.has(key) ? undefined : nearest(key, settable)
    if (near === undefined || !isNear(key, near)) continue
    report(keyPosition(node, key), `no text of the row uses {${key}}. Did you mean "${near}"?`)
    canBeExpanded = false
  }
  return canBeExpanded
}

/**
 * Reports the problems of the first combination that has one at a position, and names the combination: most problems are
 * repeated by the other combinations of the row.
 */
function firstAtEachPosition(report: ReportProblem): (combination: Combination) => ReportProblem {
  const first = new Map<string, Combination>()
  return (combination) => (at, message) => {
    const place = `${at.line}:${at.column}`
    if (!first.has(place)) first.set(place, combination)
    if (first.get(place) !== combination) return
    // At a position inside the matrix, the value is visible without the combination.
    const isValue = [...combination.values()].some((value) => `${value.at.line}:${value.at.column}` === place)
    report(at, isValue ? message : `${message} (${describe(combination)})`)
  }
}

/** `animal: fox, aspect_ratio: 1:1` */
const describe = (combination: Combination): string =>
  [...combination].map(([key, value]) => `${key}: ${valueText(value)}`).join(', ')

function valueText(value: Node): string {
  const name = namedBy(value)
  if (name !== undefined) return shortened(name.text, 60)
  return value.type === 'list' ? shortened(`[${value.items.map(valueText).join(', ')}]`, 60) : '{…}'
}
