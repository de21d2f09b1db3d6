/** The files that SQLite keeps beside a database. It finds them by their names alone. */
import { copyFileSync, existsSync, renameSync, rmSync, statSync, truncateSync } from 'node:fs'
import { isInWalMode } from './database-identity.js'
import { errorCode } from './system-error.js'

export const LOGS = ['-journal', '-wal', '-shm'] as const

/** The name under which a file is kept that cannot be used. */
export const quarantineName = (path: string): string =>
  `${path}.damaged-${new Date().toISOString().replace(/[^0-9TZ]/g, '')}-${process.pid}`

export function moveIfThere(from: string, to: string): void {
  try {
    if (statSync(from).size === 0) rmSync(from)
    else renameSync(from, to)
  } catch (error) {
    if (errorCode(error) !== 'ENOENT') throw error
  }
}

/**
 * Renames a log that belongs to another database, which SQLite would read: one beside a file that is not in WAL mode, such as
 * a restored backup. Its new name, or undefined.
 */
export function quarantineForeignLog(path: string): string | undefined {
  const log = `${path}-wal`
  // The log is looked for first: a file is in WAL mode before it has a log.
  if (!existsSync(log) || isInWalMode(path)) return undefined
  const to = quarantineName(log)
  moveIfThere(log, to)
  rmSync(`${path}-shm`, { force: true })
  return to
}

/**
 * Empties the log of a file that was overwritten, so that SQLite has nothing to write into the other database when it closes.
 * A copy is kept.
 */
export function setAsideLog(path: string): void {
  const log = `${path}-wal`
  if ((statSync(log, { throwIfNoEntry: false })?.size ?? 0) > 0) {
    try {
      copyFileSync(log, quarantineName(log))
    } finally {
      truncateSync(log)
    }
  }
}
