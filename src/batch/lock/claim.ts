/**
 * Lets one batch at a time work on a manifest: two would each pay for the missing outputs. SQLite's exclusive lock on a
 * file beside the lock file holds for every process of the machine, and the system releases it however the process ends.
 *
 * A batch that ends removes the file, so a lock may be on a file that has no name any more. A descriptor of our own,
 * opened before SQLite's, pins the inode: its number is not used again, and if the name leads to it, SQLite has locked
 * this very file. (Comparing the name before and after let two batches in: the number came back.) The descriptor is
 * closed after the database: closing any descriptor of the file releases all locks of this process on it, so nothing
 * else in this process may open it either.
 */
import { closeSync, fstatSync, openSync, realpathSync, rmSync, statSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { usageError } from '../../errors.js'
import { connect, type SqliteConnection } from '../../host/database.js'
import { errorCode } from '../../host/system-error.js'
import { refuseSpecialFile } from './file.js'
import { claimPathOf } from './lock.js'

export interface BatchClaim {
  release(): void
}

/** The claims of this process by real path. Objects that are not referenced are collected, and their locks with them. */
const held = new Map<string, SqliteConnection>()

const MAX_TRIES = 20
const BUSY_MS = 100

/**
 * Throws `usage` if another batch works on the manifest, or if the file is not a claim, and the system's error if the
 * folder cannot be written.
 */
export function claimBatch(lockPath: string): BatchClaim {
  const named = claimPathOf(lockPath)
  const path = join(realpathSync(dirname(named)), basename(named))
  for (let tries = 0; tries < MAX_TRIES && !held.has(path); tries++) {
    refuseSpecialFile(path, 'claim file')
    const pin = openSync(path, 'a', 0o600)
    // A claim is empty: the lock is on it, and nothing is ever written.
    if (fstatSync(pin).size > 0) {
      closeSync(pin)
      throw usageError(
        `${path} is not a claim file of rushes: it has content. Nothing was sent.`,
        'Move the file away, or remove it. Then run the same command again.',
      )
    }
    let database: SqliteConnection | undefined
    const close = () => {
      database?.close()
      closeSync(pin)
    }
    try {
      database = connect(path)
      // Nothing is written, so SQLite needs no journal file.
      database.exec(`PRAGMA busy_timeout = ${BUSY_MS}; PRAGMA journal_mode = OFF; BEGIN EXCLUSIVE`)
    } catch (error) {
      close()
      if (errorCode(error) === 'SQLITE_BUSY') break
      throw error
    }
    const isPinned =
      statSync(path, { throwIfNoEntry: false, bigint: true })?.ino === fstatSync(pin, { bigint: true }).ino
    if (isPinned) {
      held.set(path, database)
      return {
        release() {
          if (!held.delete(path)) return
          rmSync(path, { force: true })
          close()
        },
      }
    }
    close()
  }
  throw usageError(
    'Another batch is running on this manifest; nothing was sent.',
    `Wait until it ends, or stop it. Its claim file is ${path}.`,
  )
}
