/** `rushes gallery`: writes one HTML page with the results on this machine. It sends no requests. */
import { existsSync, statSync } from 'node:fs'
import { dirname, join, posix, relative, resolve, sep, win32 } from 'node:path'
import type { Command } from 'commander'
import { namesFolder } from '../../download/file-names.js'
import { withWriteErrors } from '../../download/final-files.js'
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
} from '../../gallery/index.js'
import { isFolder, makeFolders, reasonUnwritable } from '../../host/file-system.js'
import { readBeginning, writeAtomically } from '../../host/files.js'
import type { Journal, JournalRun, ListFilter } from '../../journal/index.js'
import { pictureSizeOf } from '../../preview/files.js'
import { DEFAULTS } from '../../protocol/defaults.js'
import type { DownloadedFile } from '../../protocol/media.js'
import { isObject } from '../../protocol/parse.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { createFileFinder, nameOfRun } from '../runs/journal-rows.js'
import { addFilterOptions, type FilterOptions, filterOf } from '../runs/run-selection.js'
import { plural } from '../terminal/format.js'

const PAGE_NAME = DEFAULTS.galleryPage

interface GalleryFlags extends FilterOptions {
  readonly output: string
}

export function register(command: Command, { act }: CommandEnvironment): void {
  command
    .argument('[manifest]', 'Only results of this manifest of `rushes batch`')
    .option('-o, --output <path>', 'Write the page to this path', PAGE_NAME)
  act(addFilterOptions(command, { limit: '0' }), galleryCommand)
}

async function galleryCommand(ctx: Context, flags: GalleryFlags, manifest?: string): Promise<number> {
  const { out } = ctx
  const path = checkPagePath(flags.output)
  const filter = await filterOf(ctx, { ...flags, manifest })
  const journal = await ctx.journal()
  if (filter.manifest !== undefined) checkManifest(journal, filter.manifest, manifest)
  const { runs, missing, notDownloaded } = await collectRuns(journal, filter, dirname(resolve(path)))
  const notes: string[] = []
  if (missing > 0) notes.push(`Skipped ${plural(missing, 'run')} (files missing or changed).`)
  if (notDownloaded > 0)
    notes.push(
      `Skipped ${plural(notDownloaded, 'run')} without a downloaded file. To download one: \`rushes download <id>\`.`,
    )
  const today = new Date(ctx.clock.now()).toISOString().slice(0, 10)
  const html = `${galleryHtml({ runs, notes: [`Written ${today}.`, ...notes] })}\n`
  if (runs.length === 0) out.note('The page is empty: no run with a file on this machine was found.')
  for (const note of notes) out.note(note)
  await withWriteErrors(path, async () => {
    makeFolders(dirname(resolve(path)))
    await writeAtomically(path, html)
  })
  const json = {
    path,
    runs: runs.length,
    files: runs.reduce((sum, { files }) => sum + files.length, 0),
    bytes: Buffer.byteLength(html),
    left_out: { missing, not_downloaded: notDownloaded },
  }
  out.answer(json, path)
  return EXIT.ok
}

/** Throws `usage` for a manifest without runs in the journal. */
function checkManifest(journal: Journal, path: string, typed = ''): void {
  if (journal.list({ manifest: path, limit: 1 }).length > 0) return
  if (!existsSync(path)) throw usageError(`${typed}: no such file.`)
  throw usageError(
    `${typed}: the journal of this machine has no runs of this manifest.`,
    'Create them with `rushes batch`, or leave out the name to show all results.',
  )
}

/**
 * Returns the path of the page, as printed. Only a page of an earlier command is replaced. Throws `usage` for an invalid
 * path, before anything is written.
 */
function checkPagePath(output: string): string {
  if (output === '-')
    throw usageError('-o -: the page cannot be written to standard output.', 'Choose a path with -o <path>.')
  const path = namesFolder(output) || isFolder(output) ? join(output, PAGE_NAME) : output
  const reason = reasonUnwritable(dirname(resolve(path)))
  if (reason !== undefined)
    throw usageError(`Cannot write the page: ${reason}.`, 'Choose another path with -o <path>.')
  if (!existsSync(path) || isEarlierPage(path)) return path
  throw usageError(
    `${path} already exists, and is not a page of \`rushes gallery\`.`,
    'Choose another path with -o <path>.',
  )
}

function isEarlierPage(path: string): boolean {
  try {
    // Check that it is a file first: opening a named pipe would wait for its writer.
    return statSync(path).isFile() && isGallery(readBeginning(path, BEGINNING_BYTES).toString())
  } catch {
    return false
  }
}

/**
 * Returns the runs with at least one file on the disk, newest first, and the numbers of the others: those whose files were all
 * moved, changed or deleted, and those that were never downloaded. `folder`: of the page.
 */
async function collectRuns(journal: Journal, { limit, ...filter }: ListFilter, folder: string) {
  const findFiles = createFileFinder(journal)
  const runs: GalleryRun[] = []
  let missing = 0
  let notDownloaded = 0
  // The limit counts only shown runs, because most runs of a journal may have no file.
  for (const run of journal.list(filter)) {
    if (runs.length === limit) break
    const found = findFiles(run)
    if (found.files.length > 0) runs.push(await describeRun(run, found.files, folder))
    else if (found.missing > 0) missing++
    else if (run.phase === 'succeeded') notDownloaded++
  }
  return { runs, missing, notDownloaded }
}

async function describeRun(
  run: JournalRun,
  files: readonly DownloadedFile[],
  folder: string,
): Promise<GalleryRun> {
  const prompt = isObject(run.input) ? run.input.prompt : undefined
  return {
    id: nameOfRun(run),
    row: run.name,
    manifest: run.manifest && relative(folder, run.manifest),
    prompt: typeof prompt === 'string' ? prompt : '',
    model: run.model,
    labels: run.labels,
    time: run.createdAtMs,
    files: await Promise.all(files.map((file) => describeFile(file, folder))),
  }
}

const FILM_RATIO = 16 / 9

async function describeFile({ path, content_type }: DownloadedFile, folder: string): Promise<GalleryFile> {
  const media = mediaOf(path, content_type)
  const pixels = media === 'image' ? await pictureSizeOf(path) : undefined
  const ratio = pixels ? pixels.width / pixels.height : media === 'video' ? FILM_RATIO : 1
  return {
    ...linkTo(folder, resolve(path), sep === '\\' ? win32 : posix),
    media,
    ratio: Math.round(ratio * 1_000) / 1_000,
    isOpened: canBeOpened(path),
  }
}
