/** Collects the values of the gallery page from the journal and the disk. */
import { posix, relative, resolve, sep, win32 } from 'node:path'
import {
  canBeOpened,
  type GalleryFile,
  type GalleryRun,
  linkTo,
  mediaOf,
  ratioOf,
} from '../../gallery/index.js'
import type { Journal, JournalRun, ListFilter } from '../../journal/index.js'
import { isHttpUrl, isObject } from '../../protocol/parse.js'
import { shortened } from '../../protocol/text.js'
import { formatBytes } from '../../protocol/units.js'
import { createFileFinder, type FoundFile } from '../runs/find-files.js'
import { nameOfRun } from '../runs/journal-rows.js'
import { pictureSizeOf } from '../runs/picture-size.js'

export interface Collected {
  /** Runs with at least one file on the disk, newest first. */
  readonly runs: readonly GalleryRun[]
  readonly files: number
  readonly leftOut: {
    /** Number of runs whose files were all moved, changed or deleted. */
    readonly missing: number
    /** Number of runs that succeeded and were never downloaded. */
    readonly notDownloaded: number
  }
}

/** `folder` is the folder of the page, `dataFolder` the data folder of `--local`. */
export async function collectGallery({
  journal,
  filter,
  folder,
  dataFolder,
}: {
  readonly journal: Journal
  readonly filter: ListFilter
  readonly folder: string
  readonly dataFolder: string
}): Promise<Collected> {
  const { limit, ...others } = filter
  const findFiles = createFileFinder(journal, dataFolder)
  const runs: GalleryRun[] = []
  const leftOut = { missing: 0, notDownloaded: 0 }
  // The limit counts only shown runs, because most runs of a journal may have no file.
  for (const run of journal.list(others)) {
    if (runs.length === limit) break
    const { files, missing } = await findFiles(run)
    if (files.length > 0)
      runs.push({
        ...describeRun(run, folder),
        files: files.map((file) => describeFile(run, file, folder)),
      })
    else if (missing > 0) leftOut.missing++
    else if (run.phase === 'succeeded') leftOut.notDownloaded++
  }
  return { runs, files: runs.reduce((sum, run) => sum + run.files.length, 0), leftOut }
}

const promptOf = ({ input }: JournalRun): string =>
  isObject(input) && typeof input.prompt === 'string' ? input.prompt : ''

/** Leaves out URLs, which may be signed, and values that are lists, objects or null. */
const parametersOf = ({ input }: JournalRun): readonly string[] =>
  Object.entries(isObject(input) ? input : {}).flatMap(([name, value]) =>
    name === 'prompt' || !['string', 'number', 'bigint', 'boolean'].includes(typeof value) || isHttpUrl(value)
      ? []
      : [shortened(`${name} ${value}`, 200)],
  )

const describeRun = (run: JournalRun, folder: string): Omit<GalleryRun, 'files'> => ({
  id: nameOfRun(run),
  row: run.name,
  manifest: run.manifest && relative(folder, run.manifest),
  prompt: promptOf(run),
  model: run.model,
  labels: run.labels,
  parameters: parametersOf(run),
  estimate: run.estimate,
  where: run.address.replace(/^https?:\/\//, ''),
  time: run.createdAtMs,
  tookMs: run.elapsedMs,
})

const USUAL_RATIO = 16 / 9

function describeFile({ input }: JournalRun, file: FoundFile, folder: string): GalleryFile {
  const { path, bytes, contentType, marks } = file
  const media = mediaOf(path, contentType)
  const pixels = media === 'image' ? pictureSizeOf(path) : undefined
  const requestedRatio = ratioOf(isObject(input) ? input.aspect_ratio : undefined)
  const ratio =
    pixels === undefined
      ? (requestedRatio ?? (media === 'video' ? USUAL_RATIO : 1))
      : pixels.width / pixels.height
  return {
    ...linkTo(folder, resolve(path), sep === '\\' ? win32 : posix),
    ...pixels,
    media,
    size: formatBytes(bytes),
    marks: marks || undefined,
    ratio: Math.round(ratio * 1_000) / 1_000,
    isOpened: canBeOpened(path),
  }
}
