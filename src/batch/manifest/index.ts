/**
 * A manifest, whole: read, checked, and counted out into entries. Nothing here asks the network, and nothing is thrown
 * for what is wrong with a manifest: all of it is told at once, each with its place.
 */
import { dirname, join, resolve } from 'node:path'
import { type Claimed, findCollisions, sameFileKey } from './collisions.js'
import type { Entry, Manifest, Reference } from './entry.js'
import { MAX_RUNS } from './fields.js'
import { parseManifest } from './format.js'
import { type Grounds, groundsOf } from './inside.js'
import { type Naming, type Placed, placesOf } from './outputs.js'
import { collectProblems, type Problem, type Problems } from './position.js'
import {
  bytesToSend,
  type ImageReader,
  type ImageRules,
  imageReaderIn,
  meaningOf,
  sayTooLarge,
} from './references.js'
import { type Row, readRow } from './row.js'
import { readTop } from './top.js'

export interface ManifestOptions extends ImageRules {
  /** As the user gave it; for standard input the path of a file that is not there. */
  readonly path: string
  readonly bytes: Uint8Array
  readonly naming: Naming
  readonly allowOutside: boolean
  /** Files that no output may be, by what they are: the lock file. */
  readonly reserved?: ReadonlyMap<string, string>
}

export type ManifestResult =
  | { readonly ok: true; readonly manifest: Manifest }
  | { readonly ok: false; readonly problems: readonly Problem[] }

interface Work {
  readonly options: ManifestOptions
  readonly grounds: Grounds
  readonly images: ImageReader
  readonly problems: Problems
}

export async function readManifest(options: ManifestOptions): Promise<ManifestResult> {
  const problems = collectProblems()
  const folder = resolve(dirname(options.path))
  const tree = parseManifest(options.path, options.bytes, problems.report)
  const top = tree === undefined ? undefined : readTop(tree, problems.report)
  const work: Work = {
    options,
    problems,
    grounds: groundsOf(folder),
    images: imageReaderIn(folder, options),
  }
  const rows = top?.rows.map((node) => readRow(node, top, problems.report)) ?? []
  const entries = areTooMany(rows, problems) ? [] : await entriesOf(rows, work)
  const found = problems.list()
  if (found.length > 0) return { ok: false, problems: found }
  return { ok: true, manifest: { path: options.path, folder, models: top?.models ?? {}, entries } }
}

/** Before they are counted out: ten thousand rows of ten thousand would not fit into memory. */
function areTooMany(rows: readonly Row[], { report }: Problems): boolean {
  let runs = 0
  for (const row of rows) {
    runs += row.count
    if (runs <= MAX_RUNS) continue
    report(row.positionOf('count'), `makes more than ${MAX_RUNS} runs in all; a manifest takes that many`)
    return true
  }
  return false
}

async function entriesOf(rows: readonly Row[], work: Work): Promise<readonly Entry[]> {
  const { grounds, images, options, problems } = work
  const entries: Entry[] = []
  const claims: Claimed[] = []
  for (const row of rows) {
    const references = await images.referencesOf(row, problems.report)
    checkSize(row, references, work)
    for (const placed of placesOf(row, options.naming, problems.report)) {
      if (!isAllowed(row, placed, work)) continue
      entries.push(entryOf(row, placed, references))
      claims.push({
        ...placed,
        isNamed: row.name !== undefined,
        kind: row.kind,
        place: grounds.placeOf(placed.output),
        at: row.at,
        outputAt: row.positionOf(row.output === undefined ? 'name' : 'output'),
      })
    }
  }
  findCollisions(claims, reservedBy(work), problems.report)
  return entries
}

function isAllowed(row: Row, { output }: Placed, { options, grounds, problems }: Work): boolean {
  if (options.allowOutside || grounds.isInside(output)) return true
  problems.report(
    row.positionOf(row.output === undefined ? 'name' : 'output'),
    `the output "${output}" is outside the folder of the manifest, which takes --allow-outside`,
  )
  return false
}

function checkSize(row: Row, references: readonly Reference[], { options, problems }: Work): void {
  const bytes = bytesToSend(row.input, references)
  if (bytes > options.maxBodyBytes)
    problems.report(
      row.positionOf('image_urls'),
      sayTooLarge(`the images make a request of ${bytes} bytes`, options.maxBodyBytes),
    )
}

function reservedBy({ options, grounds }: Work): ReadonlyMap<string, string> {
  const files = new Map([[options.path, 'the manifest itself'], ...(options.reserved ?? [])])
  return new Map(
    [...files].map(([path, what]) => [
      sameFileKey(grounds.placeOf(join(resolve(dirname(path)), path.split(/[\\/]/).at(-1) ?? ''))),
      what,
    ]),
  )
}

const entryOf = (row: Row, { name, output }: Placed, references: readonly Reference[]): Entry => ({
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

export type { Entry, ImageSummary, Manifest, Reference } from './entry.js'
export type { Naming } from './outputs.js'
export type { Position, Problem } from './position.js'
export { inputToSend } from './references.js'
export type { Models } from './top.js'
