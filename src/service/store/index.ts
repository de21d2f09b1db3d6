/**
 * The store on a database. Each method is written once, as a few small statements in one transaction.
 *
 *   contract.ts, account-store.ts, console-store.ts   what the store promises
 *   sql.ts                                            statements, transactions, and the dialect of a database
 *   schema.ts                                         the tables
 *   sqlite/, postgres/                                how a transaction runs, is repeated and locks
 */
import { createAccountStore } from './accounts.js'
import { createConsoleStore } from './console.js'
import type { Store } from './contract.js'
import { createQueueStore } from './queue.js'
import { createRunStore } from './runs.js'
import type { Database } from './sql.js'
import { createUserStore } from './users.js'

/** `pages`: separate connections for lists and sums, if the database has them. */
export const createStore = (database: Database, pages: Database = database): Omit<Store, 'close'> => ({
  ...createAccountStore(database),
  ...createUserStore(database),
  ...createConsoleStore(pages),
  ...createRunStore(database),
  ...createQueueStore(database),
  async checkWritable() {
    await database.run('UPDATE format SET checked_at = checked_at + 1')
  },
})
