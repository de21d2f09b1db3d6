/**
 * Reads the sections of a manifest (models, defaults and runs; a plain list has only runs), and one run: finds its model,
 * merges the defaults into it, and checks it against the schema of the model.
 */
import { asLabel, labelProblem, MAX_LABELS } from '../../protocol/labels.js'
import { type MediaParameters, mediaParameters } from '../../protocol/media-parameters.js'
import {
  isModelName,
  KINDS,
  type Kind,
  type ModelDocument,
  type ModelInput,
  type ModelSchema,
  type ParameterSchema,
} from '../../protocol/models.js'
import {
  builtInSchema,
  findInexact,
  listedValues,
  PARAMETER_NAMES,
  valueOfText,
} from '../../protocol/parameters.js'
import { isObject, parseJson } from '../../protocol/parse.js'
import { nearest, shortened } from '../../protocol/text.js'
import { inputProblems, isKind, unknownFields } from '../../protocol/validate.js'
import type { ParsedManifest, Path } from './parse.js'

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

export interface Sections extends ModelSources, ParsedManifest {
  readonly models: Models
  readonly defaults: Fields
  readonly rows: readonly { readonly path: Path; readonly fields: Fields }[]
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

export interface ManifestRow {
  readonly kind: Kind | undefined
  /** Undefined if the manifest has no model for the run. The settings or the lock file may have one. */
  readonly model: string | undefined
  readonly name: string | undefined
  /** Output as written, before placeholders are filled in. */
  readonly output: string | undefined
  readonly count: number
  /** Without duplicates. */
  readonly labels: readonly string[]
  /** Whether the run has an `input`, which is sent unchanged. */
  readonly hasOwnInput: boolean
  /** Input as written: local files are paths. */
  readonly input: ModelInput
  /** The input before the document of its model was known. Undefined without a document. */
  readonly undocumentedInput: ModelInput | undefined
  readonly media: MediaParameters
  readonly template: RowTemplate | undefined
  readonly line: number
  /** Reports a problem of the run, or of a value below one of its fields. */
  report(message: string, ...at: Path): void
}

export const unknownMessage = (what: string, name: string, known: readonly string[]): string => {
  const near = nearest(name, known)
  const hint = near === undefined ? `; expected one of: ${known.join(', ')}` : `. Did you mean "${near}"?`
  return `${what} "${shortened(name, 100)}"${hint}`
}

export function readSections(parsed: ParsedManifest, sources: ModelSources, report: ReportProblem): Sections {
  const { value } = parsed
  const empty: Sections = { ...parsed, ...sources, models: {}, defaults: {}, rows: [] }
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
  const { models, defaults } = value
  for (const [name, map] of Object.entries({ models, defaults }))
    if (!isObject(map ?? {})) report([name], `${name} must be a map`)
  return {
    ...empty,
    models: isObject(models) ? modelsOf(models, report) : {},
    defaults: isObject(defaults) ? checkedDefaults(defaults, report) : {},
    rows: rowsOf(value.runs, ['runs'], report),
  }
}

function rowsOf(value: unknown, path: Path, report: ReportProblem): Sections['rows'] {
  if (!Array.isArray(value)) {
    report(value === undefined ? [] : path, 'runs must be a list: the runs to create')
    return []
  }
  return value.flatMap((fields: unknown, at) => {
    const own = [...path, at]
    if (isObject(fields)) return [{ path: own, fields }]
    report(own, 'a run must be a map of fields, such as {name: fox, prompt: a fox}')
    return []
  })
}

function modelsOf(models: Fields, report: ReportProblem): Models {
  const given = Object.entries(models).filter(([, model]) => model !== null)
  for (const [name, model] of given)
    if (!isKind(name)) report(['models', name], unknownMessage('unknown kind', name, KINDS))
    else if (!isModel(model)) report(['models', name], invalidModel(model))
  return Object.fromEntries(given.filter(([, model]) => isModel(model)))
}

const isModel = (value: unknown): value is string => typeof value === 'string' && isModelName(value)

const invalidModel = (value: unknown): string =>
  `${typeof value === 'string' ? `"${value}"` : 'this'} is not a valid model identifier (expected <provider>/<name>)`

function checkedDefaults(defaults: Fields, report: ReportProblem): Fields {
  for (const name of ['name', 'matrix', 'exclude'])
    if (name in defaults) report(['defaults', name], `defaults cannot set ${name}: put it in a run`)
  return defaults
}

/** The model of a run. */
interface RowModel {
  /** Kind and model as written, by the run or by the defaults. */
  readonly written: { readonly kind?: unknown; readonly model?: unknown }
  readonly kind: Kind | undefined
  readonly model: string | undefined
  /** Undefined if the parameters of the model are not known. */
  readonly schema: ModelSchema | undefined
  /** Undefined for the built-in schema of the kind. */
  readonly document: ModelDocument | undefined
  /** Undefined for a run with its parameters as fields. */
  readonly input: unknown
}

/** A run with its own kind or model takes neither from the defaults, since kind and model belong together. */
export function modelOf(own: Fields, defaults: Fields, { models, settings, documentOf }: Sections): RowModel {
  const isOwn = (own.kind ?? own.model ?? null) !== null
  const written = isOwn ? own : defaults
  const model = isModel(written.model) ? written.model : undefined
  const kinds: readonly unknown[] = [
    written.kind,
    KINDS.find((each) => model !== undefined && models[each] === model),
    // Of a model that is not known, beside parameters as fields.
    isOwn && (own.input ?? own.kind ?? null) === null ? defaults.kind : undefined,
  ]
  const named = kinds.find((each): each is Kind => typeof each === 'string' && isKind(each))
  const ofKind = named && (models[named] ?? settings[named])
  const document = documentOf(model ?? ofKind ?? '')
  const kind = document?.kind ?? named
  return {
    written,
    kind,
    model: model ?? (named && models[named]),
    schema: document?.input ?? (kind && builtInSchema(kind)),
    document,
    // An `input` of the defaults is for runs that have no kind without the document.
    input: own.input ?? (named === undefined ? defaults.input : null) ?? undefined,
  }
}

/** Names of all fields that the runs may have: the built-in ones, and those of their models' documents. */
export const knownFields = (schemas: readonly (ModelSchema | undefined)[]): ReadonlySet<string> =>
  new Set([
    ...ROW_FIELDS,
    ...[...new Set(schemas)].flatMap((schema) => Object.keys(schema?.properties ?? {})),
  ])

/** `known`: names of fields that some run of the manifest has, so that another name is a typing error. */
export function readRow(row: WrittenRow, sections: Sections, known: ReadonlySet<string>): ManifestRow {
  const { path, fields, defaults, template } = row
  const own = withoutNull(fields)
  const inherited = withoutNull(
    Object.fromEntries(Object.entries(defaults).filter(([name]) => !(name in fields))),
  )
  const report: ManifestRow['report'] = (message, ...at) => {
    const isDefault = at.length > 0 && !(String(at[0]) in own) && String(at[0]) in inherited
    row.report(isDefault ? ['defaults', ...at] : [...path, ...at], message)
  }
  const found = modelOf(own, inherited, sections)
  const { kind, model, schema, input } = found
  const problem = modelProblem(found)
  if (problem !== undefined) report(...problem)
  const all = { ...inherited, ...own }
  if (input !== undefined && !isObject(input)) report('input must be a map', 'input')
  const inexact = findInexact(all)
  if (inexact !== undefined)
    report(`${inexact.join('.')} cannot be sent as a number without a change: put it in quotes`, ...inexact)
  const inputOf = (of: ModelSchema | undefined) => parametersOf(all, of, sections.isCsv)
  const result: ManifestRow = {
    kind,
    model,
    name: textOf('name', own.name, report),
    output: textOf('output', all.output, report),
    count: countOf(all.count, report),
    labels: labelsOf(all.label, report),
    hasOwnInput: input !== undefined,
    media: mediaParameters(schema),
    input: input === undefined ? inputOf(schema) : isObject(input) ? input : {},
    undocumentedInput:
      input === undefined && found.document !== undefined && kind !== undefined
        ? inputOf(builtInSchema(kind))
        : undefined,
    template,
    line: sections.lineOf(path),
    report,
  }
  // An unknown column of CSV is a mistake of the header.
  const reportUnknown = sections.isCsv ? (text: string) => row.report([], text) : report
  const mistyped = checkNames(own, found, known, { report, reportUnknown })
  if (problem === undefined) checkInput(result, found, mistyped)
  return result
}

const withoutNull = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))

/** Returns what is wrong, and the field. */
function modelProblem({ written, kind, document, input }: RowModel): [string, ...Path] | undefined {
  if (written.kind !== undefined && !(typeof written.kind === 'string' && isKind(written.kind)))
    return [unknownMessage('unknown kind', String(written.kind), KINDS), 'kind']
  if (written.model !== undefined && !isModel(written.model)) return [invalidModel(written.model), 'model']
  if (written.kind !== undefined && document !== undefined && written.kind !== document.kind)
    return [`the kind of ${document.name} is ${document.kind}, not ${written.kind}`, 'kind']
  if (kind === undefined && written.model === undefined) return [`kind is missing: ${KINDS.join(' or ')}`]
  if (kind !== undefined || input !== undefined) return undefined
  return [
    `input is missing, and ${unknownParameters(written.model)}. Or give the whole input, or set kind ` +
      `(${KINDS.join(' or ')}) if it takes the same parameters`,
  ]
}

const unknownParameters = (model: unknown): string =>
  `the parameters of ${model} are not known here: \`rushes models --refresh\` asks the service`

/** Reports fields that the run cannot have. Returns the names that mistyped ones mean, which are not missing too. */
function checkNames(
  own: Fields,
  found: RowModel,
  known: ReadonlySet<string>,
  { report, reportUnknown }: Readonly<Record<'report' | 'reportUnknown', ManifestRow['report']>>,
): ReadonlySet<string> {
  const { schema, document, model, input } = found
  const mistyped = new Set<string>()
  const names =
    document === undefined ? ROW_FIELDS : [...OWN_FIELDS, ...Object.keys(document.input.properties)]
  for (const name of Object.keys(own)) {
    if (OWN_FIELDS.includes(name)) continue
    if (input !== undefined && known.has(name)) report(`${name} must be inside input`, name)
    else if (known.has(name) && schema !== undefined && !isParameter(schema, name))
      report(`${document?.name ?? `the ${found.kind} model`} has no parameter "${name}"`, name)
    if (known.has(name)) continue
    const near = nearest(name, names)
    if (near !== undefined) mistyped.add(near)
    const isUndocumented = near === undefined && model !== undefined && document === undefined
    // Without a schema and an input, one problem of the run names the model.
    if (isUndocumented && schema === undefined && input === undefined) continue
    const hint = isUndocumented ? ` (${unknownParameters(model)})` : ''
    reportUnknown(`${unknownMessage('unknown field', name, names)}${hint}`, name)
  }
  return mistyped
}

function parametersOf(fields: Fields, schema: ModelSchema | undefined, isCsv: boolean): ModelInput {
  const parameters = Object.entries(schema?.properties ?? {}).filter(
    ([name]) => isParameter(schema, name) && fields[name] !== undefined,
  )
  return Object.fromEntries(
    parameters.map(([name, of]) => [
      name,
      parameterValue(of, isCsv ? cellOf(of, String(fields[name])) : fields[name]),
    ]),
  )
}

/** Converts a cell of CSV to the type of the schema. Spaces separate the items of a list. */
function cellOf(schema: ParameterSchema, cell: string): unknown {
  if (schema.type === 'array') return cell.split(/\s+/).filter(Boolean)
  const parsed = schema.type === 'other' ? parseJson(cell) : undefined
  return parsed?.ok ? parsed.value : valueOfText(schema, cell)
}

/** Text needs no quotes, even if the format reads it as a number or a boolean: `duration: 5`, `prompt: 2024`. */
function parameterValue(schema: ParameterSchema, value: unknown): unknown {
  if (schema.type !== 'string' || typeof value === 'object') return value
  // YAML blocks end with a line end that is not part of the text. The last line end of a prompt file is dropped too.
  return listedValues(schema) === undefined ? String(value).replace(/\r?\n$/, '') : String(value)
}

function checkInput(
  { input, hasOwnInput, report }: ManifestRow,
  found: RowModel,
  mistyped: ReadonlySet<string>,
): void {
  const { schema, document, kind } = found
  if (schema === undefined) return
  const owner = document?.name ?? `${kind === 'image' ? 'an' : 'a'} ${kind}`
  const place: Path = hasOwnInput ? ['input'] : []
  for (const { parameter, message } of inputProblems(schema, input)) {
    const [name = '', item] = parameter.split('/')
    if (message === 'is missing') {
      if (!mistyped.has(name)) report(`${name} is missing`, ...place)
      continue
    }
    const entry = item === undefined ? '' : ` (entry ${Number(item) + 1})`
    const at = item === undefined ? [name] : [name, Number(item)]
    report(`${name}${entry} of ${owner} ${message}`, ...place, ...at)
  }
  // A whole input may have parameters that the document does not list, but a mistyped one would be paid for.
  if (hasOwnInput && document !== undefined)
    for (const { name, nearest: near } of unknownFields(schema, input))
      if (near !== undefined && !Object.hasOwn(input, near))
        report(`${document.name} has no parameter "${name}". Did you mean "${near}"?`, 'input', name)
  if (typeof input.prompt === 'string' && input.prompt.trim() === '') report('prompt is blank', 'prompt')
}

const MAX_NAME_LENGTH = 1_000

function textOf(name: string, value: unknown, report: ManifestRow['report']): string | undefined {
  if (value === undefined) return undefined
  const text = typeof value === 'object' ? '' : String(value)
  let problem: string | undefined
  if (typeof value === 'object') problem = 'must be text'
  else if (text.trim() === '') problem = 'is blank'
  else if (/[\u0000-\u001f\u007f-\u009f]/.test(text)) problem = 'contains a control character'
  else if (text.length > MAX_NAME_LENGTH) problem = `has more than ${MAX_NAME_LENGTH} characters`
  if (problem === undefined) return text
  report(`${name} ${problem}`, name)
  return undefined
}

function countOf(value: unknown, report: ManifestRow['report']): number {
  if (value === undefined) return 1
  const text = ['number', 'string'].includes(typeof value) ? String(value) : ''
  const count = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (count >= 1 && count <= MAX_RUNS) return count
  report(`count must be a whole number from 1 to ${MAX_RUNS}`, 'count')
  return 1
}

/** Labels are not a part of the input: a changed label does not make a run out of date. */
function labelsOf(value: unknown, report: ManifestRow['report']): readonly string[] {
  const items: readonly unknown[] = Array.isArray(value) ? value : [value ?? []].flat()
  const labels = new Set<string>()
  for (const item of items) {
    const label = asLabel(String(item))
    const problem = typeof item === 'object' ? 'label must be a text or a list of texts' : labelProblem(label)
    if (problem !== undefined) report(problem, 'label')
    labels.add(label)
  }
  if (labels.size > MAX_LABELS) report(`a run must have at most ${MAX_LABELS} labels`, 'label')
  return [...labels]
}
