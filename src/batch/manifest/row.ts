/** Reads one row: merges the defaults into it, and checks it against the schema of its model. */
import { asLabel, labelProblem, MAX_LABELS } from '../../protocol/labels.js'
import type { Kind, ModelInput, ModelSchema, ParameterSchema } from '../../protocol/models.js'
import { builtInSchema, kindsWith, listedValues, valueOfText } from '../../protocol/parameters.js'
import { nearest, shortened } from '../../protocol/text.js'
import { inputProblems, unknownFields } from '../../protocol/validate.js'
import { NO_INCLUDE } from './combinations.js'
import {
  type Field,
  type FieldMap,
  isNull,
  lostDigitsIn,
  type MapNode,
  type Node,
  type Position,
  plainValue,
  type ReportProblem,
  type Scalar,
  scalar,
} from './nodes.js'
import { modelOfRow, type RowModel, unknownParameters } from './row-model.js'
import { isParameter, MAX_RUNS, OWN_FIELDS, ROW_FIELDS, type Sections, unknownMessage } from './sections.js'

export interface ManifestRow {
  readonly kind: Kind | undefined
  readonly model: string | undefined
  readonly at: Position
  readonly name: string | undefined
  /** Output as written, before placeholders are filled in. */
  readonly output: string | undefined
  /** Whether `output` comes from the defaults, so that several rows share it. */
  readonly isOutputShared: boolean
  readonly count: number
  /** Without duplicates. */
  readonly labels: readonly string[]
  /** Whether the row itself has an `input`, which is sent unchanged. */
  readonly hasOwnInput: boolean
  /** Input as written: local images are paths. */
  readonly input: ModelInput
  /**
   * The input that the row had before the document of its model was known. A run that was made with it is not paid again
   * because a service now describes the model.
   */
  readonly undocumentedInput: ModelInput | undefined
  /** Returns the position of a field for later problems. The position of the row if the field is absent. */
  positionOf(name: string, item?: number): Position
}

/** `addedKeys`: keys of the matrix that set a parameter only because of a document. */
export function readRow(
  node: MapNode,
  sections: Sections,
  report: ReportProblem,
  addedKeys: readonly string[] = [],
): ManifestRow {
  const own = new Map([...node.fields].filter(([, { value }]) => !isNull(value)))
  const subject = modelOfRow(own, sections, node.at, report)
  for (const [name, { at }] of own) {
    const wrong = nameProblem(name, subject, own)
    if (wrong !== undefined) report(at, wrong)
  }
  const { schema, kind } = subject
  const fields =
    schema === undefined || subject.input
      ? own
      : withDefaults(own, node, { ...subject, schema }, sections, report)
  const output = own.get('output') ?? defaultUnlessGiven(node, 'output', sections)
  const count = own.get('count') ?? defaultUnlessGiven(node, 'count', sections)
  const label = own.get('label') ?? defaultUnlessGiven(node, 'label', sections)
  const row: ManifestRow = {
    kind: subject.kind,
    model: subject.model,
    at: node.at,
    name: textOf('name', own.get('name'), report),
    output: textOf('output', output, report),
    isOutputShared: output !== undefined && output !== own.get('output'),
    count: countOf(count, report),
    labels: labelsOf(label, report),
    hasOwnInput: subject.input !== undefined,
    input: subject.input ?? inputOf(fields, subject, sections.isCsv, report),
    undocumentedInput: undocumentedInput(),
    positionOf(name, item) {
      const value = (name === 'output' ? output : (fields.get(name) ?? own.get(name)))?.value
      const found = item !== undefined && value?.type === 'list' ? value.items[item] : value
      return found?.at ?? node.at
    },
  }
  if (schema !== undefined) checkInput(row, schema, subject, report)
  return row

  function undocumentedInput(): ModelInput | undefined {
    if (subject.documented === undefined || schema === undefined || kind === undefined || subject.input)
      return undefined
    const properties = { ...schema.properties, ...builtInSchema(kind).properties }
    const before = { ...subject, schema: { ...schema, properties } }
    const written = new Map([...own].filter(([name]) => !addedKeys.includes(name)))
    return inputOf(withDefaults(written, node, before, sections), before, sections.isCsv)
  }
}

/** Returns the problem with the name of a field, if any. */
function nameProblem(name: string, subject: RowModel, own: FieldMap): string | undefined {
  const { schema, documented, kind, model, inputNode } = subject
  if (OWN_FIELDS.includes(name) || isParameter(schema, name)) return undefined
  if (name === 'include') return NO_INCLUDE
  if (documented !== undefined && schema !== undefined && !own.has('input')) {
    const names = Object.keys(schema.properties).filter((each) => isParameter(schema, each))
    const near = nearest(name, names)
    if (near !== undefined || nearest(name, OWN_FIELDS) === undefined)
      return unknownMessage(`${documented} has no parameter`, name, names)
  }
  if (!ROW_FIELDS.includes(name)) {
    const isKnown = model === undefined || documented !== undefined || nearest(name, ROW_FIELDS) !== undefined
    const unknown = isKnown ? '' : ` (${unknownParameters(model)})`
    // Without a schema and an input, one problem of the row names the model.
    if (unknown !== '' && schema === undefined && inputNode === undefined) return undefined
    return `${unknownMessage('unknown field', name, ROW_FIELDS)}${unknown}`
  }
  // Parameters beside `input`, and those of a row without a kind, are reported with the model of the row.
  if (kind === undefined || own.has('input')) return undefined
  return `the ${kind} model has no parameter "${name}"; the ${kindsWith(name).join(' and the ')} model has`
}

/** Returns a field of the defaults, unless the row has the field. `null` counts as having it. */
const defaultUnlessGiven = ({ fields }: MapNode, name: string, { defaults }: Sections): Field | undefined => {
  const found = fields.has(name) ? undefined : defaults.get(name)
  return found === undefined || isNull(found.value) ? undefined : found
}

/**
 * Adds the defaults that are parameters of the row's model: other rows may have another model. A default of the other
 * kind, such as `resolution` for images, meant nothing to the row before a document had it, and is never added.
 */
function withDefaults(
  own: FieldMap,
  node: MapNode,
  { schema, kind, documented }: DocumentedModel,
  sections: Sections,
  report: ReportProblem = () => {},
): FieldMap {
  const fields = new Map(own)
  const hasOwnModel = own.has('kind') || own.has('model')
  for (const name of Object.keys(schema.properties)) {
    const field = isParameter(schema, name) ? defaultUnlessGiven(node, name, sections) : undefined
    const kinds = kindsWith(name)
    if (field === undefined) continue
    if (kinds.length === 0 || kinds.some((each) => each === kind)) fields.set(name, field)
    else if (!hasOwnModel)
      report(
        field.at,
        `the default ${name} is for the ${kinds.join(' and the ')} model, but ${documented} has that parameter too: ` +
          `set it in each row (null leaves it out)`,
      )
  }
  return fields
}

interface DocumentedModel extends RowModel {
  readonly schema: ModelSchema
}

function inputOf(
  fields: FieldMap,
  { schema, documented }: RowModel,
  isCsv: boolean,
  report: ReportProblem = () => {},
): ModelInput {
  const parameters = Object.entries(schema?.properties ?? {}).flatMap(([name, each]) => {
    const written = isParameter(schema, name) ? fields.get(name)?.value : undefined
    if (written === undefined) return []
    if (isCsv && each.type === 'other')
      report(
        written.at,
        `CSV cannot hold ${name} of ${documented}: write the manifest in YAML or JSON, or use input`,
      )
    const value = isCsv && written.type === 'scalar' ? typedCell(each, written) : written
    if (!isText(each)) for (const problem of lostDigitsIn(value)) report(problem, problem.message)
    return [[name, parameterValue(each, value)] as const]
  })
  return Object.fromEntries(parameters)
}

/** Converts a cell of CSV to the type of the schema. Spaces separate the items of a list. */
function typedCell(schema: ParameterSchema, { text, at }: Scalar): Node {
  if (schema.type !== 'array') return scalar(valueOfText(schema, text), at, text)
  const items = text.split(/\s+/).flatMap((each) => (each === '' ? [] : [scalar(each, at)]))
  return { type: 'list', items, at }
}

/** Whether the parameter is free text. A number in such a field keeps its digits. */
const isText = (schema: ParameterSchema): boolean =>
  schema.type === 'string' && listedValues(schema) === undefined

/**
 * Returns the value of a parameter. Text needs no quotes, even if the format reads it as a number or a boolean:
 * `duration: 5`, `prompt: 2024`.
 */
function parameterValue(schema: ParameterSchema, value: Node): unknown {
  if (value.type !== 'scalar') return plainValue(value)
  // YAML blocks end with a line end that is not part of the text. The last line end of a prompt file is dropped too.
  if (isText(schema)) return value.text.replace(/\r?\n$/, '')
  return schema.type === 'string' ? String(value.value) : value.value
}

function checkInput(row: ManifestRow, schema: ModelSchema, subject: RowModel, report: ReportProblem): void {
  const { kind, documented, inputNode } = subject
  const whole = inputNode?.type === 'fields' ? inputNode : undefined
  const owner = documented ?? `${article(kind)} ${kind}`
  const positionOf = (name: string, item?: number): Position => {
    if (!row.hasOwnInput) return row.positionOf(name, item)
    const value = whole?.fields.get(name)?.value
    const entry = item !== undefined && value?.type === 'list' ? value.items[item] : value
    return entry?.at ?? inputNode?.at ?? row.at
  }
  for (const { parameter, message } of inputProblems(schema, row.input)) {
    const [name = '', item] = parameter.split('/')
    const place = item === undefined ? name : `${name} (entry ${Number(item) + 1})`
    const isMissing = message === 'is missing'
    const inInput = isMissing && !row.hasOwnInput && !isParameter(schema, name)
    report(
      positionOf(inInput ? '' : name, item === undefined ? undefined : Number(item)),
      inInput
        ? `${name} of ${owner} is missing: "${name}" is also a field of rows, so give the whole input in input`
        : isMissing
          ? `${name} is missing`
          : `${place} of ${owner} ${message}`,
    )
  }
  // A whole input may have parameters that the document does not list, but a mistyped one would be paid for.
  if (row.hasOwnInput && documented !== undefined)
    for (const { name, nearest: near } of unknownFields(schema, row.input))
      if (near !== undefined && !Object.hasOwn(row.input, near))
        report(
          whole?.fields.get(name)?.at ?? row.at,
          `${documented} has no parameter "${name}". Did you mean "${near}"?`,
        )
  if (typeof row.input.prompt === 'string' && row.input.prompt.trim() === '')
    report(positionOf('prompt'), 'prompt is blank')
}

const article = (kind: Kind | undefined): string => (/^[aeiou]/.test(kind ?? '') ? 'an' : 'a')

function textOf(name: string, field: Field | undefined, report: ReportProblem): string | undefined {
  if (field === undefined) return undefined
  const { value } = field
  if (value.type !== 'scalar') report(value.at, `${name} must be text`)
  else if (value.text.trim() === '') report(value.at, `${name} is blank`)
  else if (/[\u0000-\u001f\u007f-\u009f]/.test(value.text))
    report(value.at, `${name} contains a control character`)
  else if (value.text.length > MAX_NAME_LENGTH)
    report(value.at, `${name} has more than ${MAX_NAME_LENGTH} characters`)
  else return value.text
  return undefined
}

const MAX_NAME_LENGTH = 1_000

function countOf(field: Field | undefined, report: ReportProblem): number {
  if (field === undefined) return 1
  const { value } = field
  const text = value.type === 'scalar' && typeof value.value !== 'boolean' ? String(value.value) : ''
  const count = /^\d{1,5}$/.test(text) ? Number(text) : 0
  if (count >= 1 && count <= MAX_RUNS) return count
  report(
    value.at,
    `count must be a whole number from 1 to ${MAX_RUNS}${text === '' ? '' : `, not ${shortened(text, 40)}`}`,
  )
  return 1
}

/** Labels are not a part of the input: a changed label does not make a row out of date. */
function labelsOf(field: Field | undefined, report: ReportProblem): readonly string[] {
  if (field === undefined) return []
  const { value } = field
  const labels = new Set<string>()
  for (const item of value.type === 'list' ? value.items : [value]) {
    const isText = item.type === 'scalar' && !isNull(item)
    const label = isText ? asLabel(item.text) : ''
    const problem = isText ? labelProblem(label) : 'label must be a text or a list of texts'
    if (problem !== undefined) report(item.at, problem)
    labels.add(label)
  }
  if (labels.size > MAX_LABELS) report(value.at, `a row must have at most ${MAX_LABELS} labels`)
  return [...labels]
}
