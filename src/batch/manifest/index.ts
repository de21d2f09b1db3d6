/**
 * Reads a manifest: expands its matrices, checks its runs, and returns an entry for each. Sends no request, and throws nothing
 * for an invalid manifest: all problems are returned together, each with its line.
 */
import { dirname, resolve } from 'node:path'
import { KINDS } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { isKind } from '../../protocol/validate.js'
import { type Lock, outputsOf } from '../lock/lock.js'
import { type Manifest, type ManifestEntry, reportCycle } from './entry.js'
import { checkOutputs, ManifestFolder, outputsOfRow } from './outputs.js'
import { type ManifestProblem, type Path, Problems, parseManifest, unknownMessage } from './parse.js'
import {
  type Fields,
  invalidModel,
  isModel,
  knownFields,
  MAX_RUNS,
  type ManifestRow,
  type ModelSources,
  type Models,
  rowsOf,
} from './row.js'
import { MediaReader, type MediaRules, type OutputClaim, withSummaries } from './sources.js'

export interface ManifestOptions extends MediaRules, ModelSources {
  /** Path of the manifest, as given by the user. */
  readonly path: string
  readonly bytes: Uint8Array
  readonly allowOutside: boolean
  /** The manifest, the lock file and the claim file, which no output may replace. */
  readonly reserved: readonly string[]
  /** A local image that is an output in it must be written as `row:name#2`. */
  readonly lock?: Lock
}

export type ManifestResult =
  | { readonly ok: true; readonly manifest: Manifest }
  | { readonly ok: false; readonly problems: readonly ManifestProblem[] }

export async function readManifest(options: ManifestOptions): Promise<ManifestResult> {
  const { path } = options
  const parsed = parseManifest(path, options.bytes)
  if ('message' in parsed) return { ok: false, problems: [parsed] }
  const problems = new Problems(parsed.lineOf)
  const { models, defaults, runs } = readSections(parsed.value, problems)
  const { documentOf, settings } = options
  const context = { parsed, problems, models, defaults, documentOf, settings }
  const parts = runs.map(({ path: at, fields }) => rowsOf(at, fields, context))
  const rows = parts.flat()
  const known = knownFields(rows)
  for (const name of Object.keys(defaults))
    if (!known.includes(name)) problems.add(['defaults', name], unknownMessage('unknown field', name, known))
  const folder = new ManifestFolder(resolve(dirname(path)))
  const isIncomplete = parts.some(({ length }) => length === 0)
  const entries = areTooMany(rows) ? [] : await entriesOf(rows, folder, options, isIncomplete)
  const found = problems.list()
  if (found.length > 0) return { ok: false, problems: found }
  const hasMatrix = runs.some(({ fields }) => (fields.matrix ?? null) !== null)
  return { ok: true, manifest: { path, folder: folder.path, hasMatrix, models, entries } }
}

interface Sections {
  readonly models: Models
  readonly defaults: Fields
  readonly runs: readonly { readonly path: Path; readonly fields: Fields }[]
}

const SECTIONS = ['models', 'defaults', 'runs']

/** Reads the sections of a manifest: models, defaults and runs. A plain list has only runs. */
function readSections(value: unknown, problems: Problems): Sections {
  if (Array.isArray(value)) return { models: {}, defaults: {}, runs: readRuns(value, [], problems) }
  if (!isObject(value)) {
    problems.add([], 'invalid manifest: expected a list of runs, or a map with models, defaults and runs')
    return { models: {}, defaults: {}, runs: [] }
  }
  // `$schema` is for editors. Fields with `x-` hold YAML anchors that runs use.
  for (const name of Object.keys(value))
    if (!SECTIONS.includes(name) && name !== '$schema' && !name.startsWith('x-'))
      problems.add([name], unknownMessage('unknown field', name, SECTIONS))
  const mapOf = (name: string): Fields => {
    const map = value[name] ?? {}
    if (isObject(map)) return map
    problems.add([name], `${name} must be a map`)
    return {}
  }
  const defaults = mapOf('defaults')
  for (const name of ['name', 'matrix', 'exclude'])
    if (name in defaults) problems.add(['defaults', name], `defaults cannot set ${name}: put it in a run`)
  const models = readModels(mapOf('models'), problems)
  return { models, defaults, runs: readRuns(value.runs, ['runs'], problems) }
}

function readRuns(value: unknown, path: Path, problems: Problems): Sections['runs'] {
  if (!Array.isArray(value)) {
    problems.add(value === undefined ? [] : path, 'runs must be a list: the runs to create')
    return []
  }
  return value.flatMap((fields: unknown, at) => {
    const own = [...path, at]
    if (isObject(fields)) return [{ path: own, fields }]
    problems.add(own, 'a run must be a map of fields, such as {name: fox, prompt: a fox}')
    return []
  })
}

function readModels(models: Fields, problems: Problems): Models {
  const given = Object.entries(models).filter(([, model]) => model !== null)
  for (const [name, model] of given)
    if (!isKind(name)) problems.add(['models', name], unknownMessage('unknown kind', name, KINDS))
    else if (!isModel(model)) problems.add(['models', name], invalidModel(model))
  return Object.fromEntries(given.filter(([, model]) => isModel(model)))
}

/** Checked before `count` is expanded: 10,000 runs of 10,000 each would not fit into memory. */
function areTooMany(rows: readonly ManifestRow[]): boolean {
  let runs = 0
  const over = rows.find(({ count }) => {
    runs += count
    return runs > MAX_RUNS
  })
  over?.report(`the manifest has more than ${MAX_RUNS} runs`, 'count')
  return over !== undefined
}

async function entriesOf(
  rows: readonly ManifestRow[],
  folder: ManifestFolder,
  options: ManifestOptions,
  isIncomplete: boolean,
): Promise<readonly ManifestEntry[]> {
  const { allowOutside, reserved, lock } = options
  const byRow = new Map(rows.map((row) => [row, outputsOfRow(row, folder)]))
  const outputs = [...byRow.values()].flat()
  checkOutputs(outputs, folder, { allowOutside, reserved })
  // The number of outputs is unknown until the run has ended.
  const further = outputs.flatMap(({ name, kind }) =>
    outputsOf(lock?.entries.get(name))
      .map(({ file }, at): OutputClaim => ({ name, number: at + 1, kind, realPath: folder.realPathOf(file) }))
      .slice(1),
  )
  const reader = new MediaReader({
    folder,
    rules: options,
    outputs,
    further,
    isIncomplete: isIncomplete || [...byRow.values()].some(({ length }) => length === 0),
  })
  const entries = new Map<ManifestEntry, ManifestRow>()
  for (const [row, own] of byRow) {
    const { line, kind, model, input, undocumentedInput, media, labels } = row
    const references = await reader.referencesOf(
      row,
      own.map(({ name }) => name),
    )
    const inputs = undocumentedInput === undefined ? [input] : [input, undocumentedInput]
    const shared = {
      at: { line },
      kind,
      model,
      input,
      identities: inputs.map((each) => withSummaries(each, references)),
      references,
      media: [...media.keys()],
      labels,
    }
    for (const { name, output } of own)
      entries.set({ ...shared, name, rowName: row.name ?? name, output }, row)
  }
  reportCycle(entries)
  return [...entries.keys()]
}
