/**
 * Reads a manifest: expands its matrices, checks its runs, and returns an entry for each. Sends no request, and throws nothing
 * for an invalid manifest: all problems are returned together, each with its line.
 */
import { dirname, resolve } from 'node:path'
import { sameFileKey } from '../../host/file-system.js'
import type { Manifest, ManifestEntry } from './entry.js'
import { expandRow } from './matrix.js'
import {
  checkOutputs,
  type ImageClaim,
  ManifestFolder,
  outputImageProblems,
  outputsOfRow,
} from './outputs.js'
import { type ManifestProblem, parseManifest } from './parse.js'
import {
  type Fields,
  knownFields,
  MAX_RUNS,
  type ManifestRow,
  type ModelSources,
  modelOf,
  type ReportProblem,
  readRow,
  readSections,
  type Sections,
  unknownMessage,
} from './row.js'
import { MediaReader, type MediaRules, resolveRows, withSummaries } from './sources.js'

export interface ManifestOptions extends MediaRules, ModelSources {
  /** Path of the manifest, as given by the user. For standard input, a path that does not exist. */
  readonly path: string
  readonly bytes: Uint8Array
  readonly allowOutside: boolean
  /** Files that no output may replace, such as the lock file, with a description of each. */
  readonly reserved?: ReadonlyMap<string, string>
  /** Further outputs in the lock file. A local image that is one of them must be written as `row:name#2`. */
  readonly furtherOutputs?: readonly FurtherOutputFile[]
}

/** An output of a run after its first one. */
export interface FurtherOutputFile {
  /** Name of the run that has the output. */
  readonly name: string
  /** Number of the output: 2 or more. */
  readonly number: number
  /** Path relative to the manifest. */
  readonly file: string
}

export type ManifestResult =
  | { readonly ok: true; readonly manifest: Manifest }
  | { readonly ok: false; readonly problems: readonly ManifestProblem[] }

export async function readManifest(options: ManifestOptions): Promise<ManifestResult> {
  const { path } = options
  const parsed = parseManifest(path, options.bytes)
  if ('message' in parsed) return { ok: false, problems: [parsed] }
  const problems = new Map<string, ManifestProblem>()
  const report: ReportProblem = (at, message) => {
    const line = parsed.lineOf(at)
    problems.set(`${line}:${message}`, { line, message })
  }
  const sections = readSections(parsed, options, report)
  const { rows, isIncomplete } = rowsOf(sections, report)
  const folder = new ManifestFolder(resolve(dirname(path)))
  const entries = areTooMany(rows) ? [] : await entriesOf(rows, folder, options, isIncomplete)
  if (problems.size > 0)
    return { ok: false, problems: [...problems.values()].sort((a, b) => a.line - b.line) }
  return { ok: true, manifest: { path, folder: folder.path, models: sections.models, entries } }
}

/** `isIncomplete`: runs are missing, because their matrix is not valid. */
function rowsOf(sections: Sections, report: ReportProblem) {
  const { defaults } = sections
  const schemaOf = (fields: Fields, inherited: Fields) => modelOf(fields, inherited, sections).schema
  const parts = sections.rows.map((row) => expandRow(row, defaults, schemaOf, report))
  const written = parts.flat()
  const known = knownFields(written.map((row) => schemaOf(row.fields, row.defaults)))
  for (const name of Object.keys(defaults))
    if (!known.has(name)) report(['defaults', name], unknownMessage('unknown field', name, [...known]))
  return {
    rows: written.map((row) => readRow(row, sections, known)),
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
  const outputsOf = new Map(rows.map((row) => [row, outputsOfRow(row, folder)]))
  const outputs = [...outputsOf.values()].flat()
  const reserved = new Map(
    [[options.path, 'the manifest itself'] as const, ...(options.reserved ?? [])].map(([path, what]) => [
      sameFileKey(folder.realPathOf(resolve(path))),
      what,
    ]),
  )
  checkOutputs(outputs, folder, { allowOutside: options.allowOutside, reserved })
  const kinds = new Map(outputs.map(({ name, kind }) => [name, kind]))
  // Further outputs come from the lock file: their number is unknown until the run has ended.
  const further = (options.furtherOutputs ?? []).filter(({ name }) => kinds.has(name))
  const problemOf = outputImageProblems(
    [
      ...outputs,
      ...further.map(
        ({ name, number, file }): ImageClaim => ({
          name,
          number,
          kind: kinds.get(name),
          realPath: folder.realPathOf(file),
        }),
      ),
    ],
    folder,
  )
  const reader = new MediaReader(folder.path, options)
  const entries = new Map<ManifestEntry, ManifestRow>()
  for (const [row, own] of outputsOf) {
    const names = own.map(({ name }) => name)
    const references = await reader.referencesOf(row, (path, shown) => problemOf(path, shown, names))
    const { template, line, kind, model, input, labels } = row
    const identityInput = withSummaries(input, references)
    const undocumentedInput = row.undocumentedInput && withSummaries(row.undocumentedInput, references)
    for (const { name, output } of own)
      entries.set(
        {
          name,
          rowName: row.name ?? name,
          template: template?.name,
          at: { line },
          kind,
          model,
          input,
          identityInput,
          undocumentedInput,
          references,
          media: [...row.media.keys()],
          labels,
          output,
        },
        row,
      )
  }
  return resolveRows(entries, isIncomplete || [...outputsOf.values()].some(({ length }) => length === 0))
}

export type { Manifest, ManifestEntry, MediaReference, RowReference, SentReference } from './entry.js'
export type { ManifestProblem } from './parse.js'
export type { Models } from './row.js'
export { inputToSend, type MediaRules } from './sources.js'
