/** Expands each row with a matrix into one row for each combination, before anything else is read of it. Pure. */
import { nearest } from '../../protocol/nearest.js'
import { PARAMETER_NAMES } from '../../protocol/parameters.js'
import { type Combination, type Matrix, readMatrix } from './matrix-combinations.js'
import { setsField } from './matrix-values.js'
import { type Field, type Fields, isNull } from './nodes.js'
import type { Naming } from './output-paths.js'
import type { Position, ReportProblem } from './position.js'
import { MAX_COMBINATIONS, MAX_RUNS } from './row-fields.js'
import { createPlaceholders, isNear, type Placeholders } from './row-placeholders.js'
import { createRowProblems } from './row-problems.js'
import type { Sections } from './sections.js'

/** The row in the manifest that a matrix has expanded; the same object for all its combinations. */
export interface RowTemplate {
  /** As written, with placeholders. */
  readonly name: string | undefined
  readonly output: string | undefined
}

export interface Origin {
  readonly template: RowTemplate
  readonly combination: Combination
}

export interface ExpandedRow {
  readonly node: Fields
  /** With placeholders filled in in the defaults. */
  readonly sections: Sections
  readonly report: ReportProblem
  /** Undefined for a row without a matrix. */
  readonly origin: Origin | undefined
}

export interface Expansion {
  readonly rows: readonly ExpandedRow[]
  /** Rows with a matrix that cannot be expanded. */
  readonly lacking: readonly RowTemplate[]
  /** Reports what was collected by the `report` of the rows. */
  flush(): void
}

export interface ExpandOptions {
  readonly naming: Naming
  /** `--max-runs`: allows more combinations than `MAX_COMBINATIONS`. */
  readonly maxRuns?: number | undefined
}

export function expandRows(
  sections: Sections,
  { naming, maxRuns }: ExpandOptions,
  report: ReportProblem,
): Expansion {
  const matrices = readMatrices(sections.rows, report)
  if (areTooMany(matrices, maxRuns, report)) return { rows: [], lacking: [], flush() {} }
  const expansions = sections.rows.map((node): Expansion => {
    if (given(node, 'matrix') === undefined)
      return { rows: [{ node, sections, report, origin: undefined }], lacking: [], flush() {} }
    const matrix = matrices.get(node)
    return matrix === undefined ? lacking(node, sections) : expand({ node, matrix, sections, naming, report })
  })
  return {
    rows: expansions.flatMap(({ rows }) => rows),
    lacking: expansions.flatMap(({ lacking }) => lacking),
    flush() {
      for (const { flush } of expansions) flush()
    },
  }
}

const lacking = ({ fields }: Fields, { defaults }: Sections): Expansion => ({
  rows: [],
  lacking: [
    {
      name: writtenText(fields.get('name')),
      output: writtenText(fields.get('output') ?? defaults.get('output')),
    },
  ],
  flush() {},
})

/** `null` means the same as an absent field. */
function given({ fields }: Fields, name: string): Field | undefined {
  const field = fields.get(name)
  return field === undefined || isNull(field.value) ? undefined : field
}

/** By row. Ends when the combinations are too many, since those of 10,000 rows would not fit into memory. */
function readMatrices(rows: readonly Fields[], report: ReportProblem): ReadonlyMap<Fields, Matrix> {
  const matrices = new Map<Fields, Matrix>()
  let total = 0
  for (const node of rows) {
    const field = given(node, 'matrix')
    const exclude = given(node, 'exclude')
    if (field === undefined) {
      if (exclude !== undefined) report(exclude.at, 'exclude needs a matrix in the same row')
    } else if (total <= MAX_RUNS) {
      const matrix = readMatrix(field, exclude, report)
      if (matrix !== undefined) matrices.set(node, matrix)
      total += matrix?.combinations.length ?? 0
    }
  }
  return matrices
}

function areTooMany(
  matrices: ReadonlyMap<Fields, Matrix>,
  maxRuns: number | undefined,
  report: ReportProblem,
): boolean {
  const limit = Math.min(MAX_RUNS, Math.max(MAX_COMBINATIONS, maxRuns ?? 0))
  let total = 0
  let over: Position | undefined
  for (const [node, { combinations }] of matrices) {
    total += combinations.length
    if (total > limit) over ??= given(node, 'matrix')?.at
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

interface Expanding {
  readonly node: Fields
  readonly matrix: Matrix
  readonly sections: Sections
  readonly naming: Naming
  readonly report: ReportProblem
}

type FieldMap = ReadonlyMap<string, Field>

/** `count` is a number, and the others are not fields of the rows that come out. */
const NOT_FILLED: readonly string[] = ['count', 'matrix', 'exclude']

function expand(work: Expanding): Expansion {
  const { node, matrix, sections, naming, report } = work
  const { defaults } = sections
  const placeholders = createPlaceholders(matrix.keys, naming)
  const setting = settingKeys(work)
  const own = new Map([...node.fields].filter(([name]) => !setting.has(name) && !isOfMatrix(name)))
  const inherited = new Map([...defaults].filter(([name]) => !setting.has(name) && !own.has(name)))
  if (!checkTexts(work, placeholders, [...own, ...inherited, ...valuesOf(setting, matrix)]))
    return lacking(node, sections)

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
  const template: RowTemplate = {
    name: writtenText(own.get('name')),
    output: writtenText(own.get('output') ?? inherited.get('output')),
  }
  const problems = createRowProblems(matrix.combinations, report)
  return {
    rows: matrix.combinations.map((combination) => ({
      node: { ...node, fields: fill(new Map([...own, ...valuesSet(combination)]), combination) },
      sections: { ...sections, defaults: fill(defaults, combination) },
      report: problems.reportFor(combination),
      origin: { template, combination },
    })),
    lacking: [],
    flush: problems.flush,
  }
}

const isOfMatrix = (name: string): boolean => name === 'matrix' || name === 'exclude'

/** The keys that set a field of the row, with their positions. */
function settingKeys({ node, matrix, report }: Expanding): ReadonlyMap<string, Position> {
  const keys = new Map<string, Position>()
  for (const key of matrix.keys.keys()) {
    if (!setsField(key)) continue
    const own = given(node, key)
    if (own !== undefined) report(own.at, `${key} is also a key of the matrix: remove one of them`)
    keys.set(key, keyPosition(node, key))
  }
  return keys
}

function keyPosition(node: Fields, key: string): Position {
  const matrix = given(node, 'matrix')?.value
  return (matrix?.type === 'fields' ? matrix.fields.get(key)?.at : undefined) ?? node.at
}

const valuesOf = (setting: ReadonlyMap<string, Position>, { keys }: Matrix): readonly [string, Field][] =>
  [...setting].flatMap(([key, at]) =>
    (keys.get(key) ?? []).map((value): [string, Field] => [key, { at, value }]),
  )

const writtenText = (field: Field | undefined): string | undefined =>
  field?.value.type === 'scalar' && !isNull(field.value) ? field.value.text : undefined

const SETTABLE: readonly string[] = ['kind', 'model', 'input', ...PARAMETER_NAMES]

/** False when the rows would only have problems that follow from those reported here. */
function checkTexts(
  { node, matrix, report }: Expanding,
  placeholders: Placeholders,
  fields: readonly (readonly [string, Field])[],
): boolean {
  /** Keys that change what is created. */
  const used = new Set<string>()
  let canBeExpanded = true
  for (const [name, { value }] of fields) {
    if (NOT_FILLED.includes(name)) continue
    const checked = placeholders.check(name, value, report)
    canBeExpanded &&= checked.canBeFilled
    if (name !== 'name' && name !== 'output') for (const key of checked.keys) used.add(key)
  }
  // The runs would all have the same input, and each would be paid for.
  for (const key of matrix.keys.keys()) {
    const near = setsField(key) || used.has(key) ? undefined : nearest(key, SETTABLE)
    if (near === undefined || !isNear(key, near)) continue
    report(keyPosition(node, key), `no text of the row uses {${key}}. Did you mean "${near}"?`)
    canBeExpanded = false
  }
  return canBeExpanded
}
