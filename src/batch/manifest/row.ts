/**
 * One run of a manifest: fills in the values of its matrix, merges the defaults into it, and checks it against the schema of
 * its model.
 */
import { writeJson } from '../../protocol/json.js'
import { type MediaParameters, mediaParameters } from '../../protocol/media-parameters.js'
import {
  builtInSchema,
  findInexact,
  isModelName,
  KINDS,
  type Kind,
  listedValues,
  type ModelDocument,
  type ModelInput,
  type ModelSchema,
  PARAMETER_NAMES,
  type ParameterSchema,
  valueOfText,
} from '../../protocol/models.js'
import { parseJson } from '../../protocol/parse.js'
import { asLabel, didYouMean, labelProblem, MAX_LABELS } from '../../protocol/text.js'
import { inputProblems, isKind, MISSING } from '../../protocol/validate.js'
import { type Combination, combinationsOf, describe, fillField, isUsableInText } from './matrix.js'
import { type ParsedManifest, type Path, type Problems, type Report, unknownMessage } from './parse.js'

/** Fields of a run that are not parameters. docs/schemas/manifest.json describes them. */
export const OWN_FIELDS: readonly string[] = [
  ...['name', 'kind', 'model', 'output', 'count', 'label', 'matrix', 'exclude'],
]

const ROW_FIELDS: readonly string[] = [...OWN_FIELDS, ...PARAMETER_NAMES]

/** Whether the schema has the parameter as a field of a run. One with the name of another field cannot be set. */
const isParameter = (schema: ModelSchema, name: string): boolean =>
  Object.hasOwn(schema.properties, name) && !OWN_FIELDS.includes(name)

/** Maximum number of runs in a manifest, the same as for `rushes run --count`. */
export const MAX_RUNS = 10_000

export type Models = Readonly<Partial<Record<Kind, string>>>

export type Fields = Readonly<Record<string, unknown>>

/** What the caller knows of the models. */
export interface ModelSources {
  /** Returns the document of a model, if it is known. */
  documentOf(model: string): ModelDocument | undefined
  /** Models for kinds without a model in the manifest. */
  readonly settings: Models
}

/** What all runs of a manifest share. */
export interface RowContext extends ModelSources {
  readonly parsed: ParsedManifest
  readonly problems: Problems
  readonly models: Models
  readonly defaults: Fields
}

/** A run as written, with the values of its matrix filled in. */
export interface ManifestRow {
  /** All combinations of a matrix share this object. */
  readonly path: Path
  readonly line: number
  readonly report: Report
  readonly kind: Kind
  readonly model: string | undefined
  readonly schema: ModelSchema
  readonly name: string | undefined
  /** Output as written, before its own placeholders are filled in. */
  readonly output: string | undefined
  readonly count: number
  /** Without duplicates. */
  readonly labels: readonly string[]
  /** Input as written: local files are paths. */
  readonly input: ModelInput
  /** The input before the document of its model was known. Undefined without a document. */
  readonly undocumentedInput: ModelInput | undefined
  readonly media: MediaParameters
}

/** Returns a row for each combination of its matrix: none after the report of a problem of the matrix or the model. */
export function rowsOf(path: Path, fields: Fields, context: RowContext): readonly ManifestRow[] {
  const { defaults, problems, parsed } = context
  const { matrix = null, exclude = null, ...own } = fields
  const at = { path, line: parsed.lineOf(path) }
  const reportFor =
    (set: Fields): Report =>
    (message, ...place) => {
      const [field] = place
      const isDefault = field !== undefined && !(field in set) && field in defaults
      problems.add(isDefault ? ['defaults', ...place] : [...path, ...place], message)
    }
  const report = reportFor(fields)
  if (matrix === null) {
    if (exclude !== null) report('exclude needs a matrix in the same run', 'exclude')
    const inherited = without(defaults, (name) => name in own)
    return readRow({ own, inherited, model: modelOf(own, inherited, context) }, { ...at, report }, parsed)
  }
  let isValid = true
  const refuse: Report = (...problem) => {
    isValid = false
    report(...problem)
  }
  const filled = combinationsOf(matrix, exclude, refuse).map((combination) => ({
    combination,
    row: fillRow(own, combination, context, refuse),
  }))
  if (!isValid) return []
  // Most problems are repeated by the other combinations.
  const firstAt = new Map<string, Combination>()
  return filled.flatMap(({ combination, row }) => {
    const reportFilled = reportFor(row.own)
    const reportOnce: Report = (message, ...place) => {
      const key = place.join('\n')
      if (!firstAt.has(key)) firstAt.set(key, combination)
      if (firstAt.get(key) === combination) reportFilled(`${message} (${describe(combination)})`, ...place)
    }
    return readRow(row, { ...at, report: reportOnce }, parsed)
  })
}

/** The fields of a run, and the model that they belong to. */
interface RowFields {
  readonly own: Fields
  /** The defaults that the run does not set itself. */
  readonly inherited: Fields
  readonly model: RowModel | Problem
}

/** Sets the fields that are keys of the matrix, and fills in the others. */
function fillRow(own: Fields, combination: Combination, context: RowContext, refuse: Report): RowFields {
  const fillOne = (field: string, value: unknown): unknown =>
    field === 'count' ? value : fillField(field, value, combination, (message) => refuse(message, field))
  const fillAll = (fields: Fields): Record<string, unknown> =>
    Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, fillOne(field, value)]))
  const filled = fillAll(own)
  const inherited = fillAll(without(context.defaults, (name) => name in own || combination.has(name)))
  const set = (key: string) => {
    if ((own[key] ?? null) !== null) refuse(`${key} is also a key of the matrix: remove one of them`, key)
    filled[key] = fillOne(key, combination.get(key))
  }
  // Kind and model say what the other keys are.
  for (const key of combination.keys()) if (ROW_FIELDS.includes(key)) set(key)
  const model = modelOf(filled, inherited, context)
  const texts = writeJson({ ...context.defaults, ...own, name: 0, output: 0, label: 0 })
  for (const [key, value] of combination)
    if (ROW_FIELDS.includes(key)) continue
    else if ('schema' in model && isParameter(model.schema, key)) set(key)
    else if (!isUsableInText(value))
      refuse(`each value of ${key} must be a text, a number, or a map of them`, 'matrix', key)
    else if ('schema' in model && ![`{${key}}`, `{${key}.`].some((use) => texts.includes(use))) {
      // Its combinations would be runs of one input, each paid for.
      const meant = didYouMean(key, Object.keys(model.schema.properties))
      if (meant !== '') refuse(`no text of the run uses {${key}}.${meant}`, 'matrix', key)
    }
  return { own: filled, inherited, model }
}

/** Returns the fields that have a value, without those that `isLeftOut`. */
const without = (fields: Fields, isLeftOut: (name: string) => boolean = () => false): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name, value]) => value !== null && !isLeftOut(name)))

/** Names of all fields that the runs may have: the built-in ones, and those of their models' documents. */
export const knownFields = (rows: readonly ManifestRow[]): readonly string[] => {
  const schemas = new Set(rows.map(({ schema }) => schema))
  const ofModels = [...schemas].flatMap((schema) => Object.keys(schema.properties))
  return [...new Set([...ROW_FIELDS, ...ofModels])]
}

function readRow(
  { own: written, inherited, model: found }: RowFields,
  at: Pick<ManifestRow, 'path' | 'line' | 'report'>,
  { isCsv }: ParsedManifest,
): readonly ManifestRow[] {
  const { report } = at
  if (!('schema' in found)) {
    report(...found)
    return []
  }
  const { kind, model, schema, document } = found
  const own = without(written)
  const all = { ...inherited, ...own }
  const inexact = findInexact(all)
  if (inexact !== undefined)
    report(`${inexact.join('.')} cannot be sent as a number without a change: put it in quotes`, ...inexact)
  const inputOf = (of: ModelSchema) => parametersOf(all, of, isCsv)
  const row: ManifestRow = {
    ...at,
    kind,
    model,
    schema,
    name: textOf('name', own.name, report),
    output: textOf('output', all.output, report),
    count: countOf(all.count, report),
    labels: labelsOf(all.label, report),
    media: mediaParameters(schema),
    input: inputOf(schema),
    undocumentedInput: document && inputOf(builtInSchema(kind)),
  }
  checkNames(own, found, report)
  checkInput(row, document)
  return [row]
}

/** Reports fields that the run cannot have. */
function checkNames(own: Fields, { schema, document, kind, model }: RowModel, report: Report): void {
  const names = [...new Set([...OWN_FIELDS, ...Object.keys(schema.properties)])]
  const hint = document === undefined && model !== undefined ? ` (${unknownParameters(model)})` : ''
  for (const name of Object.keys(own))
    if (!names.includes(name))
      report(
        `${unknownMessage(`${document?.name ?? `the ${kind} model`} has no field`, name, names)}${hint}`,
        name,
      )
}

function parametersOf(fields: Fields, schema: ModelSchema, isCsv: boolean): ModelInput {
  const parameters = Object.entries(schema.properties).filter(
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

function checkInput({ input, schema, kind, report }: ManifestRow, document: ModelDocument | undefined): void {
  const owner = document?.name ?? `${kind === 'image' ? 'an' : 'a'} ${kind}`
  for (const { parameter, message } of inputProblems(schema, input)) {
    const [name = '', item] = parameter.split('/')
    const entry = item === undefined ? '' : ` (entry ${Number(item) + 1})`
    const at = item === undefined ? [name] : [name, Number(item)]
    if (message === MISSING) report(`${name} ${MISSING}`)
    else report(`${name}${entry} of ${owner} ${message}`, ...at)
  }
  if (typeof input.prompt === 'string' && input.prompt.trim() === '') report('prompt is blank', 'prompt')
}

const MAX_NAME_LENGTH = 1_000

function textOf(name: string, value: unknown, report: Report): string | undefined {
  if (value === undefined) return undefined
  const text = typeof value === 'object' ? '' : String(value)
  if (text.trim() !== '' && text.length <= MAX_NAME_LENGTH && !/\p{Cc}/u.test(text)) return text
  report(`${name} must be a text of 1 to ${MAX_NAME_LENGTH} characters, without control characters`, name)
  return undefined
}

function countOf(value: unknown, report: Report): number {
  if (value === undefined) return 1
  const text = ['number', 'string'].includes(typeof value) ? String(value) : ''
  const count = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (count >= 1 && count <= MAX_RUNS) return count
  report(`count must be a whole number from 1 to ${MAX_RUNS}`, 'count')
  return 1
}

/** Labels are not a part of the input: a changed label does not make a run out of date. */
function labelsOf(value: unknown, report: Report): readonly string[] {
  const labels = new Set<string>()
  for (const item of [value ?? []].flat() as readonly unknown[]) {
    const label = typeof item === 'object' ? undefined : asLabel(String(item))
    const problem = label === undefined ? 'label must be a text or a list of texts' : labelProblem(label)
    if (problem !== undefined) report(problem, 'label')
    else if (label !== undefined) labels.add(label)
  }
  if (labels.size > MAX_LABELS) report(`a run must have at most ${MAX_LABELS} labels`, 'label')
  return [...labels]
}

const asText = (value: unknown): string => (typeof value === 'string' ? value : writeJson(value))

export const isModel = (value: unknown): value is string => typeof value === 'string' && isModelName(value)

export const invalidModel = (value: unknown): string =>
  `${typeof value === 'string' ? `"${value}"` : 'this'} is not a valid model identifier (expected <provider>/<name>)`

/** The model of a run. */
interface RowModel {
  readonly kind: Kind
  /** Undefined if the manifest has no model for the run. The settings or the lock file may have one. */
  readonly model: string | undefined
  readonly schema: ModelSchema
  /** Undefined for the built-in schema of the kind. */
  readonly document: ModelDocument | undefined
}

/** What is wrong, and the field. */
type Problem = readonly [message: string, ...Path]

/** A run with its own kind or model takes neither from the defaults, since kind and model belong together. */
function modelOf(own: Fields, defaults: Fields, context: RowContext): RowModel | Problem {
  const { models, settings, documentOf } = context
  const isOwn = (own.kind ?? own.model ?? null) !== null
  const { kind: writtenKind = null, model: writtenModel = null } = isOwn ? own : defaults
  if (writtenKind !== null && !(typeof writtenKind === 'string' && isKind(writtenKind)))
    return [unknownMessage('unknown kind', asText(writtenKind), KINDS), 'kind']
  if (writtenModel !== null && !isModel(writtenModel)) return [invalidModel(writtenModel), 'model']
  const model = writtenModel ?? undefined
  const named = [
    writtenKind,
    KINDS.find((each) => model !== undefined && models[each] === model),
    // Of a model that is not known.
    defaults.kind,
  ].find((each): each is Kind => typeof each === 'string' && isKind(each))
  const document = documentOf(model ?? (named && (models[named] ?? settings[named])) ?? '')
  const kind = document?.kind ?? named
  if (kind === undefined)
    return model === undefined
      ? [`kind is missing: ${KINDS.join(' or ')}`]
      : [`${unknownParameters(model)}. Or set kind (${KINDS.join(' or ')}) if it takes the same parameters`]
  if (document !== undefined && writtenKind !== null && writtenKind !== document.kind)
    return [`the kind of ${document.name} is ${document.kind}, not ${writtenKind}`, 'kind']
  return {
    kind,
    model: model ?? models[kind],
    schema: document?.input ?? builtInSchema(kind),
    document,
  }
}

const unknownParameters = (model: unknown): string =>
  `the parameters of ${model} are not known here: \`rushes models --refresh\` asks the service`
