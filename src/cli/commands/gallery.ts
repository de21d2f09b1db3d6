/** `rushes gallery`: writes one HTML page with the results on this machine. It sends no requests. */
import { existsSync, statSync } from 'node:fs'
import { dirname, join, posix, relative, resolve, sep, win32 } from 'node:path'
import { type Command, Option } from 'commander'
import { withWriteErrors } from '../../download/failures.js'
import { obstacleAt } from '../../download/final-files.js'
import { namesFolder } from '../../download/target.js'
import { EXIT, usageError } from '../../errors.js'
import {
  BEGINNING_BYTES,
  canBeOpened,
  type GalleryFile,
  type GalleryRun,
  galleryHtml,
  isGallery,
  linkTo,
  mediaOf,
  ratioOf,
} from '../../gallery/index.js'
import { isFolder, makeFolders, reasonUnwritable } from '../../host/directories.js'
import { readBeginning, writeAtomically } from '../../host/files.js'
import type { Journal, JournalRun, ListFilter } from '../../journal/index.js'
import { pictureSizeOf } from '../../preview/picture-size.js'
import { isHttpUrl, isObject } from '../../protocol/parse.js'
import { printable, shortened } from '../../protocol/text.js'
import { formatBytes } from '../../protocol/units.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { checkStdout } from '../flags/delivery.js'
import { createFileFinder, type FoundFile } from '../runs/find-files.js'
import { nameOfRun } from '../runs/journal-rows.js'
import { addFilterOptions, type FilterOptions, filterOf } from '../runs/run-selection.js'
import { LOCAL_FOLDER } from '../settings/folders.js'
import { plural } from '../terminal/format.js'

const PAGE_NAME = 'gallery.html'

export interface GalleryOptions extends FilterOptions {
  readonly output: string
  readonly overwrite: boolean
}

export function register(command: Command, { run }: CommandEnvironment, gallery = galleryCommand): void {
  command
    .argument('[manifest]', 'Only results of this manifest of `rushes batch`')
    .addOption(
      new Option('-o, --output <path>', 'Write the page to this path; - is standard output').default(
        PAGE_NAME,
      ),
    )
    .addOption(new Option('--overwrite', 'Replace a file that is not a page of this command').default(false))
  addFilterOptions(command, { limit: '0' }).action((manifest: string | undefined, flags: GalleryOptions) =>
    run(command, (ctx) => gallery(ctx, { ...flags, manifest })),
  )
}

export async function galleryCommand(ctx: Context, options: GalleryOptions): Promise<number> {
  const { out } = ctx
  const isStdout = options.output === '-'
  if (isStdout) checkStdout(ctx, 'the page', PAGE_NAME)
  const path = isStdout ? PAGE_NAME : checkPagePath(options.output, options)
  const filter = await filterOf(ctx, options)
  const journal = await ctx.journal()
  const { manifest } = filter
  if (manifest !== undefined && journal.list({ manifest, limit: 1 }).length === 0)
    throw usageError(
      existsSync(manifest)
        ? `${printable(options.manifest ?? '')}: the journal of this machine has no runs of this manifest.`
        : `${printable(options.manifest ?? '')}: no such file.`,
      'Create them with `rushes batch`, or leave out the name to show all results.',
    )
  const collected = await collectGallery({
    journal,
    filter,
    folder: dirname(resolve(path)),
    dataFolder: join(ctx.stateFolder, LOCAL_FOLDER),
  })
  const { runs, files, leftOut } = collected
  const notes = notesOf(collected)
  const html = galleryHtml({
    runs,
    notes: [`Written ${new Date(ctx.clock.now()).toISOString().slice(0, 10)}.`, ...notes],
  })
  for (const note of [
    ...(runs.length === 0 ? ['The page is empty: no run with a file on this machine was found.'] : []),
    ...notes,
  ])
    out.note(note)
  if (isStdout) {
    out.line(html)
    return EXIT.ok
  }
  const page = `${html}\n`
  await writePage(path, page)
  if (out.mode.json)
    out.json({
      path,
      runs: runs.length,
      files,
      bytes: Buffer.byteLength(page),
      left_out: { missing: leftOut.missing, not_downloaded: leftOut.notDownloaded },
    })
  else out.line(printable(path))
  return EXIT.ok
}

function notesOf({ leftOut: { missing, notDownloaded } }: Collected): readonly string[] {
  const notes: string[] = []
  if (missing > 0)
    notes.push(
      missing === 1
        ? 'Skipped 1 run (file missing or changed).'
        : `Skipped ${missing} runs (files missing or changed).`,
    )
  if (notDownloaded > 0)
    notes.push(
      `Skipped ${plural(notDownloaded, 'run')} without a downloaded file. ` +
        `To download ${notDownloaded === 1 ? 'it' : 'them'}: \`rushes download <id>\`.`,
    )
  return notes
}

/**
 * Returns the path of the page, as printed. Replaces a page of an earlier command; replaces any other file only with
 * `--overwrite`. Throws `usage` for an invalid path, before anything is written.
 */
function checkPagePath(output: string, { overwrite }: { readonly overwrite: boolean }): string {
  if (output === '') throw usageError('The output path is empty.', `Give a file or a folder: -o ${PAGE_NAME}`)
  if (output.includes('\0')) throw usageError('The output path contains a NUL character.')
  const path = namesFolder(output) || isFolder(output) ? join(output, PAGE_NAME) : output
  const reason = reasonUnwritable(dirname(resolve(path)))
  if (reason !== undefined)
    throw usageError(`Cannot write the page: ${printable(reason)}.`, 'Choose another path with -o <path>.')
  const obstacle = isEarlierPage(path) ? undefined : obstacleAt(path, overwrite)
  if (obstacle === undefined) return path
  throw usageError(
    overwrite ? `${obstacle.message}.` : `${obstacle.message}, and is not a page of \`rushes gallery\`.`,
    overwrite
      ? 'Choose another path with -o <path>.'
      : 'Use --overwrite to replace it, or choose another path with -o <path>.',
  )
}

/** Throws `download_failed` when the page cannot be written. */
async function writePage(path: string, html: string): Promise<void> {
  await withWriteErrors(path, async () => {
    makeFolders(dirname(resolve(path)))
    await writeAtomically(path, html)
  })
}

function isEarlierPage(path: string): boolean {
  try {
    // Check that it is a file first: opening a named pipe would wait for its writer.
    return statSync(path).isFile() && isGallery(readBeginning(path, BEGINNING_BYTES).toString())
  } catch {
    return false
  }
}

interface Collected {
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

/**
 * Collects the values of the page from the journal and the disk. `folder` is the folder of the page, `dataFolder` the
 * data folder of `--local`.
 */
async function collectGallery({
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
        files: await Promise.all(files.map((file) => describeFile(run, file, folder))),
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

async function describeFile({ input }: JournalRun, file: FoundFile, folder: string): Promise<GalleryFile> {
  const { path, bytes, contentType } = file
  const media = mediaOf(path, contentType)
  const pixels = media === 'image' ? await pictureSizeOf(path) : undefined
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
    ratio: Math.round(ratio * 1_000) / 1_000,
    isOpened: canBeOpened(path),
  }
}
