/** The files of runs that are still on the disk, where they were written or in the data folder of `--local`. */
import { statSync } from 'node:fs'
import { sha256OfFile } from '../../host/file-content.js'
import type { JournalFile, JournalRun } from '../../journal/index.js'
import { outputPathOf } from '../../service/data-folders.js'
import { isOnDisk } from '../runs/files-on-disk.js'
import { LOCAL_ADDRESS } from '../settings/table.js'

export interface FoundFile {
  readonly path: string
  readonly bytes: number
  readonly contentType: string | undefined
}

export interface FoundFiles {
  readonly files: readonly FoundFile[]
  /** How many files were moved, changed or deleted. */
  readonly missing: number
}

export interface FileFinder {
  filesOf(run: JournalRun): Promise<FoundFiles>
}

export interface FinderOptions {
  readonly everyFile: ReadonlyMap<number, readonly JournalFile[]>
  /** Data folder of `--local`. */
  readonly dataFolder: string
}

export function createFileFinder({ everyFile, dataFolder }: FinderOptions): FileFinder {
  const rewritten = rewrittenPaths(everyFile)
  const hashes = new Map<string, Promise<string | undefined>>()

  /** By its size. Only where several downloads wrote the same path, the content decides, which means reading the file. */
  async function isThere(file: JournalFile): Promise<boolean> {
    if (!isOnDisk(file)) return false
    if (!rewritten.has(file.path)) return true
    const hash = hashes.get(file.path) ?? sha256OfFile(file.path).catch(() => undefined)
    hashes.set(file.path, hash)
    return (await hash) === file.sha256
  }

  async function lastThere(copies: readonly JournalFile[]): Promise<JournalFile | undefined> {
    for (const file of [...copies].reverse()) if (await isThere(file)) return file
    return undefined
  }

  /** The copy in the data folder, which stays when a download is moved. */
  function inDataFolder(url: string, known: JournalFile | undefined): FoundFile | undefined {
    const path = outputPathOf(dataFolder, url)
    const bytes = path === undefined ? undefined : sizeOf(path)
    if (path === undefined || bytes === undefined || (known !== undefined && known.bytes !== bytes))
      return undefined
    return { path, bytes, contentType: known?.content_type }
  }

  return {
    async filesOf(run) {
      const recorded = everyFile.get(run.row) ?? []
      const isLocal = run.address === LOCAL_ADDRESS
      const files: FoundFile[] = []
      let missing = 0
      for (const copies of copiesOf(recorded)) {
        const there = await lastThere(copies)
        const [first] = copies
        const found: FoundFile | undefined =
          there !== undefined
            ? { path: there.path, bytes: there.bytes, contentType: there.content_type }
            : isLocal && first !== undefined
              ? inDataFolder(first.url, first)
              : undefined
        if (found === undefined) missing++
        else files.push(found)
      }
      // Never downloaded.
      if (isLocal && recorded.length === 0)
        for (const url of run.urls) files.push(...asList(inDataFolder(url, undefined)))
      return { files, missing }
    },
  }
}

const asList = <Value>(value: Value | undefined): readonly Value[] => (value === undefined ? [] : [value])

/** Downloads of the same output, the latest last. Its link may have changed in between, so they are found by content. */
function copiesOf(files: readonly JournalFile[]): readonly (readonly JournalFile[])[] {
  const byContent = new Map<string, JournalFile[]>()
  for (const file of files) {
    const copies = byContent.get(file.sha256)
    if (copies === undefined) byContent.set(file.sha256, [file])
    else copies.push(file)
  }
  return [...byContent.values()]
}

/** Paths under which files with different content were written. */
function rewrittenPaths(everyFile: FinderOptions['everyFile']): ReadonlySet<string> {
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
