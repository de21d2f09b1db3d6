/** The database of a running service: PostgreSQL at a URL, else SQLite in the data folder. */
import type { Clock } from '../../host/clock.js'
import { type RunningStore, withBudgetCheck } from './service-store.js'
import { openSqliteStore } from './sqlite/index.js'
import { openStoreThread } from './thread/index.js'

export interface StorePlace {
  /** Of the SQLite file. */
  readonly path: string
  readonly databaseUrl: string | undefined
  /** Whether SQLite runs in a thread. */
  readonly inThread: boolean
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
}

/** Throws `RushesError` (usage) when the database cannot be used, or is of a later version of `rushes`. */
export async function openStore({ path, databaseUrl, inThread, clock }: StorePlace): Promise<RunningStore> {
  if (databaseUrl !== undefined) {
    // The driver is loaded only here.
    const { openPostgresStore } = await import('./postgres/index.js')
    const store = await openPostgresStore(databaseUrl, { clock })
    return { ...store, ...withBudgetCheck(store) }
  }
  return inThread
    ? await openStoreThread(path)
    : { ...withBudgetCheck(openSqliteStore(path)), stopWaiting() {} }
}
