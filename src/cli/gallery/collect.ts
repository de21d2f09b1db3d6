/** From the journal and the disk to the values of the page. */
import { posix, resolve, sep, win32 } from 'node:path'
import type { GalleryFile, GalleryRun } from '../../gallery/index.js'
import { linkTo } from '../../gallery/links.js'
import { canBeOpened, mediaOf, ratioOf } from '../../gallery/media.js'
import type { Journal, JournalRun, ListFilter } from '../../journal/index.js'
import { formatBytes } from '../../protocol/byte-size.js'
import { isHttpUrl, isObject } from '../../protocol/parse.js'
import { quoteWord } from '../../protocol/shell-word.js'
import type { Context } from '../context/context.js'
import { commandAgain, type EarlierOutputs } from '../runs/again.js'
import { nameOfRun } from '../runs/journal-rows.js'
import { addressOr, flagsFor } from '../runs/where.js'
import { LOCAL_ADDRESS } from '../settings/table.js'
import { createFileFinder, type FoundFile } from './found-files.js'
import { pictureSizeOf } from './picture-size.js'

export interface Collected {
  /** Those with a file on the disk, newest first. */
  readonly runs: readonly GalleryRun[]
  readonly files: number
  readonly leftOut: {
    /** Runs whose files were all moved, changed or deleted. */
    readonly missing: number
    /** Runs that succeeded and were never downloaded. */
    readonly notDownloaded: number
  }
}

export interface CollectOptions {
  readonly ctx: Context
  readonly journal: Journal
  readonly filter: ListFilter
  /** Folder of the page. */
  readonly folder: string
  /** Data folder of `--local`. */
  readonly dataFolder: string
}

export async function collectGallery(options: CollectOptions): Promise<Collected> {
  const { ctx, journal, filter, folder, dataFolder } = options
  const { limit, ...others } = filter
  const everyFile = journal.everyFile()
  const finder = createFileFinder({ everyFile, dataFolder })
  const earlier = earlierOutputs(journal, everyFile)
  const flagsOf = rememberedFlags(ctx)
  const runs: GalleryRun[] = []
  const leftOut = { missing: 0, notDownloaded: 0 }
  // The limit counts what is shown: most runs of a journal may have no file.
  for (const run of journal.list(others)) {
    if (runs.length === limit) break
    const { files, missing } = await finder.filesOf(run)
    if (files.length > 0) {
      const { command, missing: lost } = commandAgain(earlier, run, await flagsOf(run))
      const again = lost.length > 0 ? undefined : command
      runs.push({ ...describeRun(run), again, files: files.map((file) => describeFile(run, file, folder)) })
    } else if (missing > 0) leftOut.missing++
    else if (run.phase === 'succeeded') leftOut.notDownloaded++
  }
  return { runs, files: runs.reduce((sum, run) => sum + run.files.length, 0), leftOut }
}

const promptOf = ({ input }: JournalRun): string =>
  isObject(input) && typeof input.prompt === 'string' ? input.prompt : ''

const describeRun = (run: JournalRun): Omit<GalleryRun, 'files'> => ({
  id: nameOfRun(run),
  prompt: promptOf(run),
  model: run.model,
  where: run.address.replace(/^https?:\/\//, ''),
  time: run.createdAtMs,
  tookMs: run.elapsedMs,
})

const USUAL_RATIO = 16 / 9

function describeFile({ input }: JournalRun, file: FoundFile, folder: string): GalleryFile {
  const { path, bytes, contentType } = file
  const media = mediaOf(path, contentType)
  const pixels = media === 'image' ? pictureSizeOf(path) : undefined
  const asked = ratioOf(isObject(input) ? input.aspect_ratio : undefined)
  const ratio =
    pixels === undefined ? (asked ?? (media === 'video' ? USUAL_RATIO : 1)) : pixels.width / pixels.height
  return {
    ...linkTo(folder, resolve(path), sep === '\\' ? win32 : posix),
    ...pixels,
    media,
    size: formatBytes(bytes),
    ratio: Math.round(ratio * 1_000) / 1_000,
    isOpened: canBeOpened(path),
  }
}

/**
 * Earlier outputs by link and by content. The journal's own functions walk all runs for each question. Built when the first
 * run with a reference image asks.
 */
function earlierOutputs(journal: Journal, everyFile: ReturnType<Journal['everyFile']>): EarlierOutputs {
  let tables: { byLink: Map<string, JournalRun>; byContent: Map<string, string[]> } | undefined
  const build = () => {
    const byLink = new Map<string, JournalRun>()
    const byContent = new Map<string, string[]>()
    for (const run of journal.list({})) {
      for (const url of run.urls)
        if (isHttpUrl(url)) {
          const link = `${run.address}\n${new URL(url).pathname}`
          if (!byLink.has(link)) byLink.set(link, run)
        }
      for (const { sha256, path } of everyFile.get(run.row) ?? [])
        byContent.set(sha256, [...(byContent.get(sha256) ?? []), path])
    }
    return { byLink, byContent }
  }
  const table = () => {
    tables ??= build()
    return tables
  }
  return {
    findByOutput: (address, pathname) => table().byLink.get(`${address}\n${pathname}`),
    pathsWithContent: (sha256) => table().byContent.get(sha256) ?? [],
  }
}

/** The flags with which a later command reaches a run, whatever the flags of this one are. */
function rememberedFlags(ctx: Context): (run: JournalRun) => Promise<readonly string[]> {
  const known = new Map<string, Promise<readonly string[]>>()
  const { profile, baseUrl } = ctx.globals
  async function find(run: JournalRun): Promise<readonly string[]> {
    const isNamed = profile !== undefined && run.profile === ctx.profileName
    const isAddressed = baseUrl !== undefined && (await addressOr(ctx)) === run.address
    return [
      ...(isNamed ? ['--profile', quoteWord(profile)] : []),
      ...(isAddressed ? ['--base-url', quoteWord(run.address)] : []),
      ...(await flagsFor(ctx, run)),
    ]
  }
  return (run) => {
    if (run.address === LOCAL_ADDRESS) return Promise.resolve(['--local'])
    const home = `${run.profile}\n${run.address}`
    const found = known.get(home) ?? find(run)
    known.set(home, found)
    return found
  }
}
