/** Checks and creates folders. Separate from `files.ts`, which loads more than most commands need. */

import { accessSync, constants, mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { messageOf } from '../errors.js'

export const errorCode = (error: unknown): string | undefined => {
  const code = (error as { code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? code : undefined
}

/** Whether `path` is a folder, or a link to one. False when it cannot be read. */
export function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

/**
 * Creates a folder and its parents. Node's `recursive` does not end where a file system always answers ENOENT, as /proc
 * does.
 */
export function makeFolders(path: string, mode?: number): void {
  try {
    mkdirSync(path, mode)
  } catch (error) {
    if (errorCode(error) === 'EEXIST' && isFolder(path)) return
    if (errorCode(error) !== 'ENOENT' || dirname(path) === path) throw error
    makeFolders(dirname(path), mode)
    try {
      mkdirSync(path, mode)
    } catch (again) {
      // Another process may have created it at the same moment.
      if (errorCode(again) !== 'EEXIST' || !isFolder(path)) throw again
    }
  }
}

const UNWRITABLE: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EROFS: 'the file system is read-only',
  ENOTDIR: 'a part of the path is not a directory',
}

const describeUnwritable = (folder: string, error: unknown): string => {
  const words = UNWRITABLE[errorCode(error) ?? '']
  return words === undefined ? messageOf(error) : `${folder}: ${words}`
}

/** Why no file can be created in a folder, which may not exist yet; undefined when one can. An early check only. */
export function reasonUnwritable(folder: string): string | undefined {
  for (let existing = resolve(folder); ; existing = dirname(existing)) {
    try {
      accessSync(existing, constants.W_OK | constants.X_OK)
      return undefined
    } catch (error) {
      if (errorCode(error) !== 'ENOENT' || dirname(existing) === existing)
        return describeUnwritable(existing, error)
    }
  }
}
