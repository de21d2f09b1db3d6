/** The lock file on the disk. */

import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, resolve } from 'node:path'
import { usageError } from '../../errors.js'
import { followLinks } from '../../host/directories.js'
import { removeFile, writeAtomically } from '../../host/files.js'
import { describeError, errorCode } from '../../host/system-error.js'
import { type Lock, lockPathOf, NO_LOCK } from './lock.js'
import { lockText, parseLock } from './lock-text.js'

/** As deep as Linux follows links. */
const MAX_LINKS = 40

/** The file of a manifest's lock. A link is followed, so that what it points to is written and claimed, and the link stays. */
export function lockFileOf(manifest: string): string {
  let path = lockPathOf(manifest)
  for (let links = 0; links < MAX_LINKS; links++) {
    const target = targetOf(path)
    if (target === undefined) return path
    // The folder may be reached through a link: `..` is that of the real one.
    path = isAbsolute(target) ? target : join(followLinks(resolve(dirname(path))), target)
  }
  throw usageError(`Cannot read the lock file ${path}: its links lead in a circle.`)
}

/** Undefined where it is not a link. */
function targetOf(path: string): string | undefined {
  try {
    return readlinkSync(path)
  } catch {
    return undefined
  }
}

/** An empty lock when there is no file. Throws `usage`, also when the lock belongs to another manifest that exists. */
export function readLock(path: string, manifest: string): Lock {
  const text = readText(path)
  if (text === undefined) return NO_LOCK
  const lock = parseLock(text, path)
  const other = lock.manifest
  // Beside the manifest: the lock file may be a link to another folder.
  if (
    other !== undefined &&
    other !== basename(manifest) &&
    existsSync(join(dirname(manifest), basename(other)))
  )
    throw usageError(
      `${path} belongs to another manifest: ${other}.`,
      'Manifests whose names differ only in the extension would share one lock file. Rename one of them.',
    )
  return lock
}

/** Undefined when there is no file. Throws `usage`. */
function readText(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return undefined
    throw usageError(`Cannot read the lock file ${describeError(error, path)}.`)
  }
}

export interface LockFile {
  /** Undefined where it has the text of the last write, or is gone. Throws `usage`. */
  read(): Lock | undefined
  /**
   * Atomic: a batch that is killed leaves the old file or the new one. False where the file has changed since `read`: nothing
   * was written. Throws the system's error.
   */
  write(lock: Lock): Promise<boolean>
}

export function lockFileAt(path: string, manifest: string): LockFile {
  let written: string | undefined
  let seen: string | undefined
  const changed = new Error('the lock file was changed')
  return {
    read() {
      seen = readText(path)
      return seen === undefined || seen === written ? undefined : parseLock(seen, path)
    },
    async write(lock) {
      const text = textFor(manifest, lock)
      // Writing takes a while, and the last moment counts.
      const beforeReplace = () => {
        if (readText(path) !== seen) throw changed
      }
      try {
        await writeAtomically(path, text, { beforeReplace })
      } catch (error) {
        if (error === changed) return false
        throw error
      }
      written = text
      return true
    },
  }
}

/** Removes temporary files of a batch that was killed while writing. Only the holder of the claim may call it. */
export async function removeLeftovers(path: string): Promise<void> {
  const names = await readdir(dirname(path)).catch(() => [])
  for (const name of names)
    if (name.startsWith(`.${basename(path)}.`) && /\.[0-9a-f]{12}\.part$/.test(name))
      await removeFile(join(dirname(path), name)).catch(() => {})
}

/** Whether the file has just this text already. */
export function isWritten(path: string, manifest: string, lock: Lock): boolean {
  try {
    return readFileSync(path, 'utf8') === textFor(manifest, lock)
  } catch {
    return false
  }
}

const textFor = (manifest: string, lock: Lock): string => lockText({ ...lock, manifest: basename(manifest) })
