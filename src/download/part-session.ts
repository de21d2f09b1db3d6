/**
 * Manages the part of one output over all attempts and commands, and which process owns it. A part is a folder beside
 * the target, named `.fox.mp4.1f0e9a3c.part`. The name depends on the target, the run and the number of the output, so
 * that a later process finds it. It does not depend on the URL, because signed URLs change.
 *
 * A process claims a part by renaming the folder to a name with the id of its lock (`host/process-lock.ts`); the rename
 * succeeds for only one process. Any process can claim a part whose process has ended. The lock of a process with
 * another state folder is unknown: its part can be claimed if nothing was written to it for five minutes.
 */
import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, rename } from 'node:fs/promises'
import { uptime } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { isFolder, makeFolders } from '../host/directories.js'
import { cutToBytes, MAX_NAME_BYTES, removeFile } from '../host/files.js'
import { removeFolder } from '../host/own-folder.js'
import { newId, type ProcessLock, runningIn } from '../host/process-lock.js'
import { errorCode } from '../host/system-error.js'
import { withWriteErrors } from './failures.js'
import type { FileKind } from './file-kind.js'
import { awaitsExtension, withExtension } from './file-names.js'
import { refuseObstacle } from './final-files.js'
import { bytesPath, createBytes, metadataPath, type Part, partOf, readMetadata } from './part-file.js'
import { usefulBytes } from './resume-plan.js'

export interface PartSession {
  /** Part of an earlier attempt or an earlier command. */
  readonly part: Part | undefined
  /** Kind of output that the run makes (`image`, `video`, …); undefined if unknown. */
  readonly expectedKind: string | undefined
  /** Returns the final path and a part to write to. Throws `download_failed` if an obstacle is at that path. */
  open(kind: FileKind): Promise<{ readonly part: Part; readonly path: string }>
  /**
   * Call it when the download failed. Keeps the part for a later command if `isWorthKeeping` is true and the part can
   * be resumed. Returns whether it was kept.
   */
  abandon(isWorthKeeping: boolean): Promise<boolean>
}

interface PartSessionOptions extends PartKey {
  readonly list: PartLister
  readonly overwrite: boolean
  readonly expectedKind: string | undefined
  /** Whether the folder is temporary. Parts in it are never kept. */
  readonly isTemporary: boolean
}

/** Opens the session of an output, and claims a part that an earlier command left. */
export async function openPartSession(options: PartSessionOptions): Promise<PartSession> {
  const { list, overwrite, expectedKind, isTemporary, ...key } = options
  // If the name of the folder contains {ext}, a later command cannot find the part.
  const isFindable = !awaitsExtension(dirname(key.path))
  let part = isFindable ? await claimPart(key, list) : undefined
  return {
    expectedKind,
    get part() {
      return part
    },
    async open({ extension }) {
      const path = withExtension(key.path, extension)
      // Fail before downloading.
      if (path !== key.path) refuseObstacle(path, overwrite)
      part ??= await withWriteErrors(path, () => {
        if (!isFolder(dirname(path))) makeFolders(dirname(path))
        return createPart({ ...key, path: isFindable ? key.path : path })
      })
      return { part, path }
    },
    async abandon(isWorthKeeping) {
      if (part === undefined) return false
      if (isWorthKeeping && isFindable && !isTemporary) return part.release()
      await part.discard()
      return false
    },
  }
}

interface PartKey {
  /** Path of the target; may contain `{ext}`. */
  readonly path: string
  readonly runId: string
  /** Position of the output within its run, from 0. */
  readonly position: number
  /** Lock of this process. */
  readonly lock?: ProcessLock | undefined
}

/**
 * Maximum length of `.`, the hash and the owner. The longest form is that of an earlier version:
 * `.1f0e9a3c.4194304-999999999999@1f0e9a3c-1000.part`.
 */
const MAX_ENDING_BYTES = 57

/** Returns the common beginning of all names of a part. */
function stemOf({ path, runId, position }: PartKey): string {
  const name = basename(path).replaceAll('.{ext}', '').replaceAll('{ext}', '')
  const hash = createHash('sha256')
    .update(JSON.stringify([basename(path), runId, position]))
    .digest('hex')
  return `.${cutToBytes(name, MAX_NAME_BYTES - MAX_ENDING_BYTES)}.${hash.slice(0, 8)}`
}

let calls = 0
/** Id in the names of parts if this process has no lock. */
const UNLOCKED = newId()

const ownName = (stem: string, lock: ProcessLock | undefined): string =>
  `${stem}.${lock?.id ?? UNLOCKED}-${calls++}.part`

/**
 * Ending of an owned part: the lock id and a number. Earlier versions wrote process id, start time and machine, which
 * do not show whether the process runs.
 */
const OWNED = /^\.(?:([0-9a-f]{16})|\d+-\d*(?:@[0-9a-f]+)?)-\d+\.part$/

async function isAbandoned(name: string, stem: string, { path, lock }: PartKey): Promise<boolean> {
  const owned = name.startsWith(stem) ? OWNED.exec(name.slice(stem.length)) : null
  if (owned === null) return false
  return !runningIn(lock?.folder)(owned[1], await silentMs(join(dirname(path), name)))
}

/** Returns the milliseconds since the last write to the part; 0 if the part no longer exists. */
async function silentMs(part: string): Promise<number> {
  const times = await Promise.all(
    [part, bytesPath(part)].map((path) =>
      lstat(path).then(
        ({ mtimeMs }) => mtimeMs,
        () => undefined,
      ),
    ),
  )
  const [folderMs, bytesMs] = times
  return folderMs === undefined ? 0 : Date.now() - Math.max(folderMs, bytesMs ?? 0)
}

/** Lists the names of parts in a folder; undefined if the folder cannot be listed. */
export type PartLister = (folder: string) => Promise<readonly string[] | undefined>

/** Creates a lister that reads each folder only once, although each output looks for parts of earlier commands. */
export function createPartLister(): PartLister {
  const found = new Map<string, ReturnType<PartLister>>()
  return (folder) => {
    const names = found.get(folder) ?? listParts(folder)
    found.set(folder, names)
    return names
  }
}

async function listParts(folder: string): Promise<readonly string[] | undefined> {
  try {
    return (await readdir(folder)).filter((name) => name.startsWith('.') && name.endsWith('.part'))
  } catch (error) {
    return errorCode(error) === 'ENOENT' ? [] : undefined
  }
}

/**
 * Claims the longest part that earlier processes left. Removes the other parts, and parts that cannot be resumed.
 * Returns undefined if no part exists, or if other processes own all of them.
 */
export async function claimPart(key: PartKey, list: PartLister): Promise<Part | undefined> {
  const [folder, stem] = [dirname(key.path), stemOf(key)]
  const free = `${stem}.part`
  let longest: Part | undefined
  for (const name of (await list(folder)) ?? [free]) {
    if (name !== free && !(await isAbandoned(name, stem, key))) continue
    const own = join(folder, ownName(stem, key.lock))
    try {
      await rename(join(folder, name), own)
    } catch {
      // The part does not exist, another process was faster, or this process has no permission.
      continue
    }
    const part = await openResumable(own, join(folder, free))
    // If the path is a link, only the link itself is removed.
    if (part === undefined) await removeFolder(own).catch(() => removeFile(own).catch(() => {}))
    else if (longest === undefined || part.bytes > longest.bytes) {
      await longest?.discard()
      longest = part
    } else await part.discard()
  }
  return longest
}

/** Creates an empty part. Throws the system's errors. */
export async function createPart(key: PartKey): Promise<Part> {
  const [folder, stem] = [dirname(key.path), stemOf(key)]
  const own = join(folder, ownName(stem, key.lock))
  await mkdir(own)
  try {
    const handle = await createBytes(own)
    return partOf({ own, free: join(folder, `${stem}.part`), handle, bytes: 0, metadata: undefined })
  } catch (error) {
    await removeFolder(own)
    throw error
  }
}

/** Opens a part. Returns undefined if the download cannot be resumed from it. */
async function openResumable(own: string, free: string): Promise<Part | undefined> {
  const handle = await openBytes(own).catch(() => undefined)
  if (handle === undefined) return undefined
  try {
    const { size, mtimeMs, nlink } = await handle.stat()
    const metadata = await readMetadata(metadataPath(own))
    // Written data survives the end of the process, but not a crash of the machine: then the file may contain zeros
    // instead. So the bytes count only if they were flushed, or written after the machine started.
    const isReliable = metadata?.flushedBytes === size || mtimeMs > Date.now() - uptime() * 1_000
    // A second link means that the process was killed just after the file got its final name. The bytes then belong to
    // that file and must not be changed.
    if (isReliable && nlink === 1 && usefulBytes(metadata, size) > 0)
      return partOf({ own, free, handle, bytes: size, metadata })
  } catch {
    // An unreadable part cannot be resumed.
  }
  await handle.close().catch(() => {})
  return undefined
}

/**
 * Opens the bytes of a part without following links: in a folder that others can write to, a link could point to any
 * file of the user.
 */
async function openBytes(own: string) {
  if (!(await lstat(own)).isDirectory()) return undefined
  return open(bytesPath(own), constants.O_RDWR | (constants.O_NOFOLLOW ?? 0))
}
