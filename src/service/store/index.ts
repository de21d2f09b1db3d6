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
import type { Database } from './sql.js'
import { createSessionStore, createUserStore } from './users.js'

/** `pages`: separate connections for lists and sums, if the database has them. */
export const createStore = (database: Database, pages: Database = database) => ({
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
})

export type Store = ReturnType<typeof createStore> & {
  /** Rate limiter that all nodes on the database share. Undefined if the database has none. */
  readonly rateLimiter?: RateLimiter | undefined
  /** Called when the service closes: a change that still waits for the database then fails in time for the close. */
  stopWaiting(): void
  close(): Promise<void>
}
