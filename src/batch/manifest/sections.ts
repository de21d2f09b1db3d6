/**
 * Reads the sections of a manifest (models, defaults and rows; a plain list has only rows), and lists the fields of a
 * row.
 */
import { isModelName, KINDS, type Kind } from '../../protocol/models.js'
import { builtInSchema, kindsWith, PARAMETER_NAMES } from '../../protocol/parameters.js'
import { nearest } from '../../protocol/text.js'
import { type Field, isNull, type MapNode, type Node, type ReportProblem } from './nodes.js'

export const LIST_FIELDS: readonly string[] = PARAMETER_NAMES.filter((name) =>
  kindsWith(name).some((kind) => builtInSchema(kind).properties[name]?.type === 'array'),
)

export const OWN_FIELDS = {
  name: 'Name of the run, here and in the lock file; default: the path of the output',
  kind: 'Image or video',
  model: 'Identifier published for the model, instead of the one in `models` or the settings',
  output:
    'Path of the file, relative to the manifest; default: <name>.<ext>; {name} {kind} {index} {ext} are filled in',
  count: 'Number of runs of the same input, each with its own file',
  input: 'Whole input of a model that is neither the image nor the video model',
  matrix: 'Lists of values: one run for each combination; {key} is replaced in all texts of the row',
  exclude: 'Combinations of the matrix that are left out: [{animal: bear, aspect_ratio: "16:9"}]',
} as const

export const ROW_FIELDS: readonly string[] = [...Object.keys(OWN_FIELDS), ...PARAMETER_NAMES]

/**
 * Fields that `defaults` may have. Rows cannot share a name, and a matrix would also expand rows without its
 * placeholders.
 */
export const DEFAULTS_FIELDS: readonly string[] = ROW_FIELDS.filter(
  (name) => !['name', 'matrix', 'exclude'].includes(name),
)

/** Fields that CSV may have. A cell cannot contain lists of values. */
export const CSV_FIELDS: readonly string[] = ROW_FIELDS.filter(
  (name) => !['matrix', 'exclude'].includes(name),
)

/** Maximum number of combinations of all matrices in a manifest. `--max-runs` can allow more. */
export const MAX_COMBINATIONS = 1_000

const TOP_FIELDS = ['models', 'defaults', 'runs'] as const

/** Maximum number of runs in a manifest, the same as for `rushes run --count`. */
export const MAX_RUNS = 10_000

export type Models = Readonly<Partial<Record<Kind, string>>>

export interface Sections {
  readonly models: Models
  readonly defaults: ReadonlyMap<string, Field>
  readonly rows: readonly MapNode[]
}

export const unknownMessage = (what: string, name: string, known: readonly string[]): string => {
  const near = nearest(name, known)
  return `${what} "${name}"${near === undefined ? `; expected one of: ${known.join(', ')}` : `. Did you mean "${near}"?`}`
}

export function readSections(node: Node, report: ReportProblem): Sections {
  if (node.type === 'list') return { models: {}, defaults: new Map(), rows: rowsOf(node, report) }
  if (node.type === 'scalar') {
    report(node.at, 'invalid manifest: expected a list of runs, or a map with models, defaults and runs')
    return { models: {}, defaults: new Map(), rows: [] }
  }
  // `$schema` is for editors. Fields with `x-` hold YAML anchors that rows use.
  for (const [name, { at }] of node.fields)
    if (!isKnown(name)) report(at, unknownMessage('unknown field', name, TOP_FIELDS))
  const runs = node.fields.get('runs')
  if (runs === undefined) report(node.at, 'runs is missing: the list of runs to create')
  return {
    models: modelsOf(node.fields.get('models'), report),
    defaults: defaultsOf(node.fields.get('defaults'), report),
    rows: runs === undefined ? [] : rowsOf(runs.value, report),
  }
}

const isKnown = (name: string): boolean =>
  (TOP_FIELDS as readonly string[]).includes(name) || name === '$schema' || name.startsWith('x-')

function rowsOf(node: Node, report: ReportProblem): readonly MapNode[] {
  if (node.type !== 'list') {
    report(node.at, 'runs must be a list')
    return []
  }
  return node.items.filter((item): item is MapNode => {
    if (item.type !== 'fields')
      report(item.at, 'a run must be a map of fields, such as {name: fox, prompt: a fox}')
    return item.type === 'fields'
  })
}

function modelsOf(field: Field | undefined, report: ReportProblem): Models {
  if (field === undefined || isNull(field.value)) return {}
  if (field.value.type !== 'fields') {
    report(
      field.value.at,
      `models must be a map: {${KINDS.map((kind) => `${kind}: provider/name`).join(', ')}}`,
    )
    return {}
  }
  const models: Partial<Record<Kind, string>> = {}
  for (const [name, { at, value }] of field.value.fields) {
    const kind = KINDS.find((each) => each === name)
    if (kind === undefined) report(at, unknownMessage('unknown kind', name, KINDS))
    else if (isNull(value)) continue
    else if (value.type !== 'scalar' || !isModelName(value.text)) report(value.at, invalidModelMessage(value))
    else models[kind] = value.text
  }
  return models
}

export const invalidModelMessage = (value: Node): string =>
  `${value.type === 'scalar' ? `"${value.text}"` : 'this'} is not a valid model identifier (expected <provider>/<name>)`

function defaultsOf(field: Field | undefined, report: ReportProblem): ReadonlyMap<string, Field> {
  if (field === undefined || isNull(field.value)) return new Map()
  if (field.value.type !== 'fields') {
    report(field.value.at, 'defaults must be a map of fields')
    return new Map()
  }
  for (const [name, { at }] of field.value.fields)
    if (name === 'name') report(at, 'defaults cannot set a name: each run needs its own')
    else if (name === 'matrix' || name === 'exclude')
      report(at, `defaults cannot set ${name}: put it in a run`)
    else if (!DEFAULTS_FIELDS.includes(name))
      report(at, unknownMessage('unknown field', name, DEFAULTS_FIELDS))
  return field.value.fields
}
