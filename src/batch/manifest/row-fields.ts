/** The fields of a manifest row: the parameters of the model schemas, and its own. */
import { kindsWith, PARAMETER_NAMES, parametersOf } from '../../protocol/parameters.js'

export const LIST_FIELDS: readonly string[] = PARAMETER_NAMES.filter((name) =>
  kindsWith(name).some((kind) => parametersOf(kind)[name]?.type === 'array'),
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

export const ROW_FIELDS: readonly string[] = [...Object.keys(OWN_FIELDS), ...PARAMETER_NAMES]

/** A name cannot be shared, so defaults have none. */
export const DEFAULTS_FIELDS: readonly string[] = ROW_FIELDS.filter((name) => name !== 'name')

export const TOP_FIELDS = ['models', 'defaults', 'runs'] as const

/** For all rows together, and the same as for `rushes run --count`. */
export const MAX_RUNS = 10_000
