/** Looks at folders, and makes them. Apart from `files.ts`, which loads more than most commands need. */

import { accessSync, constants, mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { messageOf } from '../errors.js'

export const errorCode = (error: unknown): string | undefined => {
  const code = (error as { code?: unknown } | null | undefined)?.code
  return typeof code === 'string' ? code : undefined
}

/** Whether there is a folder, or a link to one. Whatever cannot be looked at is none. */
export function isFolder(path: string): boolean {
  try {
    return statSync(path).isDirectory()
  } catch {
    return false
  }
}

/**
 * The folder and those above it. Not by Node's own `recursive`, which tries for ever where a file system answers
 * ENOENT to every attempt, as /proc does.
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
      // A neighbour may have made it in the same moment.
      if (errorCode(again) !== 'EEXIST' || !isFolder(path)) throw again
    }
  }
}

/** Why nothing can be made in a folder, which may not exist yet; undefined when it can. A look, no promise. */
export function reasonUnwritable(folder: string): string | undefined {
  for (let place = resolve(folder); ; place = dirname(place)) {
    try {
      accessSync(place, constants.W_OK | constants.X_OK)
      return undefined
    } catch (error) {
      if (errorCode(error) !== 'ENOENT' || dirname(place) === place) return messageOf(error)
    }
  }
}
