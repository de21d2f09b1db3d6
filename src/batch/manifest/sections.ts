/** Reads the sections of a manifest: models, defaults and runs (a plain list has only runs); and lists the fields of a run. */
import { isModelName, KINDS, type Kind, type ModelDocument, type ModelSchema } from '../../protocol/models.js'
import { PARAMETER_NAMES } from '../../protocol/parameters.js'
import { isObject } from '../../protocol/parse.js'
import { nearest, shortened } from '../../protocol/text.js'
import type { ParsedManifest, Path } from './format.js'

/** Fields of a run that are not parameters. docs/schemas/manifest.json describes them. */
export const OWN_FIELDS: readonly string[] = [
  ...['name', 'kind', 'model', 'output', 'count', 'label', 'input', 'matrix', 'exclude'],
]

export const ROW_FIELDS: readonly string[] = [...OWN_FIELDS, ...PARAMETER_NAMES]

/** Whether the schema has the parameter as a field of a run. Names of other fields are parameters only in `input`. */
export const isParameter = (schema: ModelSchema | undefined, name: string): boolean =>
  schema !== undefined && Object.hasOwn(schema.properties, name) && !OWN_FIELDS.includes(name)

/** Maximum number of runs in a manifest, the same as for `rushes run --count`. */
export const MAX_RUNS = 10_000

export type Models = Readonly<Partial<Record<Kind, string>>>

export type Fields = Readonly<Record<string, unknown>>

/** Records a problem. Reading continues, so that all problems are reported together. */
export type ReportProblem = (path: Path, message: string) => void

/** What the caller knows of the models. */
export interface ModelSources {
  /** Returns the document of a model, if it is known. */
  documentOf(model: string): ModelDocument | undefined
  /** Models for kinds without a model in the manifest. */
  readonly settings: Models
}

export interface Sections extends ModelSources {
  readonly models: Models
  readonly defaults: Fields
  readonly rows: readonly { readonly path: Path; readonly fields: Fields }[]
  readonly isCsv: boolean
}

export const unknownMessage = (what: string, name: string, known: readonly string[]): string => {
  const near = nearest(name, known)
  const hint = near === undefined ? `; expected one of: ${known.join(', ')}` : `. Did you mean "${near}"?`
  return `${what} "${shortened(name, 100)}"${hint}`
}

export function readSections(
  { value, isCsv }: ParsedManifest,
  sources: ModelSources,
  report: ReportProblem,
): Sections {
  const { documentOf, settings } = sources
  const empty: Sections = { documentOf, settings, models: {}, defaults: {}, rows: [], isCsv }
  if (Array.isArray(value)) return { ...empty, rows: rowsOf(value, [], report) }
  if (!isObject(value)) {
    report([], 'invalid manifest: expected a list of runs, or a map with models, defaults and runs')
    return empty
  }
  const known = ['models', 'defaults', 'runs']
  // `$schema` is for editors. Fields with `x-` hold YAML anchors that runs use.
  for (const name of Object.keys(value))
    if (!known.includes(name) && name !== '$schema' && !name.startsWith('x-'))
      report([name], unknownMessage('unknown field', name, known))
  if (value.runs === undefined) report([], 'runs is missing: the list of runs to create')
  return {
    ...empty,
    models: modelsOf(value.models, report),
    defaults: defaultsOf(value.defaults, report),
    rows: value.runs === undefined ? [] : rowsOf(value.runs, ['runs'], report),
  }
}

function rowsOf(value: unknown, path: Path, report: ReportProblem): Sections['rows'] {
  if (!Array.isArray(value)) {
    report(path, 'runs must be a list')
    return []
  }
  return value.flatMap((fields: unknown, at) => {
    const own = [...path, at]
    if (isObject(fields)) return [{ path: own, fields }]
    report(own, 'a run must be a map of fields, such as {name: fox, prompt: a fox}')
    return []
  })
}

function modelsOf(value: unknown, report: ReportProblem): Models {
  if (value === undefined || value === null) return {}
  if (!isObject(value)) {
    report(['models'], `models must be a map: {${KINDS.map((kind) => `${kind}: provider/name`).join(', ')}}`)
    return {}
  }
  for (const [name, model] of Object.entries(value))
    if (!KINDS.some((kind) => kind === name))
      report(['models', name], unknownMessage('unknown kind', name, KINDS))
    else if (model !== null && !isModel(model)) report(['models', name], invalidModel(model))
  return Object.fromEntries(Object.entries(value).filter(([, model]) => isModel(model)))
}

export const isModel = (value: unknown): value is string => typeof value === 'string' && isModelName(value)

export const invalidModel = (value: unknown): string =>
  `${typeof value === 'string' ? `"${value}"` : 'this'} is not a valid model identifier (expected <provider>/<name>)`

function defaultsOf(value: unknown, report: ReportProblem): Fields {
  if (value === undefined || value === null) return {}
  if (!isObject(value)) {
    report(['defaults'], 'defaults must be a map of fields')
    return {}
  }
  if ('name' in value) report(['defaults', 'name'], 'defaults cannot set a name: each run needs its own')
  for (const name of ['matrix', 'exclude'])
    if (name in value) report(['defaults', name], `defaults cannot set ${name}: put it in a run`)
  return value
}

/** A run with a matrix. All its combinations share this object. */
export interface RowTemplate {
  /** Name as written, with its placeholders. The output, if the run has no name. */
  readonly name: string | undefined
}

export interface WrittenRow {
  readonly path: Path
  /** Without `matrix` and `exclude`. */
  readonly fields: Fields
  readonly defaults: Fields
  /** Undefined for a run without a matrix. */
  readonly template: RowTemplate | undefined
  readonly report: ReportProblem
}
