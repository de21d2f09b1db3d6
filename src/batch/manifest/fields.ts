/** The fields of a row: those of the model schemas, and a few of its own. */
import {
  KINDS,
  type Kind,
  MODEL_INPUTS,
  type ModelSchema,
  type ParameterSchema,
} from '../../protocol/models.js'

export const parametersOf = (kind: Kind): Readonly<Record<string, ParameterSchema>> =>
  (MODEL_INPUTS[kind] as ModelSchema).properties

/** Every parameter of either model, in the order of the schemas. */
export const PARAMETERS: readonly string[] = [
  ...new Set(KINDS.flatMap((kind) => Object.keys(parametersOf(kind)))),
]

export const kindsWith = (parameter: string): readonly Kind[] =>
  KINDS.filter((kind) => Object.hasOwn(parametersOf(kind), parameter))

export const LIST_FIELDS: readonly string[] = PARAMETERS.filter((name) =>
  KINDS.some((kind) => parametersOf(kind)[name]?.type === 'array'),
)

export const OWN_FIELDS = {
  name: 'what the run is called here and in the lock file; by default the path of the output',
  kind: 'which of the two models',
  model: 'identifier published for the model, in place of the one in `models` or the settings',
  output:
    'path of the file, relative to the manifest; by default <name>.<ext>; {name} {kind} {index} {ext} are filled in',
  count: 'that many runs of the same input, each with a file of its own',
  input: 'the whole input of a model that is neither of the two kinds',
} as const

export const ROW_FIELDS: readonly string[] = [...Object.keys(OWN_FIELDS), ...PARAMETERS]

/** A name belongs to one row. */
export const DEFAULTS_FIELDS: readonly string[] = ROW_FIELDS.filter((name) => name !== 'name')

export const TOP_FIELDS = ['models', 'defaults', 'runs'] as const

/** The same as for `rushes run --count`, and for all rows together. */
export const MOST_RUNS = 10_000
