/** Reads one row, merges the defaults into it and checks it against the schema of its model. */
import type { Kind, ModelInput, ParameterSchema } from '../../protocol/models.js'
import { kindsWith, listedValues, PARAMETER_NAMES, parametersOf } from '../../protocol/parameters.js'
import { shortened } from '../../protocol/text.js'
import { inputProblems } from '../../protocol/validate.js'
import { NO_INCLUDE } from './matrix-values.js'
import { type Field, type Fields, isNull, lostDigitsIn, type Node, plainValue } from './nodes.js'
import type { Position, ReportProblem } from './position.js'
import { MAX_RUNS, ROW_FIELDS } from './row-fields.js'
import { modelOfRow, type RowModel } from './row-model.js'
import { type Sections, unknownMessage } from './sections.js'

export interface ManifestRow extends RowModel {
  readonly at: Position
  readonly name: string | undefined
  /** As written, before placeholders are filled in. */
  readonly output: string | undefined
  /** Whether `output` comes from the defaults and so applies to several rows. */
  readonly isOutputShared: boolean
  readonly count: number
  /** The row has an `input` of its own, which is sent unchanged. */
  readonly hasOwnInput: boolean
  /** With local images by path. */
  readonly input: ModelInput
  /** The position of a field for later problems; the position of the row when it lacks the field. */
  positionOf(name: string, item?: number): Position
}

export function readRow(node: Fields, sections: Sections, report: ReportProblem): ManifestRow {
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

/** A field of the defaults, unless the row has it, even as `null`. */
const defaultUnlessGiven = ({ fields }: Fields, name: string, { defaults }: Sections): Field | undefined => {
  const found = fields.has(name) ? undefined : defaults.get(name)
  return found === undefined || isNull(found.value) ? undefined : found
}

/** Only the parameters of the row's kind: a manifest with videos may have a default `quality` for its images. */
function withDefaults(
  own: ReadonlyMap<string, Field>,
  node: Fields,
  kind: Kind,
  sections: Sections,
): ReadonlyMap<string, Field> {
  const fields = new Map(own)
  for (const name of Object.keys(parametersOf(kind))) {
    const field = defaultUnlessGiven(node, name, sections)
    if (field !== undefined) fields.set(name, field)
  }
  return fields
}

function inputOf(
  fields: ReadonlyMap<string, Field>,
  kind: Kind | undefined,
  report: ReportProblem,
): ModelInput {
  if (kind === undefined) return {}
  const given = Object.entries(parametersOf(kind)).flatMap(([name, schema]) => {
    const value = fields.get(name)?.value
    if (value === undefined) return []
    if (!isText(schema)) for (const problem of lostDigitsIn(value)) report(problem, problem.message)
    return [[name, parameterValue(schema, value)] as const]
  })
  return Object.fromEntries(given)
}

/** Its numbers keep their digits. */
const isText = (schema: ParameterSchema): boolean =>
  schema.type === 'string' && listedValues(schema) === undefined

/** A text may be written without quotes where the format reads a number or a boolean: `duration: 5`, `prompt: 2024`. */
function parameterValue(schema: ParameterSchema, value: Node): unknown {
  if (value.type !== 'scalar') return plainValue(value)
  // A block of YAML ends with a line end that is not meant; the last one of a prompt file is dropped too.
  if (isText(schema)) return value.text.replace(/\r?\n$/, '')
  return schema.type === 'string' ? String(value.value) : value.value
}

function checkInput(
  row: ManifestRow,
  kind: Kind,
  own: ReadonlyMap<string, Field>,
  report: ReportProblem,
): void {
  const known = parametersOf(kind)
  for (const name of PARAMETER_NAMES) {
    const field = own.get(name)
    if (field !== undefined && !own.has('input') && !Object.hasOwn(known, name))
      report(
        field.at,
        `the ${kind} model has no parameter "${name}"; the ${kindsWith(name).join(' and the ')} model has`,
      )
  }
  for (const { parameter, message } of inputProblems(kind, row.input)) {
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
