/**
 * Finds the model of a row and the schema of its parameters: that of the model's document where it is known, else the
 * built-in schema of the kind. For a row with a matrix, finds the fields of all models that its combinations may have.
 */
import { isModelName, KINDS, type Kind, type ModelInput, type ModelSchema } from '../../protocol/models.js'
import { builtInSchema, PARAMETER_NAMES } from '../../protocol/parameters.js'
import { isKind } from '../../protocol/validate.js'
import { namedBy } from './combinations.js'
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
  scalar,
} from './nodes.js'
import { invalidModelMessage, isParameter, type Sections, unknownMessage } from './sections.js'

/** A model with its parameters as fields, or with an `input`. */
export interface RowModel {
  readonly kind: Kind | undefined
  /** Undefined if the manifest has no model for the kind. The settings or the lock file may have one. */
  readonly model: string | undefined
  /** Undefined if the parameters of the model are not known. */
  readonly schema: ModelSchema | undefined
  /** Name of the model whose document has the schema. Undefined for the built-in schema of the kind. */
  readonly documented: string | undefined
  /** Undefined for a row with its parameters as fields. */
  readonly input: ModelInput | undefined
  /** The map that `input` was read from. */
  readonly inputNode: Node | undefined
}

/** A row with its own kind or model takes neither from the defaults, since kind and model belong together. */
export function modelOfRow(own: FieldMap, sections: Sections, at: Position, report: ReportProblem): RowModel {
  const namesItsModel = own.has('kind') || own.has('model')
  const defaults = new Map([...sections.defaults].filter(([, { value }]) => !isNull(value)))
  const from = namesItsModel ? own : defaults
  const kindField = from.get('kind')
  const model = modelOf(from.get('model'), report)
  const document = model === undefined ? undefined : sections.documentOf(model)
  const input = own.get('input')
  const writtenKind = kindOf(kindField, report)
  if (document !== undefined && writtenKind !== undefined && writtenKind !== document.kind)
    report(kindField?.value.at ?? at, `the kind of ${document.name} is ${document.kind}, not ${writtenKind}`)
  const kindWithoutDocument =
    writtenKind ??
    kindOfModel(model, sections) ??
    (namesItsModel && model !== undefined && input === undefined && !kindField
      ? kindOf(defaults.get('kind'), report)
      : undefined)
  const kind = document?.kind ?? kindWithoutDocument
  const of = document ?? (model === undefined && kind ? documentOfKind(kind, sections) : undefined)
  if (of !== undefined && kind !== undefined && of.kind !== kind)
    report(kindField?.value.at ?? at, `the ${kind} model is ${of.name}, whose kind is ${of.kind}`)
  const known = of?.kind === kind ? of : undefined
  const schema = known?.input ?? (kind && builtInSchema(kind))
  const common = { kind, model, schema, documented: known?.name }
  // An `input` of the defaults belongs to rows that have no kind without the document.
  const inherited = document && kindWithoutDocument === undefined ? defaults.get('input') : undefined
  const whole = input ?? inherited
  if (whole !== undefined)
    for (const [name, field] of own)
      if (isParameter(schema, name) || PARAMETER_NAMES.includes(name))
        report(field.at, `${name} must be inside input`)
  if (kind !== undefined) {
    if (input !== undefined && kindField !== undefined && namesItsModel)
      report(
        input.at,
        `input is only for ${document === undefined ? 'other models' : 'rows without kind'}; ` +
          `put the parameters of ${document?.name ?? kind} directly in the row`,
      )
    if (input !== undefined && kindField !== undefined && !namesItsModel && model === undefined)
      report(input.at, 'input needs a model in the same row')
    return whole === undefined
      ? { ...common, model: model ?? sections.models[kind], input: undefined, inputNode: undefined }
      : { ...common, input: objectOf(whole, report), inputNode: whole.value }
  }
  // An invalid kind or model was reported. Do not report problems caused by it.
  const isRefused = kindField !== undefined || from.has('model') !== (model !== undefined)
  const other = isRefused ? undefined : otherInput(own, sections, model, at, report)
  return { ...common, input: other === undefined ? {} : objectOf(other, report), inputNode: other?.value }
}

/** Returns the document of the model that the manifest has for the kind, else the settings. */
function documentOfKind(kind: Kind, { models, settings, documentOf }: Sections) {
  const model = models[kind] ?? settings[kind]
  return model === undefined ? undefined : documentOf(model)
}

export const unknownParameters = (model: string): string =>
  `the parameters of ${model} are not known here: \`rushes models --refresh\` asks the service`

/** Returns the `input` of a row whose model has no known parameters. */
function otherInput(
  own: FieldMap,
  { defaults }: Sections,
  model: string | undefined,
  at: Position,
  report: ReportProblem,
): Field | undefined {
  const input = own.get('input') ?? defaults.get('input')
  if (model === undefined)
    report(
      own.get('input')?.at ?? at,
      own.has('input') ? 'input needs a model in the same row' : `kind is missing: ${KINDS.join(' or ')}`,
    )
  else if (input === undefined || isNull(input.value))
    report(
      at,
      `input is missing, and ${unknownParameters(model)}. Or give the whole input, or set kind (${KINDS.join(' or ')}) ` +
        'if it takes the same parameters',
    )
  return input
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

/** Maximum number of models, and of texts with the placeholders of one text filled in. */
const MAX_FOUND = 1_000

/** Returns the schemas that the row, or a combination of its matrix, may have. Reports no problems. */
export function schemasOfRow({ fields, at }: MapNode, sections: Sections): readonly ModelSchema[] {
  const matrix = fields.get('matrix')?.value
  const keys: FieldMap = matrix?.type === 'fields' ? matrix.fields : new Map()
  const textsIn = (source: FieldMap, name: string): readonly string[] => {
    const own = source.get(name)?.value
    const values = own === undefined || isNull(own) ? itemsOf(keys.get(name)) : [own]
    return values.flatMap((value) => filledTexts(namedBy(value)?.text ?? '', keys))
  }
  const modelsIn = (source: FieldMap) => ({
    kind: textsIn(source, 'kind').filter(isKind),
    model: textsIn(source, 'model').filter(isModelName).slice(0, MAX_FOUND),
  })
  const own = modelsIn(fields)
  const { kind, model } = own.kind.length + own.model.length > 0 ? own : modelsIn(sections.defaults)
  const fieldsOf = (name: string, texts: readonly string[]): readonly (readonly [string, Field])[][] =>
    texts.length === 0 ? [[]] : [...new Set(texts)].map((text) => [[name, { at, value: scalar(text, at) }]])
  const schemas = fieldsOf('kind', kind).flatMap((first) =>
    fieldsOf('model', model).map(
      (second) => modelOfRow(new Map([...first, ...second]), sections, at, () => {}).schema,
    ),
  )
  return [...new Set(schemas)].filter((schema) => schema !== undefined)
}

const itemsOf = (field: Field | undefined): readonly Node[] =>
  field?.value.type === 'list' ? field.value.items : []

/** Returns the texts that a text with up to four placeholders has in the combinations of a matrix. */
function filledTexts(text: string, keys: FieldMap): readonly string[] {
  // Odd parts are the words in braces.
  const parts = text.split(/\{([^{}\n]+)\}/, 10)
  if (parts.length === 1 || parts.length > 9) return [text]
  return parts.reduce<readonly string[]>(
    (begun, part, index) => {
      const [key = '', name] = part.split(/\.(.*)/s)
      const ends = index % 2 === 0 ? [part] : itemsOf(keys.get(key)).map((value) => textOf(value, name))
      return begun.flatMap((beginning) => ends.map((end) => beginning + end)).slice(0, MAX_FOUND)
    },
    [''],
  )
}

const textOf = (value: Node, name: string | undefined): string =>
  namedBy(name !== undefined && value.type === 'fields' ? value.fields.get(name)?.value : value)?.text ?? ''
