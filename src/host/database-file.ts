/** The file of an SQLite database, as it is: without a format, and without what is stored. */
import { closeSync, existsSync, openSync, statSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname } from 'node:path'
import type Database from 'libsql'
import { messageOf, usageError } from '../errors.js'
import { makeFolders } from './directories.js'

export type Connection = Database.Database
export type Statement = Database.Statement

export const BUSY_TIMEOUT_MS = 10_000

const loadModule = createRequire(import.meta.url)

/** Loads the native package at its first use, so that a command that can do without a database continues without it. */
export function connect(path: string): Database.Database {
  let Driver: typeof Database
  try {
    Driver = loadModule('libsql')
  } catch (error) {
    throw usageError(
      `The SQLite package for this system (${process.platform}-${process.arch}) cannot be loaded: ${messageOf(error).split('\n', 1)[0]}.`,
      'Install rushes again on this machine, without --omit=optional: `npm install -g rushes`.',
    )
  }
  return new Driver(path)
}

/** Opens a file as it is, without creating or migrating it, while `work` runs. */
export function withDatabase<Result>(
  path: string,
  busyTimeoutMs: number,
  work: (database: Database.Database) => Result,
): Result {
  const database = connect(path)
  try {
    database.exec(`PRAGMA busy_timeout = ${Math.round(busyTimeoutMs)}`)
    return work(database)
  } finally {
    database.close()
  }
}

/** Mode 0600, which -wal and -shm inherit; libsql would create it 0644. */
export function createPrivately(path: string): void {
  makeFolders(dirname(path), 0o700)
  if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
}

/** SQLite ends a transaction itself when the disk is full. The first error says what happened, so this one is ignored. */
export function rollBack(database: Database.Database): void {
  try {
    database.exec('ROLLBACK')
  } catch {
    // No transaction is active.
  }
}

/**
 * Runs `work` in one process at a time. SQLite holds an operating system's lock on an empty file, which is released when
 * the process ends in any way.
 */
export function exclusively<Result>(
  path: string,
  busyTimeoutMs = BUSY_TIMEOUT_MS,
  work: () => Result,
): Result {
  createPrivately(path)
  return withDatabase(path, busyTimeoutMs, (database) => {
    database.exec('BEGIN EXCLUSIVE')
    try {
      return work()
    } finally {
      rollBack(database)
    }
  })
}

/** Distinguishes a file from its replacement; undefined where there is none. */
export const inodeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.ino

/** SQLite takes a file of one byte for an empty one too. */
export const isEmpty = ({ size }: { readonly size: number }): boolean => size <= 1
