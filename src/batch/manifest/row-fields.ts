/** The fields of a manifest row: the parameters of the model schemas, and its own. */
import { kindsWith, PARAMETER_NAMES, parametersOf } from '../../protocol/parameters.js'

export const LIST_FIELDS: readonly string[] = PARAMETER_NAMES.filter((name) =>
  kindsWith(name).some((kind) => parametersOf(kind)[name]?.type === 'array'),
)

export const OWN_FIELDS = {
  name: 'Name of the run, here and in the lock file; default: the path of the output',
  kind: 'Image or video',
  model: 'Identifier published for the model, instead of the one in `models` or the settings',
  output:
    'Path of the file, relative to the manifest; default: <name>.<ext>; {name} {kind} {index} {ext} are filled in',
  count: 'Number of runs of the same input, each with its own file',
  input: 'Whole input of a model that is neither the image nor the video model',
  matrix: 'Lists of values: one run for each combination; {key} is replaced in all texts of the row',
  exclude: 'Combinations of the matrix that are left out: [{animal: bear, aspect_ratio: "16:9"}]',
} as const

export const ROW_FIELDS: readonly string[] = [...Object.keys(OWN_FIELDS), ...PARAMETER_NAMES]

/** A name cannot be shared, and a matrix would apply to rows without its placeholders: defaults have none. */
export const DEFAULTS_FIELDS: readonly string[] = ROW_FIELDS.filter(
  (name) => !['name', 'matrix', 'exclude'].includes(name),
)

/** A cell has no room for lists of values. */
export const CSV_FIELDS: readonly string[] = ROW_FIELDS.filter(
  (name) => !['matrix', 'exclude'].includes(name),
)

/** For all matrices of a manifest together, unless `--max-runs` allows more. */
export const MAX_COMBINATIONS = 1_000

export const TOP_FIELDS = ['models', 'defaults', 'runs'] as const

/** For all rows together, and the same as for `rushes run --count`. */
export const MAX_RUNS = 10_000
