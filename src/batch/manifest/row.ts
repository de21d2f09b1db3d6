/** Reads one run of the manifest: finds its model, merges the defaults into it, and checks it against the model's schema. */
import { asLabel, labelProblem, MAX_LABELS } from '../../protocol/labels.js'
import { type MediaParameters, mediaParameters } from '../../protocol/media-parameters.js'
import {
  KINDS,
  type Kind,
  type ModelInput,
  type ModelSchema,
  type ParameterSchema,
} from '../../protocol/models.js'
import {
  builtInSchema,
  findInexact,
  kindsWith,
  listedValues,
  PARAMETER_NAMES,
  valueOfText,
} from '../../protocol/parameters.js'
import { isObject, parseJson } from '../../protocol/parse.js'
import { nearest, shortened } from '../../protocol/text.js'
import { inputProblems, unknownFields } from '../../protocol/validate.js'
import type { Path } from './format.js'
import {
  type Fields,
  invalidModel,
  isModel,
  isParameter,
  MAX_RUNS,
  OWN_FIELDS,
  type ReportProblem,
  ROW_FIELDS,
  type RowTemplate,
  type Sections,
  unknownMessage,
  type WrittenRow,
} from './sections.js'

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
  /** Whether the run itself has an `input`, which is sent unchanged. */
  readonly hasOwnInput: boolean
  /** Input as written: local files are paths. */
  readonly input: ModelInput
  readonly media: MediaParameters
  /**
   * The input that the run had before the document of its model was known. A run that was made with it is not paid again
   * because a service now describes the model.
   */
  readonly undocumentedInput: ModelInput | undefined
  readonly template: RowTemplate | undefined
  readonly path: Path
  /** Reports a problem of the run, or of a value below one of its fields. */
  report(message: string, ...at: Path): void
}

/** The model of a run, and its fields with those of the defaults that it takes. */
interface RowModel {
  readonly kind: Kind | undefined
  readonly model: string | undefined
  /** Undefined if the parameters of the model are not known. */
  readonly schema: ModelSchema | undefined
  /** Name of the model whose document has the schema. Undefined for the built-in schema of the kind. */
  readonly documented: string | undefined
  /** Undefined for a run with its parameters as fields. */
  readonly input: unknown
}

const isKind = (value: unknown): value is Kind => KINDS.some((kind) => kind === value)

/** A run with its own kind or model takes neither from the defaults, since kind and model belong together. */
export function modelOf(own: Fields, defaults: Fields, sections: Sections): RowModel {
  const isOwn = (own.kind ?? own.model ?? null) !== null
  const from = isOwn ? own : defaults
  const model = isModel(from.model) ? from.model : undefined
  const ofModel = model === undefined ? undefined : sections.documentOf(model)
  const written =
    [from.kind, KINDS.find((kind) => model !== undefined && sections.models[kind] === model)].find(isKind) ??
    (isOwn && model !== undefined && (own.input ?? own.kind ?? null) === null && isKind(defaults.kind)
      ? defaults.kind
      : undefined)
  const kind = ofModel?.kind ?? written
  const nameOfKind = kind && (sections.models[kind] ?? sections.settings[kind])
  const document =
    ofModel ?? (model === undefined && nameOfKind ? sections.documentOf(nameOfKind) : undefined)
  const isOfKind = document?.kind === kind
  return {
    kind,
    model: model ?? (kind && sections.models[kind]),
    schema: isOfKind && document ? document.input : kind && builtInSchema(kind),
    documented: isOfKind ? document?.name : undefined,
    // An `input` of the defaults is for runs that have no kind without the document.
    input: own.input ?? (written === undefined ? defaults.input : null) ?? undefined,
  }
}

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
  checkModel(found, { own, inherited, sections, report })
  const typed = checkNames(own, found, { known, report, isCsv: sections.isCsv, headerReport: row.report })
  const { kind, model, schema, input, documented } = found
  const all = { ...inherited, ...own }
  const inputOf = (of: ModelSchema | undefined): ModelInput => parametersOf(all, of, sections.isCsv)
  if (input !== undefined && !isObject(input)) report('input must be a map', 'input')
  const inexact = findInexact(all)
  if (inexact !== undefined)
    report(`${inexact.join('.')} cannot be sent as a number without a change: put it in quotes`, ...inexact)
  const result: ManifestRow = {
    ...{ kind, model, template, path, report },
    name: textOf('name', own.name, report),
    output: textOf('output', all.output, report),
    count: countOf(all.count, report),
    labels: labelsOf(all.label, report),
    hasOwnInput: input !== undefined,
    media: mediaParameters(schema),
    input: input === undefined ? inputOf(schema) : isObject(input) ? input : {},
    undocumentedInput:
      documented !== undefined && kind !== undefined && input === undefined
        ? inputOf(builtInSchema(kind))
        : undefined,
  }
  if (schema !== undefined) checkInput(result, found, schema, typed)
  return result
}

const withoutNull = (fields: Fields): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null))

interface CheckParts {
  readonly own: Fields
  readonly inherited: Fields
  readonly sections: Sections
  readonly report: ManifestRow['report']
}

function checkModel(found: RowModel, { own, inherited, sections, report }: CheckParts): void {
  const { kind, model, documented, schema } = found
  const isOwn = (own.kind ?? own.model) !== undefined
  const from = isOwn ? own : inherited
  if (from.kind !== undefined && !isKind(from.kind))
    report(unknownMessage('unknown kind', String(from.kind), KINDS), 'kind')
  if (from.model !== undefined && !isModel(from.model)) report(invalidModel(from.model), 'model')
  const document = model === undefined ? undefined : sections.documentOf(model)
  if (document !== undefined && isKind(from.kind) && from.kind !== document.kind)
    report(`the kind of ${document.name} is ${document.kind}, not ${from.kind}`, 'kind')
  const ofKind =
    kind && from.model === undefined ? (sections.models[kind] ?? sections.settings[kind]) : undefined
  const other = ofKind === undefined ? undefined : sections.documentOf(ofKind)
  if (other !== undefined && other.kind !== kind)
    report(`the ${kind} model is ${other.name}, whose kind is ${other.kind}`, 'kind')
  if (own.input !== undefined && kind !== undefined && from.kind !== undefined && isKind(from.kind))
    report(
      isOwn
        ? `input is only for runs without kind; put the parameters of ${documented ?? kind} directly in the run`
        : 'input needs a model in the same run',
      'input',
    )
  if (found.input !== undefined)
    for (const name of Object.keys(own))
      if (isParameter(schema, name) || PARAMETER_NAMES.includes(name))
        report(`${name} must be inside input`, name)
  if (kind !== undefined || from.kind !== undefined || (from.model !== undefined && model === undefined))
    return
  if (model === undefined && own.input === undefined) report(`kind is missing: ${KINDS.join(' or ')}`)
  else if (model === undefined) report('input needs a model in the same run', 'input')
  else if (found.input === undefined)
    report(
      `input is missing, and ${unknownParameters(model)}. Or give the whole input, or set kind (${KINDS.join(' or ')}) ` +
        'if it takes the same parameters',
    )
}

const unknownParameters = (model: string): string =>
  `the parameters of ${model} are not known here: \`rushes models --refresh\` asks the service`

interface NameParts {
  readonly known: ReadonlySet<string>
  readonly isCsv: boolean
  readonly report: ManifestRow['report']
  readonly headerReport: ReportProblem
}

/** Reports fields that the run cannot have. Returns the names that mistyped ones mean. */
function checkNames(
  own: Fields,
  found: RowModel,
  { known, isCsv, report, headerReport }: NameParts,
): ReadonlySet<string> {
  const { schema, documented, kind, model, input } = found
  const typed = new Set<string>()
  for (const name of Object.keys(own)) {
    if (OWN_FIELDS.includes(name) || isParameter(schema, name)) continue
    if (known.has(name)) {
      // Beside an `input`, and without a kind, the problem of the model names it.
      if (kind === undefined || input !== undefined) continue
      const others = kindsWith(name)
      report(
        documented === undefined && others.length > 0
          ? `the ${kind} model has no parameter "${name}"; the ${others.join(' and the ')} model has`
          : `${documented ?? `the ${kind} model`} has no parameter "${name}"`,
        name,
      )
      continue
    }
    const names =
      documented === undefined ? ROW_FIELDS : [...OWN_FIELDS, ...Object.keys(schema?.properties ?? {})]
    const near = nearest(name, names)
    if (near !== undefined) typed.add(near)
    const isUnknown = near === undefined && model !== undefined && documented === undefined
    // Without a schema and an input, one problem of the run names the model.
    if (isUnknown && schema === undefined && input === undefined) continue
    const message = `${unknownMessage('unknown field', name, names)}${isUnknown ? ` (${unknownParameters(model)})` : ''}`
    if (isCsv) headerReport([], message)
    else report(message, name)
  }
  return typed
}

function parametersOf(fields: Fields, schema: ModelSchema | undefined, isCsv: boolean): ModelInput {
  const names = Object.keys(schema?.properties ?? {}).filter((name) => isParameter(schema, name))
  return Object.fromEntries(
    names.flatMap((name) => {
      const of = schema?.properties[name]
      const value = fields[name]
      return of === undefined || value === undefined
        ? []
        : [[name, parameterValue(of, isCsv ? cellOf(of, value) : value)]]
    }),
  )
}

/** Converts a cell of CSV to the type of the schema. Spaces separate the items of a list. */
function cellOf(schema: ParameterSchema, cell: unknown): unknown {
  const text = String(cell)
  if (schema.type === 'array') return text.split(/\s+/).filter(Boolean)
  const parsed = schema.type === 'other' ? parseJson(text) : undefined
  return parsed?.ok ? parsed.value : valueOfText(schema, text)
}

/** Text needs no quotes, even if the format reads it as a number or a boolean: `duration: 5`, `prompt: 2024`. */
function parameterValue(schema: ParameterSchema, value: unknown): unknown {
  if (schema.type !== 'string' || typeof value === 'object') return value
  // YAML blocks end with a line end that is not part of the text. The last line end of a prompt file is dropped too.
  return listedValues(schema) === undefined ? String(value).replace(/\r?\n$/, '') : String(value)
}

/** `typed`: parameters whose mistyped names were reported, so that they are not missing too. */
function checkInput(
  row: ManifestRow,
  found: RowModel,
  schema: ModelSchema,
  typed: ReadonlySet<string>,
): void {
  const { kind, documented } = found
  const owner = documented ?? `${kind === 'image' ? 'an' : 'a'} ${kind}`
  const { input, hasOwnInput, report } = row
  for (const { parameter, message } of inputProblems(schema, input)) {
    const [name = '', item] = parameter.split('/')
    const at = [...(hasOwnInput ? ['input'] : []), name, ...(item === undefined ? [] : [Number(item)])]
    if (message !== 'is missing')
      report(
        `${name}${item === undefined ? '' : ` (entry ${Number(item) + 1})`} of ${owner} ${message}`,
        ...at,
      )
    else if (!hasOwnInput && !isParameter(schema, name))
      report(
        `${name} of ${owner} is missing: "${name}" is also a field of runs, so give the whole input in input`,
      )
    else if (!typed.has(name)) report(`${name} is missing`, ...(hasOwnInput ? ['input'] : []))
  }
  // A whole input may have parameters that the document does not list, but a mistyped one would be paid for.
  if (hasOwnInput && documented !== undefined)
    for (const { name, nearest: near } of unknownFields(schema, input))
      if (near !== undefined && !Object.hasOwn(input, near))
        report(`${documented} has no parameter "${name}". Did you mean "${near}"?`, 'input', name)
  if (typeof input.prompt === 'string' && input.prompt.trim() === '') report('prompt is blank', 'prompt')
}

const MAX_NAME_LENGTH = 1_000

function textOf(name: string, value: unknown, report: ManifestRow['report']): string | undefined {
  if (value === undefined) return undefined
  const text = typeof value === 'object' ? '' : String(value)
  if (typeof value === 'object') report(`${name} must be text`, name)
  else if (text.trim() === '') report(`${name} is blank`, name)
  else if (/[\u0000-\u001f\u007f-\u009f]/.test(text)) report(`${name} contains a control character`, name)
  else if (text.length > MAX_NAME_LENGTH) report(`${name} has more than ${MAX_NAME_LENGTH} characters`, name)
  else return text
  return undefined
}

function countOf(value: unknown, report: ManifestRow['report']): number {
  if (value === undefined) return 1
  const text = ['number', 'string'].includes(typeof value) ? String(value) : ''
  const count = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (count >= 1 && count <= MAX_RUNS) return count
  const shown = text === '' ? '' : `, not ${shortened(text, 40)}`
  report(`count must be a whole number from 1 to ${MAX_RUNS}${shown}`, 'count')
  return 1
}

/** Labels are not a part of the input: a changed label does not make a run out of date. */
function labelsOf(value: unknown, report: ManifestRow['report']): readonly string[] {
  if (value === undefined) return []
  const labels = new Set<string>()
  for (const item of Array.isArray(value) ? (value as readonly unknown[]) : [value]) {
    const isText = typeof item !== 'object'
    const label = isText ? asLabel(String(item)) : ''
    const problem = isText ? labelProblem(label) : 'label must be a text or a list of texts'
    if (problem !== undefined) report(problem, 'label')
    labels.add(label)
  }
  if (labels.size > MAX_LABELS) report(`a run must have at most ${MAX_LABELS} labels`, 'label')
  return [...labels]
}

/** Names of all fields that the runs may have: the built-in ones, and those of their models' documents. */
export const knownFields = (schemas: readonly (ModelSchema | undefined)[]): ReadonlySet<string> =>
  new Set([
    ...ROW_FIELDS,
    ...[...new Set(schemas)].flatMap((schema) => Object.keys(schema?.properties ?? {})),
  ])
