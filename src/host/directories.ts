/** Checks and creates folders. Separate from `files.ts`, which loads more than most commands need. */

import { accessSync, constants, mkdirSync, realpathSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { describeError, errorCode } from './system-error.js'

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

/** Why no file can be created in a folder, which may not exist yet; undefined when one can. An early check only. */
export function reasonUnwritable(folder: string): string | undefined {
  for (let existing = resolve(folder); ; existing = dirname(existing)) {
    try {
      accessSync(existing, constants.W_OK | constants.X_OK)
      return undefined
    } catch (error) {
      if (errorCode(error) !== 'ENOENT' || dirname(existing) === existing) return describeError(error)
    }
  }
}

/** Whether a path is a folder or in it. Both are absolute; links are not followed. */
export function isWithin(folder: string, path: string): boolean {
  const way = relative(folder, path)
  return way !== '..' && !way.startsWith(`..${sep}`) && !isAbsolute(way)
}

/**
 * An absolute path without links. What does not exist is taken for plain folders and a file that will be created. `follow`
 * follows its folder, for callers that remember what they have followed.
 */
export function followLinks(path: string, follow: (folder: string) => string = followLinks): string {
  try {
    return realpathSync(path)
  } catch {
    const parent = dirname(path)
    return parent === path ? path : join(follow(parent), basename(path))
  }
}
