/**
 * Reads a manifest, checks it and expands its rows into entries, one for each run. Sends no request, and throws nothing
 * for an invalid manifest: all problems are returned together, each with its position.
 */
import { dirname, join, resolve } from 'node:path'
import { sameFileKey } from '../../host/file-system.js'
import { findCollisions, type OutputClaim, outputImageProblems } from './collisions.js'
import { parseManifest } from './format.js'
import {
  bytesToSend,
  type ImageRules,
  imageReaderIn,
  type ReferencesOf,
  tooLargeMessage,
  withSummaries,
} from './local-images.js'
import {
  type ImageReference,
  type Manifest,
  type ManifestEntry,
  type RowUse,
  resolveRows,
} from './manifest-entry.js'
import { expandRows, type RowTemplate } from './matrix.js'
import {
  createProblemCollector,
  type ManifestProblem,
  type Node,
  type ProblemCollector,
  type ReportProblem,
} from './nodes.js'
import {
  createManifestFolder,
  type ManifestFolder,
  type NamedOutput,
  type Naming,
  outputsOfRow,
} from './output-paths.js'
import { type ManifestRow, readRow } from './row.js'
import { schemasOfRow } from './row-model.js'
import {
  checkSharedNames,
  fieldsOf,
  MAX_RUNS,
  type ModelSources,
  readSections,
  type Sections,
} from './sections.js'

interface ManifestOptions extends ImageRules, ModelSources {
  /** Path of the manifest, as given by the user. For standard input, a path that does not exist. */
  readonly path: string
  readonly bytes: Uint8Array
  readonly naming: Naming
  readonly allowOutside: boolean
  /** `--max-runs`: raises the limit on combinations of matrices. */
  readonly maxRuns?: number | undefined
  /** Files that no output may replace, such as the lock file, with a description of each. */
  readonly reserved?: ReadonlyMap<string, string>
  /** Further outputs in the lock file. A local image that is one of them must be written as `row:name#2`. */
  readonly furtherOutputs?: readonly FurtherOutputFile[]
}

/** An output of a row after its first one. */
export interface FurtherOutputFile {
  /** Name of the row that has the output. */
  readonly name: string
  /** Number of the output: 2 or more. */
  readonly number: number
  /** Path relative to the manifest. */
  readonly file: string
}

export type ManifestResult =
  | {
      readonly ok: true
      readonly manifest: Manifest
      /** Text that may mean something else than its author thinks. */
      readonly warnings: readonly ManifestProblem[]
    }
  | { readonly ok: false; readonly problems: readonly ManifestProblem[] }

/** A row of the manifest, or one combination of its matrix. */
interface ReportingRow extends ManifestRow {
  readonly template: RowTemplate | undefined
  readonly report: ReportProblem
}

interface ManifestContext {
  readonly options: ManifestOptions
  readonly isCsv: boolean
  readonly folder: ManifestFolder
  readonly referencesOf: ReferencesOf
  readonly problems: ProblemCollector
}

export async function readManifest(options: ManifestOptions): Promise<ManifestResult> {
  const problems = createProblemCollector()
  const folder = resolve(dirname(options.path))
  const warnings = createProblemCollector()
  const parsed = parseManifest(options.path, options.bytes, problems.report, warnings.report)
  const sections = parsed && sectionsOf(parsed, options, problems.report)
  const expanded = sections ? expandRows(sections, options, problems.report) : []
  const reading: ManifestContext = {
    options,
    problems,
    isCsv: sections?.isCsv ?? false,
    folder: createManifestFolder(folder),
    referencesOf: imageReaderIn(folder, options),
  }
  const rows = expanded.map((each) => ({
    ...each,
    ...readRow(each.node, each.sections, each.report, each.addedKeys),
  }))
  const entries = areTooMany(rows, problems) ? [] : await entriesOf(rows, reading)
  const found = problems.list()
  if (found.length > 0) return { ok: false, problems: found }
  const { models = {} } = sections ?? {}
  return { ok: true, manifest: { path: options.path, folder, models, entries }, warnings: warnings.list() }
}

/** Reads the sections, and checks the names that several rows share against the models of all rows. */
function sectionsOf(node: Node, options: ModelSources, report: ReportProblem): Sections {
  const sections = readSections(node, options, report)
  const schemas = new Set(sections.rows.flatMap((row) => schemasOfRow(row, sections)))
  return checkSharedNames(
    sections,
    fieldsOf([...schemas]),
    node.type === 'list' ? node.columns : undefined,
    report,
  )
}

/** Checked before `count` is expanded: 10,000 rows of 10,000 runs would not fit into memory. */
function areTooMany(rows: readonly ManifestRow[], { report }: ProblemCollector): boolean {
  let runs = 0
  for (const row of rows) {
    runs += row.count
    if (runs <= MAX_RUNS) continue
    report(row.positionOf('count'), `the manifest has more than ${MAX_RUNS} runs`)
    return true
  }
  return false
}

async function entriesOf(
  rows: readonly ReportingRow[],
  reading: ManifestContext,
): Promise<readonly ManifestEntry[]> {
  const { folder, referencesOf, options } = reading
  const named = rows.map((row) => {
    const all = outputsOfRow(row, options.naming, row.report)
    const outputs = all.filter((each) => isAllowed(row, each, reading))
    return {
      row,
      outputs,
      names: all.length === 0 ? [(row.name ?? '').normalize()] : all.map(({ name }) => name),
    }
  })
  const claims = named.flatMap(({ row, outputs }) => outputs.map((each) => claimOf(row, each, folder)))
  findCollisions(claims, reservedBy(reading))
  const problemOf = outputImageProblems([...claims, ...furtherClaims(claims, reading)], folder)
  const written = new Set(named.flatMap(({ names }) => names))
  const uses: RowUse[] = []
  for (const { row, outputs, names } of named) {
    const references = await referencesOf(row, row.report, (path, shown) => problemOf(path, shown, names))
    checkSize(row, references, reading)
    const positionOf = (item: number) =>
      row.hasOwnInput ? row.positionOf('input') : row.positionOf('image_urls', item)
    for (const each of outputs)
      uses.push({ entry: entryOf(row, each, references), positionOf, report: row.report })
  }
  return resolveRows(uses, {
    isCsv: reading.isCsv,
    isReported: (name) => written.has(name),
  })
}

/** Further outputs come from the lock file: their number is unknown until the run has ended. */
function furtherClaims(claims: readonly OutputClaim[], { options, folder }: ManifestContext) {
  const kinds = new Map(claims.map(({ name, kind }) => [name, kind]))
  return (options.furtherOutputs ?? []).flatMap(({ name, number, file }) =>
    kinds.has(name) ? [{ name, number, kind: kinds.get(name), realPath: folder.realPathOf(file) }] : [],
  )
}

const claimOf = (row: ReportingRow, named: NamedOutput, { realPathOf }: ManifestFolder): OutputClaim => ({
  ...named,
  isNamed: row.name !== undefined,
  kind: row.kind,
  realPath: realPathOf(named.output),
  template: row.template,
  report: row.report,
  at: row.at,
  nameAt: row.positionOf('name'),
  outputAt: row.positionOf(row.output === undefined ? 'name' : 'output'),
})

function isAllowed(
  row: ReportingRow,
  { output }: NamedOutput,
  { options, folder }: ManifestContext,
): boolean {
  if (options.allowOutside || folder.isInside(output)) return true
  row.report(
    row.positionOf(row.output === undefined ? 'name' : 'output'),
    `the output "${output}" is outside the folder of the manifest (--allow-outside allows that)`,
  )
  return false
}

function checkSize(
  row: ReportingRow,
  references: readonly ImageReference[],
  { options }: ManifestContext,
): void {
  const bytes = bytesToSend(row.input, references)
  if (bytes > options.maxBodyBytes)
    row.report(
      row.positionOf('image_urls'),
      tooLargeMessage(`the images need a request of ${bytes} bytes`, options.maxBodyBytes),
    )
}

function reservedBy({ options, folder }: ManifestContext): ReadonlyMap<string, string> {
  const files = new Map([[options.path, 'the manifest itself'], ...(options.reserved ?? [])])
  return new Map(
    [...files].map(([path, what]) => [
      sameFileKey(folder.realPathOf(join(resolve(dirname(path)), path.split(/[\\/]/).at(-1) ?? ''))),
      what,
    ]),
  )
}

const entryOf = (
  row: ReportingRow,
  { name, variant, output }: NamedOutput,
  references: readonly ImageReference[],
): ManifestEntry => ({
  name,
  variant,
  rowName: row.name ?? name,
  template: row.template?.name,
  at: row.at,
  kind: row.kind,
  model: row.model,
  input: row.input,
  identityInput: withSummaries(row.input, references),
  undocumentedInput: row.undocumentedInput && withSummaries(row.undocumentedInput, references),
  references,
  labels: row.labels,
  output,
})

export { type ImageRules, inputToSend } from './local-images.js'
export type { ImageReference, Manifest, ManifestEntry, RowReference } from './manifest-entry.js'
export type { ManifestProblem, Position } from './nodes.js'
export type { Naming } from './output-paths.js'
export type { Models } from './sections.js'
