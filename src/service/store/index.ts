/**
 * The store on a database. Each method is written once, as a few small statements in one transaction.
 *
 *   run.ts             the records of runs and the queue
 *   sql.ts             statements, transactions, and the dialect of a database
 *   schema.ts          the tables
 *   sqlite/, postgres/ how a transaction runs, is repeated and locks
 */
import type { RateLimiter } from '../rules/rate.js'
import { createAccountStore } from './accounts.js'
import { createKeyStore } from './keys.js'
import { createListStore } from './lists.js'
import { createClaimStore, createLeaseStore } from './queue.js'
import { createAttemptStore, createFileRecords, createRunStore } from './runs.js'
import type { Database, Row } from './sql.js'
import { createSessionStore, createUserStore } from './users.js'

export interface StoreParts {
  readonly database: Database
  /** Connections for lists and sums. */
  readonly pages: Database
  /** Returns a text that differs between this database and a copy of it. */
  identity(): Promise<string>
  /** Rate limiter that all nodes on the database share. Undefined if the database has none. */
  readonly rateLimiter?: RateLimiter | undefined
  /** Called when the service closes: a change that still waits for the database then fails in time for the close. */
  stopWaiting(): void
  close(): Promise<void>
}

export const FIND_ID = 'SELECT database_id FROM format'

/** `identity`: what differs between the database and a copy of it. */
export const databaseIdOf = (row: Row | undefined, identity: unknown): string =>
  `${row?.database_id}.${identity}`

export const createStore = ({ database, pages, identity, rateLimiter, stopWaiting, close }: StoreParts) => ({
  ...createAccountStore(database),
  ...createKeyStore(database),
  ...createUserStore(database),
  ...createSessionStore(database),
  ...createListStore(pages),
  ...createRunStore(database),
  ...createAttemptStore(database),
  ...createFileRecords(database),
  ...createClaimStore(database),
  ...createLeaseStore(database),
  /** Returns the id of this database. A copy of it, restored elsewhere, has another one. */
  databaseId: async (): Promise<string> => databaseIdOf(await database.get(FIND_ID), await identity()),
  /** Writes to the database without changing anything. Rejects if a change would fail. */
  checkWritable: async (): Promise<void> =>
    void (await database.run('UPDATE format SET checked_at = checked_at + 1')),
  rateLimiter,
  stopWaiting,
  close,
})

export type Store = ReturnType<typeof createStore>
