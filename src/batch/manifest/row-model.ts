/** The model of a row: one of the two kinds with its fields, or another model with an `input` of its own. */
import { isModelName, KINDS, type Kind, type ModelInput } from '../../protocol/models.js'
import { PARAMETER_NAMES } from '../../protocol/parameters.js'
import { isKind } from '../../protocol/validate.js'
import { type Field, isNull, lostDigitsIn, plainValue } from './nodes.js'
import type { Position, ReportProblem } from './position.js'
import { invalidModelMessage, type Sections, unknownMessage } from './sections.js'

export interface RowModel {
  readonly kind: Kind | undefined
  /** Undefined when the manifest names none for the kind; then the settings may. */
  readonly model: string | undefined
}

interface RowModelWithInput extends RowModel {
  /** Undefined when the row has the fields of a kind. */
  readonly input: ModelInput | undefined
}

type Fields = ReadonlyMap<string, Field>

/** A row with its own kind or model takes neither from the defaults, since the two belong together. */
export function modelOfRow(
  own: Fields,
  sections: Sections,
  at: Position,
  report: ReportProblem,
): RowModelWithInput {
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
  // An invalid kind or model has been reported; do not report what follows from it.
  const isRefused = kindField !== undefined || from.has('model') !== (model !== undefined)
  return isRefused ? { kind: undefined, model, input: {} } : otherModel({ own, sections, model, at, report })
}

interface OtherModelRow {
  readonly own: Fields
  readonly sections: Sections
  readonly model: string | undefined
  readonly at: Position
  readonly report: ReportProblem
}

function otherModel({ own, sections, model, at, report }: OtherModelRow): RowModelWithInput {
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

/** A model that the manifest assigns to a kind is checked by the schema of that kind. */
const kindOfModel = (model: string | undefined, { models }: Sections): Kind | undefined =>
  model === undefined ? undefined : KINDS.find((kind) => models[kind] === model)
