/** Reads one row: merges the defaults into it, and checks it against the schema of its model. */
import {
  isModelName,
  KINDS,
  type Kind,
  type ModelInput,
  type ParameterSchema,
} from '../../protocol/models.js'
import { builtInSchema, kindsWith, listedValues, PARAMETER_NAMES } from '../../protocol/parameters.js'
import { shortened } from '../../protocol/text.js'
import { inputProblems, isKind } from '../../protocol/validate.js'
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
} from './nodes.js'
import { invalidModelMessage, MAX_RUNS, ROW_FIELDS, type Sections, unknownMessage } from './sections.js'

export interface ManifestRow extends Omit<RowModel, 'input'> {
  readonly at: Position
  readonly name: string | undefined
  /** Output as written, before placeholders are filled in. */
  readonly output: string | undefined
  /** Whether `output` comes from the defaults, so that several rows share it. */
  readonly isOutputShared: boolean
  readonly count: number
  /** Whether the row itself has an `input`, which is sent unchanged. */
  readonly hasOwnInput: boolean
  /** Input as written: local images are paths. */
  readonly input: ModelInput
  /** Returns the position of a field for later problems. The position of the row if the field is absent. */
  positionOf(name: string, item?: number): Position
}

export function readRow(node: MapNode, sections: Sections, report: ReportProblem): ManifestRow {
  const own = new Map([...node.fields].filter(([, { value }]) => !isNull(value)))
  for (const [name, { at }] of own)
    if (!ROW_FIELDS.includes(name))
      report(at, name === 'include' ? NO_INCLUDE : unknownMessage('unknown field', name, ROW_FIELDS))
  const subject = modelOfRow(own, sections, node.at, report)
  const fields = subject.kind === undefined ? own : withDefaults(own, node, subject.kind, sections)
  const output = own.get('output') ?? defaultUnlessGiven(node, 'output', sections)
  const count = own.get('count') ?? defaultUnlessGiven(node, 'count', sections)
  const row: ManifestRow = {
    kind: subject.kind,
    model: subject.model,
    at: node.at,
    name: textOf('name', own.get('name'), report),
    output: textOf('output', output, report),
    isOutputShared: output !== undefined && output !== own.get('output'),
    count: countOf(count, report),
    hasOwnInput: subject.input !== undefined,
    input: subject.input ?? inputOf(fields, subject.kind, report),
    positionOf(name, item) {
      const value = (name === 'output' ? output : (fields.get(name) ?? own.get(name)))?.value
      const found = item !== undefined && value?.type === 'list' ? value.items[item] : value
      return found?.at ?? node.at
    },
  }
  if (row.kind !== undefined) checkInput(row, row.kind, own, report)
  return row
}

/** Returns a field of the defaults, unless the row has the field. `null` counts as having it. */
const defaultUnlessGiven = ({ fields }: MapNode, name: string, { defaults }: Sections): Field | undefined => {
  const found = fields.has(name) ? undefined : defaults.get(name)
  return found === undefined || isNull(found.value) ? undefined : found
}

/**
 * Adds the default parameters of the row's kind only: a manifest with videos may have a default `quality` for its
 * images.
 */
function withDefaults(own: FieldMap, node: MapNode, kind: Kind, sections: Sections): FieldMap {
  const fields = new Map(own)
  for (const name of Object.keys(builtInSchema(kind).properties)) {
    const field = defaultUnlessGiven(node, name, sections)
    if (field !== undefined) fields.set(name, field)
  }
  return fields
}

function inputOf(fields: FieldMap, kind: Kind | undefined, report: ReportProblem): ModelInput {
  if (kind === undefined) return {}
  const parameters = Object.entries(builtInSchema(kind).properties).flatMap(([name, schema]) => {
    const value = fields.get(name)?.value
    if (value === undefined) return []
    if (!isText(schema)) for (const problem of lostDigitsIn(value)) report(problem, problem.message)
    return [[name, parameterValue(schema, value)] as const]
  })
  return Object.fromEntries(parameters)
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

function checkInput(row: ManifestRow, kind: Kind, own: FieldMap, report: ReportProblem): void {
  const known = builtInSchema(kind).properties
  for (const name of PARAMETER_NAMES) {
    const field = own.get(name)
    if (field !== undefined && !own.has('input') && !Object.hasOwn(known, name))
      report(
        field.at,
        `the ${kind} model has no parameter "${name}"; the ${kindsWith(name).join(' and the ')} model has`,
      )
  }
  for (const { parameter, message } of inputProblems(builtInSchema(kind), row.input)) {
    const [name = '', item] = parameter.split('/')
    const place = item === undefined ? name : `${name} (entry ${Number(item) + 1})`
    report(
      row.positionOf(own.has('input') ? 'input' : name, item === undefined ? undefined : Number(item)),
      message === 'is missing' ? `${name} is missing` : `${place} of ${article(kind)} ${kind} ${message}`,
    )
  }
  if (typeof row.input.prompt === 'string' && row.input.prompt.trim() === '')
    report(row.positionOf('prompt'), 'prompt is blank')
}

const article = (kind: Kind): string => (/^[aeiou]/.test(kind) ? 'an' : 'a')

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

/** An image or video model with its own fields, or another model with an `input`. */
interface RowModel {
  readonly kind: Kind | undefined
  /** Undefined if the manifest has no model for the kind. The settings may have one. */
  readonly model: string | undefined
  /** Undefined for a row with the fields of a kind. */
  readonly input: ModelInput | undefined
}

/** A row with its own kind or model takes neither from the defaults, since kind and model belong together. */
function modelOfRow(own: FieldMap, sections: Sections, at: Position, report: ReportProblem): RowModel {
  const namesItsModel = own.has('kind') || own.has('model')
  const from = namesItsModel ? own : new Map([...sections.defaults].filter(([, { value }]) => !isNull(value)))
  const kindField = from.get('kind')
  const model = modelOf(from.get('model'), report)
  const input = own.get('input')
  if (input !== undefined)
    for (const name of PARAMETER_NAMES) {
      const field = own.get(name)
      if (field !== undefined) report(field.at, `${name} must be inside input`)
    }
  const kind =
    kindOf(kindField, report) ??
    kindOfModel(model, sections) ??
    (namesItsModel && model !== undefined && input === undefined && !kindField
      ? kindOf(sections.defaults.get('kind'), report)
      : undefined)
  if (kind !== undefined) {
    if (input === undefined) return { kind, model: model ?? sections.models[kind], input: undefined }
    if (kindField !== undefined && namesItsModel)
      report(input.at, `input is only for other models; put the parameters of ${kind} directly in the row`)
    if (kindField !== undefined && !namesItsModel && model === undefined)
      report(input.at, 'input needs a model in the same row')
    return { kind, model, input: objectOf(input, report) }
  }
  // An invalid kind or model was reported. Do not report problems caused by it.
  const isRefused = kindField !== undefined || from.has('model') !== (model !== undefined)
  return isRefused ? { kind: undefined, model, input: {} } : otherModel(own, sections, model, at, report)
}

function otherModel(
  own: FieldMap,
  sections: Sections,
  model: string | undefined,
  at: Position,
  report: ReportProblem,
): RowModel {
  const input = own.get('input') ?? sections.defaults.get('input')
  if (model === undefined)
    report(
      own.get('input')?.at ?? at,
      own.has('input') ? 'input needs a model in the same row' : `kind is missing: ${KINDS.join(' or ')}`,
    )
  else if (input === undefined || isNull(input.value))
    report(
      at,
      `input is missing: the whole input of ${model}. Or set kind (${KINDS.join(' or ')}) if it takes the same parameters`,
    )
  return { kind: undefined, model, input: input === undefined ? {} : objectOf(input, report) }
}

function objectOf({ value }: Field, report: ReportProblem): ModelInput {
  for (const problem of lostDigitsIn(value)) report(problem, problem.message)
  if (value.type === 'fields') return plainValue(value) as ModelInput
  if (!isNull(value)) report(value.at, 'input must be a map')
  return {}
}

function kindOf(field: Field | undefined, report: ReportProblem): Kind | undefined {
  if (field === undefined || isNull(field.value)) return undefined
  const text = field.value.type === 'scalar' ? field.value.text : ''
  if (isKind(text)) return text
  report(field.value.at, unknownMessage('unknown kind', text, KINDS))
  return undefined
}

function modelOf(field: Field | undefined, report: ReportProblem): string | undefined {
  if (field === undefined) return undefined
  if (field.value.type === 'scalar' && isModelName(field.value.text)) return field.value.text
  report(field.value.at, invalidModelMessage(field.value))
  return undefined
}

/** Returns the kind to which `models` assigns the model: its schema is checked. */
const kindOfModel = (model: string | undefined, { models }: Sections): Kind | undefined =>
  model === undefined ? undefined : KINDS.find((kind) => models[kind] === model)
