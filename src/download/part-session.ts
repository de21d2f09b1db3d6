/**
 * The part file of one output over all attempts and commands, and which process owns it. A part is a folder beside
 * the target, named `.fox.mp4.1f0e9a3c.part`: the name follows from the target, the run and the number of the
 * output, so that a later process finds it. The URL is not in it, since signed URLs change.
 *
 * The process that works on a part has renamed the folder to a name with the id of its lock
 * (`host/process-lock.ts`); the rename succeeds for one process only. A folder of a process that is gone can be
 * claimed by any other. Of a process with another state folder nothing is proven: its part is claimed when nothing
 * was written to it for five minutes.
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
  /** From an earlier attempt, or an earlier command. */
  readonly part: Part | undefined
  /** `image`, `video`, …: what the run makes, as far as that is known. */
  readonly expectedKind: string | undefined
  /** The final path, and a part to write to. Throws `download_failed` when something is in the way of that path. */
  open(kind: FileKind): Promise<{ readonly part: Part; readonly path: string }>
  /** The download failed. Keeps the part for a later command if `isWorthKeeping` and possible; whether it was kept. */
  abandon(isWorthKeeping: boolean): Promise<boolean>
}

interface PartSessionOptions extends PartKey {
  readonly list: PartLister
  readonly overwrite: boolean
  readonly expectedKind: string | undefined
  /** The folder is removed after this command, so nothing is kept. */
  readonly isTemporary: boolean
}

/** Takes over the part that an earlier command left, if there is one. */
export async function openPartSession(options: PartSessionOptions): Promise<PartSession> {
  const { list, overwrite, expectedKind, isTemporary, ...key } = options
  // Where the folder's own name contains {ext}, a later command cannot find the part.
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
  /** The target; may contain `{ext}`. */
  readonly path: string
  readonly runId: string
  /** The number of the output within its run, from 0. */
  readonly position: number
  /** Of this process. */
  readonly lock?: ProcessLock | undefined
}

/**
 * `.`, the hash, and an owner: `.1f0e9a3c.4194304-999999999999@1f0e9a3c-1000.part` at the longest, of an earlier
 * version.
 */
const MAX_ENDING_BYTES = 57

/** The beginning of all names of a part. */
function stemOf({ path, runId, position }: PartKey): string {
  const name = basename(path).replaceAll('.{ext}', '').replaceAll('{ext}', '')
  const hash = createHash('sha256')
    .update(JSON.stringify([basename(path), runId, position]))
    .digest('hex')
  return `.${cutToBytes(name, MAX_NAME_BYTES - MAX_ENDING_BYTES)}.${hash.slice(0, 8)}`
}

let calls = 0
/** While this process holds no lock. */
const UNLOCKED = newId()

const ownName = (stem: string, lock: ProcessLock | undefined): string =>
  `${stem}.${lock?.id ?? UNLOCKED}-${calls++}.part`

/** Earlier versions wrote process id, start time and machine, which prove nothing. */
const OWNED = /^\.(?:([0-9a-f]{16})|\d+-\d*(?:@[0-9a-f]+)?)-\d+\.part$/

async function isAbandoned(name: string, stem: string, { path, lock }: PartKey): Promise<boolean> {
  const owned = name.startsWith(stem) ? OWNED.exec(name.slice(stem.length)) : null
  if (owned === null) return false
  return !runningIn(lock?.folder)(owned[1], await silentMs(join(dirname(path), name)))
}

/** How long ago something was written to the part; 0 when it is gone. */
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

/** The names of parts in a folder; undefined where the folder cannot be listed. */
export type PartLister = (folder: string) => Promise<readonly string[] | undefined>

/** Lists each folder once: two hundred outputs look there for what earlier commands have left. */
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
 * Takes over the part that earlier processes left: the longest one. The others, and those that cannot be resumed, are
 * removed. Undefined when there is none, or when other processes own them all.
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
      // It does not exist, another process was faster, or we have no permission.
      continue
    }
    const part = await openResumable(own, join(folder, free))
    // Of a link, only the link itself is removed.
    if (part === undefined) await removeFolder(own).catch(() => removeFile(own).catch(() => {}))
    else if (longest === undefined || part.bytes > longest.bytes) {
      await longest?.discard()
      longest = part
    } else await part.discard()
  }
  return longest
}

/** Throws the system's errors. */
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

/** Undefined when the download cannot be resumed from it. */
async function openResumable(own: string, free: string): Promise<Part | undefined> {
  const handle = await openBytes(own).catch(() => undefined)
  if (handle === undefined) return undefined
  try {
    const { size, mtimeMs, nlink } = await handle.stat()
    const metadata = await readMetadata(metadataPath(own))
    // Written data survives the process, but not a crash of the machine: then the file may contain zeros that were never
    // written. So bytes count only if they were flushed, or written since the machine was started.
    const isSure = metadata?.flushedBytes === size || mtimeMs > Date.now() - uptime() * 1_000
    // A second link means that the process was killed just after the file got its final name: it is not ours to change.
    if (isSure && nlink === 1 && usefulBytes(metadata, size) > 0)
      return partOf({ own, free, handle, bytes: size, metadata })
  } catch {
    // Unreadable, so not resumable.
  }
  await handle.close().catch(() => {})
  return undefined
}

/** Does not follow links: in a folder that others can write to, a link could point to any file of the user's. */
async function openBytes(own: string) {
  if (!(await lstat(own)).isDirectory()) return undefined
  return open(bytesPath(own), constants.O_RDWR | (constants.O_NOFOLLOW ?? 0))
}
