/**
 * Opens the database of a running service: PostgreSQL if a URL is set, otherwise SQLite in the data folder. SQLite runs
 * in threads or in the calling thread.
 */
import type { Clock } from '../../host/clock.js'
import { startThread, type Thread } from '../../host/thread.js'
import { receivedError } from '../rules/refusal.js'
import { fromCall, ROUTES, type StoreCall, withBudgetCheck } from './calls.js'
import { DatabaseUnavailable, type RunningStore } from './contract.js'
import { openSqliteStore } from './sqlite/index.js'
import type { StoreAnswer, StoreRequest, StoreThreadData } from './sqlite/thread.js'

export interface StoreLocation {
  /** Path of the SQLite file. */
  readonly path: string
  readonly databaseUrl: string | undefined
  /** Whether SQLite runs in threads. */
  readonly inThread: boolean
  readonly clock: Clock
}

/** Throws `RushesError` (usage) if the database cannot be used or was written by another version of `rushes`. */
export async function openStore({
  path,
  databaseUrl,
  inThread,
  clock,
}: StoreLocation): Promise<RunningStore> {
  if (databaseUrl !== undefined) {
    // Loads the driver only if it is needed.
    const { openPostgresStore } = await import('./postgres/index.js')
    return withBudgetCheck(await openPostgresStore(databaseUrl, { clock }))
  }
  return inThread
    ? await openStoreThread(path)
    : { ...withBudgetCheck(openSqliteStore(path)), stopWaiting() {} }
}

const threadEnded = () => new DatabaseUnavailable(new Error('the thread of the database has ended'))

/**
 * Opens SQLite in threads, so that waiting for the disk or for a lock does not delay requests. Throws as `openStore`
 * does.
 */
export async function openStoreThread(path: string): Promise<RunningStore> {
  // Creates the file before the threads start, so that its errors are thrown here.
  await openSqliteStore(path).close()
  const start = (role: StoreThreadData['role']): Thread<StoreRequest, StoreAnswer> =>
    startThread('store', { path, role } satisfies StoreThreadData)
  const thread = start('change')

  const readers = { lookup: start('lookup'), page: start('page') }
  // Makes both readers open the file now, so that all threads use the same file if it is replaced later.
  const openingRead: StoreRequest = { method: 'findAccount', args: [0] }
  await Promise.all(Object.values(readers).map((reader) => reader.ask(openingRead)))

  const call: StoreCall = async (method, args) => {
    const route = ROUTES[method]
    const target = route === 'lookup' || route === 'page' ? readers[route] : thread
    if (target.hasEnded) throw threadEnded()
    const answer = await target.ask({ method, args })
    if ('error' in answer) throw receivedError(answer.error)
    return answer.result
  }
  return {
    ...fromCall(call),
    async checkWritable() {
      // Without a reader, no request can be answered.
      for (const reader of Object.values(readers)) if (reader.hasEnded) throw threadEnded()
      await call('checkWritable', [])
    },
    stopWaiting() {
      // Rejects if the thread has ended. Then no change is waiting.
      thread.ask({ method: 'stop waiting' }).catch(() => {})
    },
    async close() {
      // Closes the readers first: while a reader is open, the writer cannot empty the WAL file.
      for (const reader of Object.values(readers)) {
        if (!reader.hasEnded) await reader.ask({ method: 'close', args: [] }).catch(() => {})
        await reader.close()
      }
      if (!thread.hasEnded) await call('close', [])
      await thread.close()
    },
  }
}
