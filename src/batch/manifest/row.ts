/**
 * One run of a manifest: fills in the values of its matrix, merges the defaults into it, and checks it against the schema of
 * its model.
 */
import { writeJson } from '../../protocol/json.js'
import { type MediaParameters, mediaParameters } from '../../protocol/media-parameters.js'
import {
  builtInSchema,
  findInexact,
  type Kind,
  listedValues,
  type ModelInput,
  type ModelSchema,
  PARAMETER_NAMES,
  type ParameterSchema,
  valueOfText,
} from '../../protocol/models.js'
import { isObject, parseJson } from '../../protocol/parse.js'
import { asLabel, labelProblem, MAX_LABELS } from '../../protocol/text.js'
import { inputProblems, unknownFields } from '../../protocol/validate.js'
import {
  type Combination,
  combinationsOf,
  describe,
  fillField,
  isMistyped,
  isUsableInText,
} from './matrix.js'
import type { ParsedManifest } from './parse.js'
import { type Path, type Report, unknownMessage } from './problems.js'
import { type Fields, modelOf, type RowModel, type Sections, unknownParameters } from './sections.js'

/** Fields of a run that are not parameters. docs/schemas/manifest.json describes them. */
export const OWN_FIELDS: readonly string[] = [
  ...['name', 'kind', 'model', 'output', 'count', 'label', 'input', 'matrix', 'exclude'],
]

const ROW_FIELDS: readonly string[] = [...OWN_FIELDS, ...PARAMETER_NAMES]

/** Whether the schema has the parameter as a field of a run. Names of other fields are parameters only in `input`. */
const isParameter = (schema: ModelSchema | undefined, name: string): boolean =>
  schema !== undefined && Object.hasOwn(schema.properties, name) && !OWN_FIELDS.includes(name)

/** Maximum number of runs in a manifest, the same as for `rushes run --count`. */
export const MAX_RUNS = 10_000

/** The fields of a run, with the values of its matrix filled in. */
export interface WrittenRow {
  /** All combinations of a matrix share this object. */
  readonly path: Path
  readonly line: number
  readonly own: Fields
  /** The defaults that the run does not set itself. */
  readonly inherited: Fields
  readonly model: RowModel
  readonly report: Report
}

export interface ManifestRow extends Pick<WrittenRow, 'path' | 'line' | 'report'> {
  readonly kind: Kind | undefined
  readonly model: string | undefined
  readonly name: string | undefined
  /** Output as written, before its own placeholders are filled in. */
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
}

/** Returns a row for each combination of its matrix: none after the report of a problem of the matrix. */
export function writtenRows(
  { path, fields }: Sections['rows'][number],
  sections: Sections,
): readonly WrittenRow[] {
  const { defaults, problems, parsed } = sections
  const { matrix = null, exclude = null, ...own } = fields
  const reportFor =
    (set: Fields): Report =>
    (message, ...at) => {
      const [field] = at
      const isDefault = field !== undefined && !(field in set) && field in defaults
      problems.add(isDefault ? ['defaults', ...at] : [...path, ...at], message)
    }
  const report = reportFor(fields)
  const line = parsed.lineOf(path)
  if (matrix === null) {
    if (exclude !== null) report('exclude needs a matrix in the same run', 'exclude')
    const inherited = without(defaults, (name) => name in own)
    const model = modelOf(own, inherited, sections)
    return [{ path, line, own, inherited, model, report }]
  }
  let isValid = true
  const refuse: Report = (...problem) => {
    isValid = false
    report(...problem)
  }
  // Most problems are repeated by the other combinations.
  const firstAt = new Map<string, Combination>()
  const rows = combinationsOf(matrix, exclude, refuse).map((combination): WrittenRow => {
    const filled = fillRow(own, combination, sections, refuse)
    const reportFilled = reportFor(filled.own)
    return {
      path,
      line,
      ...filled,
      report(message, ...at) {
        const place = at.join('\n')
        if (!firstAt.has(place)) firstAt.set(place, combination)
        if (firstAt.get(place) === combination) reportFilled(`${message} (${describe(combination)})`, ...at)
      },
    }
  })
  return isValid ? rows : []
}

/** Sets the fields that are keys of the matrix, and fills in the others. */
function fillRow(
  own: Fields,
  combination: Combination,
  sections: Sections,
  refuse: Report,
): Pick<WrittenRow, 'own' | 'inherited' | 'model'> {
  const fillOne = (field: string, value: unknown): unknown =>
    field === 'count' ? value : fillField(field, value, combination, (message) => refuse(message, field))
  const fillAll = (fields: Fields): Record<string, unknown> =>
    Object.fromEntries(Object.entries(fields).map(([field, value]) => [field, fillOne(field, value)]))
  const filled = fillAll(own)
  const inherited = fillAll(without(sections.defaults, (name) => name in own || combination.has(name)))
  const set = (key: string) => {
    if ((own[key] ?? null) !== null) refuse(`${key} is also a key of the matrix: remove one of them`, key)
    filled[key] = fillOne(key, combination.get(key))
  }
  // Kind and model say what the other keys are.
  for (const key of combination.keys()) if (ROW_FIELDS.includes(key)) set(key)
  const model = modelOf(filled, inherited, sections)
  for (const [key, value] of combination)
    if (ROW_FIELDS.includes(key)) continue
    else if (isParameter(model.schema, key)) set(key)
    else if (!isUsableInText(value))
      refuse(`each value of ${key} must be a text, a number, or a map of them`, 'matrix', key)
    else {
      const meant = parameterMeantBy(key, { ...sections.defaults, ...own }, model.schema)
      if (meant !== undefined)
        refuse(`no text of the run uses {${key}}. Did you mean "${meant}"?`, 'matrix', key)
    }
  return { own: filled, inherited, model }
}

/** Finds the parameter that an unused key resembles: its combinations would be runs of one input, each paid for. */
function parameterMeantBy(
  key: string,
  { name: _name, output: _output, label: _label, ...texts }: Fields,
  schema: ModelSchema | undefined,
): string | undefined {
  const text = writeJson(texts)
  if (text.includes(`{${key}}`) || text.includes(`{${key}.`)) return undefined
  return Object.keys(schema?.properties ?? {}).find((each) => isMistyped(key, each))
}

/** Returns the fields that have a value, without those that `isLeftOut`. */
const without = (fields: Fields, isLeftOut: (name: string) => boolean = () => false): Fields =>
  Object.fromEntries(Object.entries(fields).filter(([name, value]) => value !== null && !isLeftOut(name)))

/** Names of all fields that the runs may have: the built-in ones, and those of their models' documents. */
export const knownFields = (rows: readonly WrittenRow[]): ReadonlySet<string> => {
  const schemas = new Set(rows.map(({ model }) => model.schema))
  return new Set([...ROW_FIELDS, ...[...schemas].flatMap((schema) => Object.keys(schema?.properties ?? {}))])
}

export function readRow(row: WrittenRow, { isCsv }: ParsedManifest): ManifestRow {
  const { inherited, model: found, report, path, line } = row
  const { kind, model, schema, input, problem, document } = found
  const own = without(row.own)
  if (problem !== undefined) report(...problem)
  const all = { ...inherited, ...own }
  if (input !== undefined && !isObject(input)) report('input must be a map', 'input')
  const inexact = findInexact(all)
  if (inexact !== undefined)
    report(`${inexact.join('.')} cannot be sent as a number without a change: put it in quotes`, ...inexact)
  const inputOf = (of: ModelSchema | undefined) => parametersOf(all, of, isCsv)
  const isDocumented = input === undefined && document !== undefined && kind !== undefined
  const result: ManifestRow = {
    path,
    line,
    report,
    kind,
    model,
    name: textOf('name', own.name, report),
    output: textOf('output', all.output, report),
    count: countOf(all.count, report),
    labels: labelsOf(all.label, report),
    hasOwnInput: input !== undefined,
    media: mediaParameters(schema),
    input: input === undefined ? inputOf(schema) : isObject(input) ? input : {},
    undocumentedInput: isDocumented ? inputOf(builtInSchema(kind)) : undefined,
  }
  if (problem === undefined) {
    checkNames(own, found, report)
    checkInput(result, found)
  }
  return result
}

/** Reports fields that the run cannot have. */
function checkNames(own: Fields, { schema, document, kind, model, input }: RowModel, report: Report): void {
  const names = [...OWN_FIELDS, ...Object.keys(schema?.properties ?? {})]
  const hint = document === undefined && model !== undefined ? ` (${unknownParameters(model)})` : ''
  for (const name of Object.keys(own)) {
    if (OWN_FIELDS.includes(name) || (input === undefined && isParameter(schema, name))) continue
    if (input !== undefined) report(`${name} must be inside input`, name)
    else
      report(
        `${unknownMessage(`${document?.name ?? `the ${kind} model`} has no field`, name, names)}${hint}`,
        name,
      )
  }
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

function checkInput({ input, hasOwnInput, report }: ManifestRow, { schema, document, kind }: RowModel): void {
  if (schema === undefined) return
  const owner = document?.name ?? `${kind === 'image' ? 'an' : 'a'} ${kind}`
  const place: Path = hasOwnInput ? ['input'] : []
  for (const { parameter, message } of inputProblems(schema, input)) {
    const [name = '', item] = parameter.split('/')
    const entry = item === undefined ? '' : ` (entry ${Number(item) + 1})`
    const at = item === undefined ? [name] : [name, Number(item)]
    if (message === 'is missing') report(`${name} is missing`, ...place)
    else report(`${name}${entry} of ${owner} ${message}`, ...place, ...at)
  }
  // A whole input may have parameters that the document does not list, but a mistyped one would be paid for.
  if (hasOwnInput && document !== undefined)
    for (const { name, nearest: near } of unknownFields(schema, input))
      if (near !== undefined && !Object.hasOwn(input, near))
        report(`${document.name} has no parameter "${name}". Did you mean "${near}"?`, 'input', name)
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
