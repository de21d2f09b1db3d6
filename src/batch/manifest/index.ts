/**
 * Reads a manifest: expands its matrices, checks its runs, and returns an entry for each. Sends no request, and throws nothing
 * for an invalid manifest: all problems are returned together, each with its line.
 */
import { dirname, resolve } from 'node:path'
import { sameFileKey } from '../../host/file-system.js'
import { type Lock, outputsOf } from '../lock/lock.js'
import type { Manifest, ManifestEntry } from './entry.js'
import { reportCycle } from './order.js'
import { checkOutputs, ManifestFolder, outputsOfRow } from './outputs.js'
import { parseManifest } from './parse.js'
import { type ManifestProblem, Problems, unknownMessage } from './problems.js'
import { knownFields, MAX_RUNS, type ManifestRow, readRow, writtenRows } from './row.js'
import { type ModelSources, readSections, type Sections } from './sections.js'
import { MediaReader, type MediaRules, type OutputClaim, withSummaries } from './sources.js'

export interface ManifestOptions extends MediaRules, ModelSources {
  /** Path of the manifest, as given by the user. For standard input, a path that does not exist. */
  readonly path: string
  readonly bytes: Uint8Array
  readonly allowOutside: boolean
  /** Files that no output may replace, such as the lock file, with a description of each. */
  readonly reserved?: ReadonlyMap<string, string>
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
  const sections = readSections(parsed, options, problems)
  const folder = new ManifestFolder(resolve(dirname(path)))
  const { rows, isIncomplete } = rowsOf(sections)
  const entries = areTooMany(rows) ? [] : await entriesOf(rows, folder, options, isIncomplete)
  const found = problems.list()
  const hasMatrix = sections.rows.some(({ fields }) => (fields.matrix ?? null) !== null)
  if (found.length > 0) return { ok: false, problems: found }
  return { ok: true, manifest: { path, folder: folder.path, hasMatrix, models: sections.models, entries } }
}

/** `isIncomplete`: runs are missing, because their matrix is not valid. */
function rowsOf(sections: Sections) {
  const parts = sections.rows.map((row) => writtenRows(row, sections))
  const known = knownFields(parts.flat())
  for (const name of Object.keys(sections.defaults))
    if (!known.has(name))
      sections.problems.add(['defaults', name], unknownMessage('unknown field', name, [...known]))
  return {
    rows: parts.flat().map((row) => readRow(row, sections.parsed)),
    isIncomplete: parts.some(({ length }) => length === 0),
  }
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
  const { path, allowOutside, reserved = [], lock } = options
  const byRow = new Map(rows.map((row) => [row, outputsOfRow(row, folder)]))
  const outputs = [...byRow.values()].flat()
  const keys = [[path, 'the manifest itself'] as const, ...reserved].map(
    ([file, what]) => [sameFileKey(folder.realPathOf(resolve(file))), what] as const,
  )
  checkOutputs(outputs, folder, { allowOutside, reserved: new Map(keys) })
  const kinds = new Map(outputs.map(({ name, kind }) => [name, kind]))
  // The number of outputs is unknown until the run has ended.
  const further = [...kinds].flatMap(([name, kind]) =>
    outputsOf(lock?.entries.get(name)).flatMap(({ file }, at): readonly OutputClaim[] =>
      at === 0 ? [] : [{ name, number: at + 1, kind, realPath: folder.realPathOf(file) }],
    ),
  )
  const reader = new MediaReader({
    folder,
    rules: options,
    outputs: [...outputs, ...further],
    kinds,
    isIncomplete: isIncomplete || [...byRow.values()].some(({ length }) => length === 0),
  })
  const entries = new Map<ManifestEntry, ManifestRow>()
  for (const [row, own] of byRow) {
    const { line, kind, model, input, undocumentedInput, media, labels } = row
    const references = await reader.referencesOf(
      row,
      own.map(({ name }) => name),
    )
    const shared = {
      at: { line },
      kind,
      model,
      input,
      identityInput: withSummaries(input, references),
      undocumentedInput: undocumentedInput && withSummaries(undocumentedInput, references),
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

export type { Manifest, ManifestEntry, MediaReference, RowReference, SentReference } from './entry.js'
export type { ManifestProblem } from './problems.js'
export type { Models } from './sections.js'
export { inputToSend, type MediaRules } from './sources.js'
