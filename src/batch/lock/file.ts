/** The lock file on the disk. */

import { existsSync, readFileSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { usageError } from '../../errors.js'
import { removeFile, writeAtomically } from '../../host/files.js'
import { describeError, errorCode } from '../../host/system-error.js'
import { type Lock, NO_LOCK } from './lock.js'
import { lockText, parseLock } from './lock-text.js'

/** An empty lock when there is no file. Throws `usage`, also when the lock belongs to another manifest that exists. */
export function readLock(path: string, manifest: string): Lock {
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return NO_LOCK
    throw usageError(`Cannot read the lock file ${describeError(error, path)}.`)
  }
  const lock = parseLock(text, path)
  const other = lock.manifest
  if (other !== undefined && other !== basename(manifest) && existsSync(join(dirname(path), basename(other))))
    throw usageError(
      `${path} belongs to another manifest: ${other}.`,
      'Manifests whose names differ only in the extension would share one lock file. Rename one of them.',
    )
  return lock
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

/** Atomic: a batch that is killed leaves the old file or the new one. Throws the system's error. */
export async function writeLock(path: string, manifest: string, lock: Lock): Promise<void> {
  await writeAtomically(path, textFor(manifest, lock))
}
