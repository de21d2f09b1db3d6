/** The database of a running service: PostgreSQL at a URL, else SQLite in the data folder, in a thread or directly. */
import type { Clock } from '../../host/clock.js'
import { startThread, type Thread } from '../../host/thread.js'
import { receivedError } from '../rules/refusal.js'
import { DatabaseUnavailable, type RunningStore, type ServiceStore, withBudgetCheck } from './contract.js'
import { openSqliteStore } from './sqlite/index.js'
import type { StoreAnswer, StoreMethod, StoreRequest, StoreRoute, StoreThreadData } from './sqlite/thread.js'

export interface StoreLocation {
  /** Of the SQLite file. */
  readonly path: string
  readonly databaseUrl: string | undefined
  /** Whether SQLite runs in a thread. */
  readonly inThread: boolean
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
}

/** Throws `RushesError` (usage) when the database cannot be used, or is of a later version of `rushes`. */
export async function openStore({
  path,
  databaseUrl,
  inThread,
  clock,
}: StoreLocation): Promise<RunningStore> {
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

/**
 * Where a method of the store runs. Changes that wait together share one commit. A database in WAL mode can be read while another
 * connection writes, so frequent reads and long reads have a thread each: a `lookup` is of a row or two, a `page` of many. Other
 * reads (`read`) are rare, and share the thread of the changes.
 */
const routeOf = (method: StoreMethod): StoreRoute =>
  EXCEPTIONS[method] ?? (method.startsWith('find') ? 'lookup' : method.startsWith('list') ? 'page' : 'change')

const EXCEPTIONS: Readonly<Partial<Record<StoreMethod, StoreRoute>>> = {
  findImage: 'read',
  findUser: 'read',
  listMarkedFiles: 'read',
  listWorkers: 'read',
  latestRun: 'lookup',
  findRuns: 'page',
  queueLengths: 'page',
  spendPerDay: 'page',
  verify: 'page',
}

/** SQLite in a thread, so that waiting for the disk or for a lock delays no request. Throws as `openStore` does. */
export async function openStoreThread(path: string): Promise<RunningStore> {
  // Creates and migrates the file, or throws its error, before there is a thread.
  const direct = openSqliteStore(path)
  await direct.close()
  const start = (role: StoreThreadData['role']): Thread<StoreRequest, StoreAnswer> =>
    startThread('store', { path, role } satisfies StoreThreadData)
  const thread = start('change')

  const readers = { lookup: start('lookup'), page: start('page') }
  // All have the same file open before it can be replaced.
  const isOpen: StoreRequest = { method: 'latestRun', args: [0], route: 'lookup' }
  await Promise.all(Object.values(readers).map((reader) => reader.ask(isOpen)))

  const call = (method: StoreMethod) => {
    const route = routeOf(method)
    const asked = route === 'lookup' || route === 'page' ? readers[route] : thread
    return async (...args: readonly unknown[]): Promise<unknown> => {
      if (asked.hasEnded) throw new DatabaseUnavailable(new Error('the thread of the database has ended'))
      const answer = await asked.ask({ method, args, route })
      if ('error' in answer) throw receivedError(answer.error)
      return answer.result
    }
  }
  // `addCredits` takes a function, which cannot be sent to a thread.
  const methods = Object.keys(direct).filter((name) => name !== 'addCredits') as readonly StoreMethod[]
  const store = Object.fromEntries(methods.map((method) => [method, call(method)])) as unknown as ServiceStore
  return {
    ...store,
    stopWaiting() {
      // A thread that has ended waits for nothing.
      thread.ask({ method: 'stop waiting' }).catch(() => {})
    },
    async close() {
      // First: while one reads, the other cannot empty the log.
      for (const reader of Object.values(readers)) {
        if (!reader.hasEnded) await reader.ask({ method: 'close', args: [], route: 'change' }).catch(() => {})
        await reader.close()
      }
      if (!thread.hasEnded) await store.close()
      await thread.close()
    },
  }
}
