/**
 * Reads a manifest, checks it and expands its rows into entries, one for each run. Sends no request, and throws nothing
 * for an invalid manifest: all problems are returned together, each with its position.
 */
import { dirname, join, resolve } from 'node:path'
import { findCollisions, type OutputClaim, sameFileKey } from './collisions.js'
import { formatOf, parseManifest } from './format.js'
import {
  bytesToSend,
  type ImageReader,
  type ImageRules,
  imageReaderIn,
  meaningOf,
  tooLargeMessage,
} from './local-images.js'
import type { ImageReference, Manifest, ManifestEntry } from './manifest-entry.js'
import { createManifestFolder, type ManifestFolder } from './manifest-folder.js'
import { type ManifestRow, readRow } from './manifest-row.js'
import { expandRows, type Origin, type RowTemplate } from './matrix.js'
import { createOutputFiles } from './output-files.js'
import { type NamedOutput, type Naming, outputsOfRow } from './output-paths.js'
import {
  createProblemCollector,
  type ManifestProblem,
  type ProblemCollector,
  type ReportProblem,
} from './position.js'
import { MAX_RUNS } from './row-fields.js'
import { isLackingIn, type RowUse, resolveRows } from './row-references.js'
import { readSections } from './sections.js'

export interface ManifestOptions extends ImageRules {
  /** As the user gave it; for standard input a path that does not exist. */
  readonly path: string
  readonly bytes: Uint8Array
  readonly naming: Naming
  readonly allowOutside: boolean
  /** `--max-runs`: matrices may have this many combinations, where it is more than their own limit. */
  readonly maxRuns?: number | undefined
  /** Files that no output may replace, with a description of each: the lock file. */
  readonly reserved?: ReadonlyMap<string, string>
  /** Those that the lock file knows: a local image that is one of them is written as `row:name#2`. */
  readonly furtherOutputs?: readonly FurtherOutputFile[]
}

/** An output of a row after its first one. */
export interface FurtherOutputFile {
  /** Of the row. */
  readonly name: string
  /** 2 or more. */
  readonly number: number
  /** Relative to the manifest. */
  readonly file: string
}

export type ManifestResult =
  | { readonly ok: true; readonly manifest: Manifest }
  | { readonly ok: false; readonly problems: readonly ManifestProblem[] }

/** A row of the manifest, or one that a matrix has made. */
interface Row extends ManifestRow {
  readonly origin: Origin | undefined
  readonly report: ReportProblem
}

interface Work {
  readonly options: ManifestOptions
  readonly folder: ManifestFolder
  readonly images: ImageReader
  readonly problems: ProblemCollector
  /** The rows of a matrix with mistakes, which are missing. */
  readonly lacking: readonly RowTemplate[]
}

export async function readManifest(options: ManifestOptions): Promise<ManifestResult> {
  const problems = createProblemCollector()
  const folder = resolve(dirname(options.path))
  const tree = parseManifest(options.path, options.bytes, problems.report)
  const sections = tree === undefined ? undefined : readSections(tree, problems.report)
  const expanded = sections === undefined ? undefined : expandRows(sections, options, problems.report)
  const work: Work = {
    options,
    problems,
    folder: createManifestFolder(folder),
    images: imageReaderIn(folder, options),
    lacking: expanded?.lacking ?? [],
  }
  const rows =
    expanded?.rows.map((each) => ({ ...each, ...readRow(each.node, each.sections, each.report) })) ?? []
  const entries = areTooMany(rows, problems) ? [] : await entriesOf(rows, work)
  expanded?.flush()
  const found = problems.list()
  if (found.length > 0) return { ok: false, problems: found }
  return { ok: true, manifest: { path: options.path, folder, models: sections?.models ?? {}, entries } }
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

async function entriesOf(rows: readonly Row[], work: Work): Promise<readonly ManifestEntry[]> {
  const { folder, images, options, problems } = work
  const named = rows.map((row) => {
    const all = outputsOfRow(row, options.naming, row.report)
    const outputs = all.filter((each) => isAllowed(row, each, work))
    return { row, outputs, names: all.length === 0 ? [row.name ?? ''] : all.map(({ name }) => name) }
  })
  const claims = named.flatMap(({ row, outputs }) => outputs.map((each) => claimOf(row, each, folder)))
  findCollisions(claims, reservedBy(work), problems.report)
  const files = createOutputFiles([...claims, ...furtherClaims(claims, work)], folder)
  const uses: RowUse[] = []
  for (const { row, outputs, names } of named) {
    const references = await images.referencesOf(row, row.report, (path, shown) =>
      files.problemOf(path, shown, names),
    )
    checkSize(row, references, work)
    const positionOf = (item: number) =>
      row.hasOwnInput ? row.positionOf('input') : row.positionOf('image_urls', item)
    for (const each of outputs)
      uses.push({ entry: entryOf(row, each, references), positionOf, report: row.report })
  }
  return resolveRows(uses, {
    isCsv: formatOf(options.path, Buffer.from(options.bytes).toString()) === 'csv',
    isLacking: isLackingIn(work.lacking, new Set(named.flatMap(({ names }) => names))),
  })
}

/** How many outputs a run has shows only when it has ended: those that the lock file knows. */
function furtherClaims(claims: readonly OutputClaim[], { options, folder }: Work) {
  const kinds = new Map(claims.map(({ name, kind }) => [name, kind]))
  return (options.furtherOutputs ?? []).flatMap(({ name, number, file }) =>
    kinds.has(name) ? [{ name, number, kind: kinds.get(name), realPath: folder.realPathOf(file) }] : [],
  )
}

const claimOf = (row: Row, named: NamedOutput, { realPathOf }: ManifestFolder): OutputClaim => ({
  ...named,
  isNamed: row.name !== undefined,
  kind: row.kind,
  realPath: realPathOf(named.output),
  origin: row.origin,
  report: row.report,
  at: row.at,
  nameAt: row.positionOf('name'),
  outputAt: row.positionOf(row.output === undefined ? 'name' : 'output'),
})

function isAllowed(row: Row, { output }: NamedOutput, { options, folder }: Work): boolean {
  if (options.allowOutside || folder.isInside(output)) return true
  row.report(
    row.positionOf(row.output === undefined ? 'name' : 'output'),
    `the output "${output}" is outside the folder of the manifest (--allow-outside allows that)`,
  )
  return false
}

function checkSize(row: Row, references: readonly ImageReference[], { options }: Work): void {
  const bytes = bytesToSend(row.input, references)
  if (bytes > options.maxBodyBytes)
    row.report(
      row.positionOf('image_urls'),
      tooLargeMessage(`the images need a request of ${bytes} bytes`, options.maxBodyBytes),
    )
}

function reservedBy({ options, folder }: Work): ReadonlyMap<string, string> {
  const files = new Map([[options.path, 'the manifest itself'], ...(options.reserved ?? [])])
  return new Map(
    [...files].map(([path, what]) => [
      sameFileKey(folder.realPathOf(join(resolve(dirname(path)), path.split(/[\\/]/).at(-1) ?? ''))),
      what,
    ]),
  )
}

const entryOf = (
  row: Row,
  { name, output }: NamedOutput,
  references: readonly ImageReference[],
): ManifestEntry => ({
  name,
  rowName: row.name ?? name,
  template: row.origin?.template.name ?? row.origin?.template.output,
  at: row.at,
  kind: row.kind,
  model: row.model,
  input: row.input,
  meaning: meaningOf(row.input, references),
  references,
  output,
})

export { type ImageRules, inputToSend } from './local-images.js'
export type { ImageReference, Manifest, ManifestEntry, RowReference } from './manifest-entry.js'
export type { Naming } from './output-paths.js'
export type { ManifestProblem, Position } from './position.js'
export type { Models } from './sections.js'
