/**
 * The store on a database. Each method is written once, as a few small statements in one transaction.
 *
 *   contract.ts, account-store.ts, console-store.ts   what the store promises
 *   sql.ts                                            statements, transactions, and the dialect of a database
 *   schema.ts                                         the tables
 *   sqlite/, postgres/                                how a transaction runs, is repeated and locks, and how a worker
 *                                                     proves that it is alive
 */
import { createAccountStore } from './accounts.js'
import { createConsoleStore } from './console.js'
import type { Store } from './contract.js'
import { createFileRecords } from './file-records.js'
import { createQueueStore, type LeaseStore } from './queue.js'
import { createRunStore } from './runs.js'
import type { Database } from './sql.js'
import { createUserStore } from './users.js'

/** `pages`: separate connections for lists and sums, if the database has them. */
export const createStore = (
  database: Database,
  leases: LeaseStore,
  pages: Database = database,
): Omit<Store, 'onQueued' | 'close'> => ({
  ...createAccountStore(database),
  ...createUserStore(database),
  ...createConsoleStore(pages),
  ...createFileRecords(database),
  ...createRunStore(database),
  ...createQueueStore(database, leases),
  renewLease: leases.renewLease,
  extendLease: leases.extendLease,
  listWorkers: leases.listWorkers,
  async checkWritable() {
    await database.run('UPDATE format SET checked_at = checked_at + 1')
  },
})
