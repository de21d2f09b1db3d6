/** `rushes gallery`: writes one HTML page with the results on this machine. It sends no requests. */
import { dirname, join, resolve } from 'node:path'
import { type Command, Option } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import { galleryHtml } from '../../gallery/index.js'
import { printable } from '../../protocol/text.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { checkStdout } from '../flags/delivery.js'
import { type Collected, collectGallery } from '../gallery/collect.js'
import { checkPagePath, PAGE_NAME, writePage } from '../gallery/page-target.js'
import { openOrWarn } from '../runs/print-run.js'
import { addFilterOptions, type FilterOptions, filterOf } from '../runs/run-selection.js'
import { LOCAL_FOLDER } from '../settings/folders.js'
import { plural } from '../terminal/format.js'

export interface GalleryOptions extends FilterOptions {
  readonly output: string
  readonly overwrite: boolean
  readonly open: boolean
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
    .addOption(new Option('--open', 'Open the page').default(false))
  addFilterOptions(command, { limit: '0' }).action((manifest: string | undefined, flags: GalleryOptions) =>
    run(command, (ctx) => gallery(ctx, { ...flags, manifest })),
  )
}

export async function galleryCommand(ctx: Context, options: GalleryOptions): Promise<number> {
  const { out } = ctx
  const isStdout = options.output === '-'
  if (isStdout) {
    checkStdout(ctx, 'the page', PAGE_NAME)
    if (options.open)
      throw usageError(
        '-o - and --open cannot be used together.',
        `Name a file to open: -o ${PAGE_NAME} --open.`,
      )
  }
  const path = isStdout ? PAGE_NAME : checkPagePath(options.output, options)
  const filter = await filterOf(ctx, options)
  const journal = await ctx.journal()
  const { manifest } = filter
  if (manifest !== undefined && journal.list({ manifest, limit: 1 }).length === 0)
    throw usageError(
      `${printable(options.manifest ?? '')}: the journal of this machine has no runs of this manifest.`,
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
  if (options.open) await openOrWarn(ctx, path)
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
