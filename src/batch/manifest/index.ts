/**
 * Reads a manifest, checks it and expands its rows into entries, one for each run. Sends no request, and throws nothing
 * for an invalid manifest: all problems are returned together, each with its position.
 */
import { dirname, join, resolve } from 'node:path'
import { findCollisions, type OutputClaim, sameFileKey } from './collisions.js'
import { parseManifest } from './format.js'
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
import { type NamedOutput, type Naming, outputsOfRow } from './output-paths.js'
import { createProblemCollector, type ManifestProblem, type ProblemCollector } from './position.js'
import { MAX_RUNS } from './row-fields.js'
import { type RowUse, resolveRows } from './row-references.js'
import { readSections } from './sections.js'

export interface ManifestOptions extends ImageRules {
  /** As the user gave it; for standard input a path that does not exist. */
  readonly path: string
  readonly bytes: Uint8Array
  readonly naming: Naming
  readonly allowOutside: boolean
  /** Files that no output may replace, with a description of each: the lock file. */
  readonly reserved?: ReadonlyMap<string, string>
}

export type ManifestResult =
  | { readonly ok: true; readonly manifest: Manifest }
  | { readonly ok: false; readonly problems: readonly ManifestProblem[] }

interface Work {
  readonly options: ManifestOptions
  readonly folder: ManifestFolder
  readonly images: ImageReader
  readonly problems: ProblemCollector
}

export async function readManifest(options: ManifestOptions): Promise<ManifestResult> {
  const problems = createProblemCollector()
  const folder = resolve(dirname(options.path))
  const tree = parseManifest(options.path, options.bytes, problems.report)
  const sections = tree === undefined ? undefined : readSections(tree, problems.report)
  const work: Work = {
    options,
    problems,
    folder: createManifestFolder(folder),
    images: imageReaderIn(folder, options),
  }
  const rows = sections?.rows.map((node) => readRow(node, sections, problems.report)) ?? []
  const entries = areTooMany(rows, problems) ? [] : await entriesOf(rows, work)
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

async function entriesOf(rows: readonly ManifestRow[], work: Work): Promise<readonly ManifestEntry[]> {
  const { folder, images, options, problems } = work
  const entries: ManifestEntry[] = []
  const claims: OutputClaim[] = []
  const uses: RowUse[] = []
  for (const row of rows) {
    const references = await images.referencesOf(row, problems.report)
    checkSize(row, references, work)
    const positionOf = (item: number) =>
      row.hasOwnInput ? row.positionOf('input') : row.positionOf('image_urls', item)
    for (const named of outputsOfRow(row, options.naming, problems.report)) {
      if (!isAllowed(row, named, work)) continue
      const entry = entryOf(row, named, references)
      entries.push(entry)
      uses.push({ entry, positionOf })
      claims.push({
        ...named,
        isNamed: row.name !== undefined,
        kind: row.kind,
        realPath: folder.realPathOf(named.output),
        at: row.at,
        outputAt: row.positionOf(row.output === undefined ? 'name' : 'output'),
      })
    }
  }
  findCollisions(claims, reservedBy(work), problems.report)
  return resolveRows(uses, problems.report)
}

function isAllowed(row: ManifestRow, { output }: NamedOutput, { options, folder, problems }: Work): boolean {
  if (options.allowOutside || folder.isInside(output)) return true
  problems.report(
    row.positionOf(row.output === undefined ? 'name' : 'output'),
    `the output "${output}" is outside the folder of the manifest (--allow-outside allows that)`,
  )
  return false
}

function checkSize(
  row: ManifestRow,
  references: readonly ImageReference[],
  { options, problems }: Work,
): void {
  const bytes = bytesToSend(row.input, references)
  if (bytes > options.maxBodyBytes)
    problems.report(
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
  row: ManifestRow,
  { name, output }: NamedOutput,
  references: readonly ImageReference[],
): ManifestEntry => ({
  name,
  rowName: row.name ?? name,
  at: row.at,
  kind: row.kind,
  model: row.model,
  input: row.input,
  meaning: meaningOf(row.input, references),
  references,
  output,
})

export { inputToSend } from './local-images.js'
export type { ImageReference, ImageSummary, Manifest, ManifestEntry, RowReference } from './manifest-entry.js'
export type { Naming } from './output-paths.js'
export type { ManifestProblem, Position } from './position.js'
export type { Models } from './sections.js'
