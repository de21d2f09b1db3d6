/** Collects the values of the gallery page from the journal and the disk. */
import { statSync } from 'node:fs'
import { posix, resolve, sep, win32 } from 'node:path'
import { disableTypes, imageSize } from 'image-size'
import {
  canBeOpened,
  type GalleryFile,
  type GalleryRun,
  linkTo,
  mediaOf,
  ratioOf,
} from '../../gallery/index.js'
import { readBeginning, sha256OfFile } from '../../host/files.js'
import type { Journal, JournalFile, JournalRun, ListFilter } from '../../journal/index.js'
import { isHttpUrl, isObject } from '../../protocol/parse.js'
import { quoteWord } from '../../protocol/text.js'
import { formatBytes } from '../../protocol/units.js'
import { outputPathOf } from '../../service/data-folders.js'
import type { Context } from '../context/context.js'
import { commandAgain, type EarlierOutputs, modelsOf } from '../runs/again.js'
import { isOnDisk, nameOfRun } from '../runs/journal-rows.js'
import { addressOr, flagsFor } from '../runs/where.js'
import { LOCAL_ADDRESS } from '../settings/table.js'

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
  ctx,
  journal,
  filter,
  folder,
  dataFolder,
}: {
  readonly ctx: Context
  readonly journal: Journal
  readonly filter: ListFilter
  readonly folder: string
  readonly dataFolder: string
}): Promise<Collected> {
  const { limit, ...others } = filter
  const everyFile = journal.everyFile()
  const findFiles = createFileFinder(everyFile, dataFolder)
  const earlier = earlierOutputs(journal, everyFile)
  const flagsOf = createFlagsFinder(ctx)
  const modelsByAddress = new Map<string, ReturnType<typeof modelsOf>>()
  const runs: GalleryRun[] = []
  const leftOut = { missing: 0, notDownloaded: 0 }
  // The limit counts only shown runs, because most runs of a journal may have no file.
  for (const run of journal.list(others)) {
    if (runs.length === limit) break
    const { files, missing } = await findFiles(run)
    if (files.length > 0) {
      const models = modelsByAddress.get(run.address) ?? modelsOf(ctx, run.address)
      modelsByAddress.set(run.address, models)
      const options = { flags: await flagsOf(run), models: await models }
      const { command, missing: missingReferences } = commandAgain(earlier, run, options)
      const again = missingReferences.length > 0 ? undefined : command
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

/**
 * Finds earlier outputs by link and by content. The tables are built once, when the first run with a reference image
 * needs them: the functions of the journal read all runs for each lookup.
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

/**
 * Returns the flags that a later command needs to access a run. The result does not depend on the flags of the current
 * command.
 */
function createFlagsFinder(ctx: Context): (run: JournalRun) => Promise<readonly string[]> {
  const flagsByTarget = new Map<string, Promise<readonly string[]>>()
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
    const cacheKey = `${run.profile}\n${run.address}`
    const found = flagsByTarget.get(cacheKey) ?? find(run)
    flagsByTarget.set(cacheKey, found)
    return found
  }
}

/** A file of a run that still exists on the disk. */
interface FoundFile {
  readonly path: string
  readonly bytes: number
  readonly contentType: string | undefined
}

/**
 * Finds the files of a run at their download paths or in the data folder of `--local`. `missing` is the number of files
 * that were not found.
 */
function createFileFinder(everyFile: ReturnType<Journal['everyFile']>, dataFolder: string) {
  const rewritten = rewrittenPaths(everyFile)
  const hashes = new Map<string, Promise<string | undefined>>()

  /**
   * Checks the size of the file. Checks the content, which requires reading the file, only if several downloads wrote
   * to the same path.
   */
  async function isUnchanged(file: JournalFile): Promise<boolean> {
    if (!isOnDisk(file)) return false
    if (!rewritten.has(file.path)) return true
    const hash = hashes.get(file.path) ?? sha256OfFile(file.path).catch(() => undefined)
    hashes.set(file.path, hash)
    return (await hash) === file.sha256
  }

  async function latestOnDisk(copies: readonly JournalFile[]): Promise<JournalFile | undefined> {
    for (const file of [...copies].reverse()) if (await isUnchanged(file)) return file
    return undefined
  }

  /** Finds the copy in the data folder, which still exists when a download was moved. */
  function inDataFolder(url: string, recordedFile: JournalFile | undefined): FoundFile | undefined {
    const path = outputPathOf(dataFolder, url)
    const bytes = path === undefined ? undefined : sizeOf(path)
    if (
      path === undefined ||
      bytes === undefined ||
      (recordedFile !== undefined && recordedFile.bytes !== bytes)
    )
      return undefined
    return { path, bytes, contentType: recordedFile?.content_type }
  }

  return async (
    run: JournalRun,
  ): Promise<{ readonly files: readonly FoundFile[]; readonly missing: number }> => {
    const recorded = everyFile.get(run.row) ?? []
    const isLocal = run.address === LOCAL_ADDRESS
    const files: FoundFile[] = []
    let missing = 0
    for (const copies of copiesOf(recorded)) {
      const onDisk = await latestOnDisk(copies)
      const [first] = copies
      const found: FoundFile | undefined =
        onDisk !== undefined
          ? { path: onDisk.path, bytes: onDisk.bytes, contentType: onDisk.content_type }
          : isLocal && first !== undefined
            ? inDataFolder(first.url, first)
            : undefined
      if (found === undefined) missing++
      else files.push(found)
    }
    // The run was never downloaded.
    if (isLocal && recorded.length === 0)
      for (const url of run.urls) {
        const found = inDataFolder(url, undefined)
        if (found !== undefined) files.push(found)
      }
    return { files, missing }
  }
}

/**
 * Groups the downloads of the same output, the latest last. Groups by content, because the link may change between
 * downloads.
 */
function copiesOf(files: readonly JournalFile[]): readonly (readonly JournalFile[])[] {
  const byContent = new Map<string, JournalFile[]>()
  for (const file of files) {
    const copies = byContent.get(file.sha256)
    if (copies === undefined) byContent.set(file.sha256, [file])
    else copies.push(file)
  }
  return [...byContent.values()]
}

/** Returns the paths to which files with different content were written. */
function rewrittenPaths(everyFile: ReturnType<Journal['everyFile']>): ReadonlySet<string> {
  const contents = new Map<string, string>()
  const rewritten = new Set<string>()
  for (const files of everyFile.values())
    for (const { path, sha256 } of files)
      if ((contents.get(path) ?? sha256) !== sha256) rewritten.add(path)
      else contents.set(path, sha256)
  return rewritten
}

function sizeOf(path: string): number | undefined {
  try {
    const found = statSync(path)
    return found.isFile() ? found.size : undefined
  } catch {
    return undefined
  }
}

/** Maximum number of bytes to read. In a JPEG, the size comes after embedded previews and profiles. */
const MAX_HEAD_BYTES = 256 * 1024
const FIRST_BYTES = 4 * 1024

// Formats that browsers do not show, and SVG, whose parser runs regular expressions on the text.
const UNUSED = 'cur dds icns ico j2c jp2 jxl jxl-stream ktx pnm psd svg tga tiff'
disableTypes(UNUSED.split(' ') as Parameters<typeof disableTypes>[0])

/**
 * Returns width and height as shown, with the orientation of a photograph applied. Undefined when the file cannot be
 * read.
 */
export function pictureSizeOf(path: string): ReturnType<typeof sizeInHead> {
  try {
    return sizeInHead(readBeginning(path, FIRST_BYTES)) ?? sizeInHead(readBeginning(path, MAX_HEAD_BYTES))
  } catch {
    return undefined
  }
}

function sizeInHead(bytes: Uint8Array): { readonly width: number; readonly height: number } | undefined {
  try {
    const { width, height, orientation = 1 } = imageSize(bytes)
    if (!(width > 0 && height > 0)) return undefined
    return orientation >= 5 ? { width: height, height: width } : { width, height }
  } catch {
    return undefined
  }
}
