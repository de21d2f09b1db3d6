/**
 * One batch at a time on one manifest: two would each pay for what is missing.
 *
 * The claim is a write lock that the operating system holds for this process on a small file of the state folder, and
 * the system releases it when the process ends in any way. So a claim is never stale. Claims with process ids in files can
 * be: ids are reused, differ between containers, and two processes that take a stale claim over can remove each other's. It is keyed by the real path of the lock file, so
 * that a link to a manifest is the same manifest; it holds for the processes of one machine that share a state folder.
 */
import { createHash } from 'node:crypto'
import { realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { usageError } from '../../errors.js'
import { openOrQuarantine } from '../../host/corruption.js'
import type { OpenDatabase } from '../../host/database.js'
import { errorCode } from '../../host/directories.js'

export interface Claim {
  release(): void
}

const MIGRATIONS = [
  `CREATE TABLE holder (one INTEGER PRIMARY KEY CHECK (one = 1), pid INTEGER NOT NULL, since TEXT NOT NULL)`,
] as const

export interface ClaimOptions {
  readonly lockPath: string
  /** Where claims are kept: a folder of the state folder. */
  readonly folder: string
  /** ISO 8601, for the message of another batch. */
  readonly now: string
}

/** Throws `usage` when another batch has it, and the system's error when it cannot be written. */
export function claimBatch({ lockPath, folder, now }: ClaimOptions): Claim {
  const db = openOrQuarantine(
    { path: join(folder, `${keyOf(lockPath)}.db`), migrations: MIGRATIONS },
    () => {},
  )
  try {
    // It is held for minutes: do not wait.
    db.get('PRAGMA busy_timeout = 0')
    db.transaction(() =>
      db.run('INSERT OR REPLACE INTO holder (one, pid, since) VALUES (1, ?, ?)', process.pid, now),
    )
    db.run('BEGIN IMMEDIATE')
  } catch (error) {
    const held = errorCode(error)?.startsWith('SQLITE_BUSY') === true ? sayHeld(db, lockPath) : undefined
    db.close()
    throw held ?? error
  }
  return {
    release() {
      // Closing alone ends the transaction only at the next garbage collection.
      db.run('ROLLBACK')
      db.close()
    },
  }
}

function sayHeld(db: OpenDatabase, lockPath: string) {
  const { pid, since } = db.get('SELECT pid, since FROM holder') ?? {}
  const who = pid === undefined ? '' : ` (process ${pid}, since ${since})`
  return usageError(
    `Another batch is at work on this manifest${who}; nothing was sent.`,
    `Let it end, or stop it: both would pay for the same runs. What it has made is in ${basename(lockPath)}.`,
  )
}

const keyOf = (lockPath: string): string =>
  createHash('sha256')
    .update(join(realpathSync(dirname(lockPath)), basename(lockPath)))
    .digest('hex')
    .slice(0, 32)
