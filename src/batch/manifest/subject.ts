/** What a row is for: one of the two kinds, whose fields it has, or another model, whose whole input it gives. */
import { isModelName, KINDS, type Kind, type ModelInput } from '../../protocol/models.js'
import { PARAMETER_NAMES } from '../../protocol/parameters.js'
import { isKind } from '../../protocol/validate.js'
import type { Position, Report } from './position.js'
import { notAModel, sayUnknown, type Top } from './top.js'
import { type Field, isNull, plain } from './tree.js'

export interface Subject {
  readonly kind: Kind | undefined
  /** Undefined where the manifest names none for the kind: the settings may. */
  readonly model: string | undefined
}

interface SubjectWithInput extends Subject {
  /** Undefined when the row has the fields of a kind. */
  readonly input: ModelInput | undefined
}

type Fields = ReadonlyMap<string, Field>

/** A row that names its kind or its model takes neither from the defaults: the two belong together. */
export function subjectOf(own: Fields, top: Top, at: Position, report: Report): SubjectWithInput {
  const saysItself = own.has('kind') || own.has('model')
  const from = saysItself ? own : new Map([...top.defaults].filter(([, { value }]) => !isNull(value)))
  const kindField = from.get('kind')
  const model = modelOf(from.get('model'), report)
  const input = own.get('input')
  if (input !== undefined)
    for (const name of PARAMETER_NAMES) {
      const field = own.get(name)
      if (field !== undefined) report(field.at, `${name} stands beside input: put it into input`)
    }
  const kind =
    kindOf(kindField, report) ??
    kindOfModel(model, top) ??
    (saysItself && model !== undefined && input === undefined && !kindField
      ? kindOf(top.defaults.get('kind'), report)
      : undefined)
  if (kind !== undefined) {
    if (input === undefined) return { kind, model: model ?? top.models[kind], input: undefined }
    if (kindField !== undefined && saysItself)
      report(input.at, `input is for other models; the fields of ${kind} stand beside kind`)
    if (kindField !== undefined && !saysItself && model === undefined)
      report(input.at, 'input needs a model beside it')
    return { kind, model, input: objectOf(input, report) }
  }
  // A kind or a model that was refused has been reported, and what follows from it is no news.
  const isRefused = kindField !== undefined || from.has('model') !== (model !== undefined)
  return isRefused ? { kind: undefined, model, input: {} } : otherModel({ own, top, model, at, report })
}

interface Other {
  readonly own: Fields
  readonly top: Top
  readonly model: string | undefined
  readonly at: Position
  readonly report: Report
}

function otherModel({ own, top, model, at, report }: Other): SubjectWithInput {
  const input = own.get('input') ?? top.defaults.get('input')
  if (model === undefined)
    report(
      own.get('input')?.at ?? at,
      own.has('input') ? 'input needs a model beside it' : `kind is missing: ${KINDS.join(' or ')}`,
    )
  else if (input === undefined || isNull(input.value))
    report(
      at,
      `input is missing: the whole input of ${model}; or say by kind which of ${KINDS.join(' and ')} it is like`,
    )
  return { kind: undefined, model, input: input === undefined ? {} : objectOf(input, report) }
}

function objectOf({ value }: Field, report: Report): ModelInput {
  if (value.type === 'fields') return plain(value) as ModelInput
  if (!isNull(value)) report(value.at, 'input must be a map')
  return {}
}

function kindOf(field: Field | undefined, report: Report): Kind | undefined {
  if (field === undefined || isNull(field.value)) return undefined
  const text = field.value.type === 'scalar' ? field.value.text : ''
  if (isKind(text)) return text
  report(field.value.at, sayUnknown('there is no kind', text, KINDS))
  return undefined
}

function modelOf(field: Field | undefined, report: Report): string | undefined {
  if (field === undefined) return undefined
  if (field.value.type === 'scalar' && isModelName(field.value.text)) return field.value.text
  report(field.value.at, notAModel(field.value))
  return undefined
}

/** A model that the manifest itself gives to a kind gets the checks of its schema. */
const kindOfModel = (model: string | undefined, { models }: Top): Kind | undefined =>
  model === undefined ? undefined : KINDS.find((kind) => models[kind] === model)
