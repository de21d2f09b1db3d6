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
import { quoteWord, shortened } from '../../protocol/text.js'
import { formatBytes } from '../../protocol/units.js'
import type { Context } from '../context/context.js'
import { commandAgain, type EarlierOutputs, linkIn, modelsOf } from '../runs/again.js'
import { createFileFinder, type FoundFile } from '../runs/find-files.js'
import { nameOfRun } from '../runs/journal-rows.js'
import { pictureSizeOf } from '../runs/picture-size.js'
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
  const modelsByService = new Map<string, ReturnType<typeof modelsOf>>()
  const runs: GalleryRun[] = []
  const leftOut = { missing: 0, notDownloaded: 0 }
  // The limit counts only shown runs, because most runs of a journal may have no file.
  for (const run of journal.list(others)) {
    if (runs.length === limit) break
    const { files, missing } = await findFiles(run)
    if (files.length > 0) {
      const service = JSON.stringify([run.address, run.profile])
      const models = modelsByService.get(service) ?? modelsOf(ctx, run)
      modelsByService.set(service, models)
      const options = { flags: await flagsOf(run), models: await models }
      const { command, missing: missingReferences } = commandAgain(earlier, run, options)
      const again = missingReferences.length > 0 ? undefined : command
      runs.push({
        ...describeRun(run, folder),
        again,
        files: files.map((file) => describeFile(run, file, folder)),
      })
    } else if (missing > 0) leftOut.missing++
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

/**
 * Finds earlier outputs by link and by content. The tables are built once, when the first run with a reference image
 * needs them: the functions of the journal read all runs for each lookup.
 */
function earlierOutputs(journal: Journal, everyFile: ReturnType<Journal['everyFile']>): EarlierOutputs {
  let tables: ReturnType<typeof build> | undefined
  const build = () => {
    // Newest first.
    const byLink = new Map<string, { readonly run: JournalRun; readonly index: number }[]>()
    const byContent = new Map<string, string[]>()
    for (const run of journal.list({})) {
      const linkOf = linkIn(run)
      for (const [index, url] of run.urls.entries()) {
        const link = `${run.address}\n${linkOf(url)}`
        const outputs = byLink.get(link)
        if (outputs === undefined) byLink.set(link, [{ run, index }])
        else outputs.push({ run, index })
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
    findByOutput({ address, row, createdAtMs }, image, linkOf) {
      const outputs = table().byLink.get(`${address}\n${linkOf(image)}`) ?? []
      for (const { run, index } of outputs) {
        const isEarlier = run.createdAtMs < createdAtMs || (run.createdAtMs === createdAtMs && run.row < row)
        if (run.id !== undefined && isEarlier) return { id: run.id, index }
      }
      return undefined
    },
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
