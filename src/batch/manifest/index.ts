/**
 * Reads a manifest: expands its matrices, checks its runs, and returns an entry for each. Sends no request, and throws nothing
 * for an invalid manifest: all problems are returned together, each with its line.
 */
import { dirname, join, resolve } from 'node:path'
import { sameFileKey } from '../../host/file-system.js'
import { findCollisions, type OutputClaim, outputImageProblems } from './collisions.js'
import { type ManifestProblem, type ParsedManifest, parseManifest } from './format.js'
import {
  type Manifest,
  type ManifestEntry,
  type MediaReference,
  type RowUse,
  resolveRows,
} from './manifest-entry.js'
import { expandRow } from './matrix.js'
import { createManifestFolder, type ManifestFolder, type NamedOutput, outputsOfRow } from './output-paths.js'
import {
  bytesToSend,
  type MediaRules,
  pathOf,
  referenceReaderIn,
  tooLargeMessage,
  withSummaries,
} from './references.js'
import { knownFields, type ManifestRow, modelOf, readRow } from './row.js'
import {
  MAX_RUNS,
  type ModelSources,
  type ReportProblem,
  readSections,
  type Sections,
  unknownMessage,
} from './sections.js'

interface ManifestOptions extends MediaRules, ModelSources {
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
  const parsed = parseManifest(options.path, options.bytes)
  if ('message' in parsed) return { ok: false, problems: [parsed] }
  const problems = new Map<string, ManifestProblem>()
  const report: ReportProblem = (path, message) => {
    const line = parsed.lineOf(path)
    problems.set(`${line}:${message}`, { line, message })
  }
  const sections = readSections(parsed, options, report)
  const { rows, isIncomplete } = rowsOf(sections, report)
  const folder = createManifestFolder(resolve(dirname(options.path)))
  const entries = areTooMany(rows) ? [] : await entriesOf(rows, { options, parsed, folder, isIncomplete })
  if (problems.size > 0)
    return { ok: false, problems: [...problems.values()].sort((a, b) => a.line - b.line) }
  return {
    ok: true,
    manifest: { path: options.path, folder: folder.folder, models: sections.models, entries },
  }
}

interface ReadRows {
  readonly rows: readonly ManifestRow[]
  /** Whether runs are missing, because their matrix is not valid. */
  readonly isIncomplete: boolean
}

function rowsOf(sections: Sections, report: ReportProblem): ReadRows {
  const schemaOf = (fields: Sections['defaults'], defaults: Sections['defaults']) =>
    modelOf(fields, defaults, sections).schema
  const parts = sections.rows.map((row) => expandRow(row, sections.defaults, schemaOf, report))
  const expanded = parts.flat()
  const known = knownFields(expanded.map(({ fields, defaults }) => schemaOf(fields, defaults)))
  for (const name of Object.keys(sections.defaults))
    if (!known.has(name)) report(['defaults', name], unknownMessage('unknown field', name, [...known]))
  return {
    rows: expanded.map((row) => readRow(row, sections, known)),
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

interface Reading {
  readonly options: ManifestOptions
  readonly parsed: ParsedManifest
  readonly folder: ManifestFolder
  readonly isIncomplete: boolean
}

interface NamedRow {
  readonly row: ManifestRow
  readonly line: number
  readonly outputs: readonly NamedOutput[]
}

async function entriesOf(rows: readonly ManifestRow[], reading: Reading): Promise<readonly ManifestEntry[]> {
  const { options, parsed, folder, isIncomplete } = reading
  const named = rows.map(
    (row): NamedRow => ({ row, line: parsed.lineOf(row.path), outputs: outputsOfRow(row) }),
  )
  const claims = named.flatMap((each) => each.outputs.map((output) => claimOf(each, output, reading)))
  for (const claim of claims)
    if (!options.allowOutside && !folder.isInside(claim.output))
      claim.report(
        `the output "${claim.output}" is outside the folder of the manifest (--allow-outside allows that)`,
        'output',
      )
  findCollisions(claims, reservedBy(reading))
  const problemOf = outputImageProblems([...claims, ...furtherClaims(claims, reading)], folder)
  const referencesOf = referenceReaderIn(folder.folder, options)
  const uses: RowUse[] = []
  for (const { row, line, outputs } of named) {
    const names = outputs.map(({ name }) => name)
    const references = await referencesOf(row, (path, shown) => problemOf(path, shown, names))
    const bytes = bytesToSend(row.input, references)
    if (bytes > options.maxBodyBytes)
      row.report(
        tooLargeMessage(`the files need a request of ${bytes} bytes`, options.maxBodyBytes),
        references.find(({ from }) => from === 'file')?.place.parameter ?? 'input',
      )
    for (const each of outputs)
      uses.push({
        entry: entryOf(row, line, each, references),
        report: (place, message) => row.report(message, ...pathOf(row, place)),
      })
  }
  const isMissing = isIncomplete || named.some(({ outputs }) => outputs.length === 0)
  return resolveRows(uses, isMissing)
}

/** Further outputs come from the lock file: their number is unknown until the run has ended. */
function furtherClaims(claims: readonly OutputClaim[], { options, folder }: Reading) {
  const kinds = new Map(claims.map(({ name, kind }) => [name, kind]))
  return (options.furtherOutputs ?? []).flatMap(({ name, number, file }) =>
    kinds.has(name) ? [{ name, number, kind: kinds.get(name), realPath: folder.realPathOf(file) }] : [],
  )
}

const claimOf = ({ row, line }: NamedRow, named: NamedOutput, { folder }: Reading): OutputClaim => ({
  ...named,
  isNamed: row.name !== undefined,
  kind: row.kind,
  realPath: folder.realPathOf(named.output),
  template: row.template,
  line,
  report: (message, field) =>
    row.report(
      message,
      ...(field === undefined ? [] : [field === 'output' && row.output === undefined ? 'name' : field]),
    ),
})

function reservedBy({ options, folder }: Reading): ReadonlyMap<string, string> {
  const files = new Map([[options.path, 'the manifest itself'], ...(options.reserved ?? [])])
  return new Map(
    [...files].map(([path, what]) => [
      sameFileKey(folder.realPathOf(join(resolve(dirname(path)), path.split(/[\\/]/).at(-1) ?? ''))),
      what,
    ]),
  )
}

const entryOf = (
  row: ManifestRow,
  line: number,
  { name, output }: NamedOutput,
  references: readonly MediaReference[],
): ManifestEntry => ({
  name,
  rowName: row.name ?? name,
  template: row.template?.name,
  at: { line },
  kind: row.kind,
  model: row.model,
  input: row.input,
  identityInput: withSummaries(row.input, references),
  undocumentedInput: row.undocumentedInput && withSummaries(row.undocumentedInput, references),
  references,
  media: [...row.media.keys()],
  labels: row.labels,
  output,
})

export type { ManifestProblem } from './format.js'
export type { Manifest, ManifestEntry, MediaReference, RowReference } from './manifest-entry.js'
export { inputToSend, type MediaRules, type SentReference } from './references.js'
export type { Models } from './sections.js'
