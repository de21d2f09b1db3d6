/**
 * Reads the sections of a manifest (models, defaults and rows; a plain list has only rows), and lists the fields of a
 * row.
 */
import {
  isModelName,
  KINDS,
  type Kind,
  type ModelDocument,
  type ModelSchema,
  type ParameterSchema,
} from '../../protocol/models.js'
import { builtInSchema, kindsWith, PARAMETER_NAMES } from '../../protocol/parameters.js'
import { nearest } from '../../protocol/text.js'
import {
  type Field,
  isNull,
  type ListNode,
  type MapNode,
  type Node,
  type Position,
  type ReportProblem,
} from './nodes.js'

/** Fields of the built-in schemas that hold a list. */
const LIST_FIELDS: readonly string[] = PARAMETER_NAMES.filter((name) =>
  kindsWith(name).some((kind) => builtInSchema(kind).properties[name]?.type === 'array'),
)

/** Fields of a row that are not parameters. docs/schemas/manifest.json describes them. */
export const OWN_FIELDS: readonly string[] = [
  'name',
  'kind',
  'model',
  'output',
  'count',
  'label',
  'input',
  'matrix',
  'exclude',
]

export const ROW_FIELDS: readonly string[] = [...OWN_FIELDS, ...PARAMETER_NAMES]

export const isOfMatrix = (name: string): boolean => name === 'matrix' || name === 'exclude'

/** Whether the schema has the parameter as a field of a row. Names of other fields are parameters only in `input`. */
export const isParameter = (schema: ModelSchema | undefined, name: string): boolean =>
  schema !== undefined && Object.hasOwn(schema.properties, name) && !OWN_FIELDS.includes(name)

/** The fields of a row whose model has one of some schemas. */
export interface RowFields {
  readonly names: readonly string[]
  has(name: string): boolean
  isList(name: string): boolean
  /** Whether the field takes any value, such as a map. */
  isJson(name: string): boolean
}

/** `canBeAdded`: whether a document may add a field of this name to the built-in ones. */
export function fieldsOf(
  schemas: readonly ModelSchema[],
  canBeAdded: (name: string) => boolean = () => true,
): RowFields {
  const types = new Map(ROW_FIELDS.map((name) => [name, new Set<ParameterSchema['type']>()]))
  for (const schema of schemas)
    for (const [name, { type }] of Object.entries(schema.properties))
      if (isParameter(schema, name) && (types.has(name) || canBeAdded(name)))
        types.set(name, (types.get(name) ?? new Set()).add(type))
  return {
    names: [...types.keys()],
    has: (name) => types.has(name),
    isJson: (name) => name === 'input' || types.get(name)?.has('other') === true,
    isList: (name) =>
      types.get(name)?.size ? types.get(name)?.has('array') === true : LIST_FIELDS.includes(name),
  }
}

/** Maximum number of combinations of all matrices in a manifest. `--max-runs` can allow more. */
export const MAX_COMBINATIONS = 1_000

const TOP_FIELDS = ['models', 'defaults', 'runs'] as const

/** Maximum number of runs in a manifest, the same as for `rushes run --count`. */
export const MAX_RUNS = 10_000

export type Models = Readonly<Partial<Record<Kind, string>>>

/** What the caller knows of the models. */
export interface ModelSources {
  /** Returns the document of a model, if it is known. */
  documentOf(model: string): ModelDocument | undefined
  /** Models for kinds without a model in the manifest. */
  readonly settings: Models
}

export interface Sections extends ModelSources {
  readonly models: Models
  readonly defaults: ReadonlyMap<string, Field>
  readonly rows: readonly MapNode[]
  /** Whether the values are texts whose types are those of the row's model. */
  readonly isCsv: boolean
}

export const unknownMessage = (what: string, name: string, known: readonly string[]): string => {
  const near = nearest(name, known)
  return `${what} "${name}"${near === undefined ? `; expected one of: ${known.join(', ')}` : `. Did you mean "${near}"?`}`
}

export function readSections(
  node: Node,
  { documentOf, settings }: ModelSources,
  report: ReportProblem,
): Sections {
  const empty: Sections = { documentOf, settings, models: {}, defaults: new Map(), rows: [], isCsv: false }
  if (node.type === 'list') return { ...empty, rows: rowsOf(node, report), isCsv: node.columns !== undefined }
  if (node.type === 'scalar') {
    report(node.at, 'invalid manifest: expected a list of runs, or a map with models, defaults and runs')
    return empty
  }
  // `$schema` is for editors. Fields with `x-` hold YAML anchors that rows use.
  for (const [name, { at }] of node.fields)
    if (!isKnown(name)) report(at, unknownMessage('unknown field', name, TOP_FIELDS))
  const runs = node.fields.get('runs')
  if (runs === undefined) report(node.at, 'runs is missing: the list of runs to create')
  return {
    ...empty,
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
    else if (isOfMatrix(name)) report(at, `defaults cannot set ${name}: put it in a run`)
  return field.value.fields
}

/**
 * Checks the names that several rows share, once the models of the manifest are known: those of the defaults, and the
 * columns of CSV. Returns the sections without the unknown columns, which are reported once.
 */
export function checkSharedNames(
  sections: Sections,
  { names, has }: RowFields,
  columns: ListNode['columns'] = new Map<string, Position>(),
  report: ReportProblem,
): Sections {
  const known = names.filter((name) => !isOfMatrix(name))
  const inDefaults = known.filter((name) => name !== 'name')
  for (const [name, { at }] of sections.defaults)
    if (!has(name)) report(at, unknownMessage('unknown field', name, inDefaults))
  const unknown = [...columns].filter(([name]) => !has(name))
  for (const [name, at] of unknown) report(at, unknownMessage('unknown field', name, known))
  if (unknown.length === 0) return sections
  const rows = sections.rows.map((row) => ({
    ...row,
    fields: new Map([...row.fields].filter(([name]) => has(name))),
  }))
  return { ...sections, rows }
}
