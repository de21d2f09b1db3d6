/** Finds the files of runs that are still on the disk. */
import { join } from 'node:path'
import type { Journal, JournalRun } from '../../journal/index.js'
import { addTo } from '../../protocol/lists.js'
import type { DownloadedFile } from '../../protocol/media.js'
import { outputPathOf } from '../../service/data.js'
import type { Context } from '../context/context.js'
import { LOCAL_FOLDER } from '../settings/folders.js'
import { LOCAL_ADDRESS } from '../settings/table.js'
import { isOnDisk, sizeOf } from './journal-rows.js'

/** A file of a run that still exists on the disk. */
export interface FoundFile {
  readonly path: string
  readonly bytes: number
  readonly content_type?: string
}

/** Finds the files of a run at their download paths or in the data folder of `--local`. `missing`: number of the others. */
export function createFileFinder(
  { stateFolder }: Context,
  journal: Journal,
): (run: JournalRun) => { readonly files: readonly FoundFile[]; readonly missing: number } {
  // A path that several runs wrote has the file of the last one.
  const writers = journal.lastWriters()

  /** Finds the copy in the data folder, which still exists when a download was moved. */
  function inDataFolder(url: string, recorded?: DownloadedFile): FoundFile | undefined {
    const path = outputPathOf(join(stateFolder, LOCAL_FOLDER), url)
    const bytes = path === undefined ? undefined : sizeOf(path)
    if (path === undefined || bytes === undefined || (recorded && recorded.bytes !== bytes)) return undefined
    return { ...recorded, path, bytes }
  }

  return (run) => {
    // Downloads of one output have the same content; its link may change between them.
    const outputs = new Map<string, DownloadedFile[]>()
    for (const file of journal.filesOf(run)) addTo(outputs, file.sha256, file)
    const isLocal = run.address === LOCAL_ADDRESS
    const found = [...outputs.values()].map((copies) => {
      const onDisk = copies.findLast((file) => isOnDisk(file) && writers.get(file.path) === run.row)
      return onDisk ?? (isLocal ? inDataFolder(copies[0]?.url ?? '', copies[0]) : undefined)
    })
    if (outputs.size === 0 && isLocal) found.push(...run.urls.flatMap((url) => inDataFolder(url) ?? []))
    const files = found.filter((file) => file !== undefined)
    return { files, missing: found.length - files.length }
  }
}
