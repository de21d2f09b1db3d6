/** Finds the files of runs that are still on the disk. */

import { sha256OfFile } from '../../host/files.js'
import type { Journal, JournalRun } from '../../journal/index.js'
import { sortByOutput } from '../../journal/rows.js'
import { addTo } from '../../protocol/lists.js'
import type { DownloadedFile } from '../../protocol/media.js'
import { outputPathOf } from '../../service/data-folders.js'
import { LOCAL_ADDRESS } from '../settings/table.js'
import { isOnDisk, sizeOf } from './journal-rows.js'

/** A file of a run that still exists on the disk. */
export interface FoundFile {
  readonly path: string
  readonly bytes: number
  readonly contentType: string | undefined
}

/**
 * Finds the files of a run at their download paths or in the data folder of `--local`. `missing` is the number of files
 * that were not found.
 */
export function createFileFinder(journal: Journal, dataFolder: string) {
  const everyFile = journal.everyFile()
  const rewritten = rewrittenPaths(everyFile)
  const hashes = new Map<string, Promise<string | undefined>>()

  /**
   * Checks the size of the file. Checks the content, which requires reading the file, only if several downloads wrote
   * to the same path.
   */
  async function isUnchanged(file: DownloadedFile): Promise<boolean> {
    if (!isOnDisk(file)) return false
    if (!rewritten.has(file.path)) return true
    const hash = hashes.get(file.path) ?? sha256OfFile(file.path).catch(() => undefined)
    hashes.set(file.path, hash)
    return (await hash) === file.sha256
  }

  async function latestOnDisk(copies: readonly DownloadedFile[]): Promise<DownloadedFile | undefined> {
    for (const file of [...copies].reverse()) if (await isUnchanged(file)) return file
    return undefined
  }

  /** Finds the copy in the data folder, which still exists when a download was moved. */
  function inDataFolder(url: string, recordedFile: DownloadedFile | undefined): FoundFile | undefined {
    const path = outputPathOf(dataFolder, url)
    const bytes = path === undefined ? undefined : sizeOf(path)
    if (
      path === undefined ||
      bytes === undefined ||
      (recordedFile !== undefined && recordedFile.bytes !== bytes)
    )
      return undefined
    return foundAt(path, bytes, recordedFile)
  }

  return async (
    run: JournalRun,
  ): Promise<{ readonly files: readonly FoundFile[]; readonly missing: number }> => {
    const recorded = sortByOutput(everyFile.get(run.row) ?? [], run)
    const isLocal = run.address === LOCAL_ADDRESS
    const files: FoundFile[] = []
    let missing = 0
    for (const copies of copiesOf(recorded)) {
      const onDisk = await latestOnDisk(copies)
      const [first] = copies
      const found: FoundFile | undefined =
        onDisk !== undefined
          ? foundAt(onDisk.path, onDisk.bytes, onDisk)
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

const foundAt = (path: string, bytes: number, recorded: DownloadedFile | undefined): FoundFile => ({
  path,
  bytes,
  contentType: recorded?.content_type,
})

/**
 * Groups the downloads of the same output, the latest last. Groups by content, because the link may change between
 * downloads.
 */
function copiesOf(files: readonly DownloadedFile[]): readonly (readonly DownloadedFile[])[] {
  const byContent = new Map<string, DownloadedFile[]>()
  for (const file of files) addTo(byContent, file.sha256, file)
  return [...byContent.values()]
}

/** Returns the paths to which files with different content were written. */
function rewrittenPaths(everyFile: ReadonlyMap<number, readonly DownloadedFile[]>): ReadonlySet<string> {
  const contents = new Map<string, string>()
  const rewritten = new Set<string>()
  for (const files of everyFile.values())
    for (const { path, sha256 } of files)
      if ((contents.get(path) ?? sha256) !== sha256) rewritten.add(path)
      else contents.set(path, sha256)
  return rewritten
}
