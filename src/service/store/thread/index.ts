/** The store on SQLite in a thread of its own, so that waiting for the disk or for a lock holds up no request. */
import { startThread, type Thread } from '../../../host/thread.js'
import { receivedError } from '../../sent-error.js'
import type { RunningStore, ServiceStore } from '../service-store.js'
import { openSqliteStore } from '../sqlite/index.js'
import { DatabaseUnavailable } from '../unavailable.js'
import {
  METHODS,
  type Method,
  type StoreAnswer,
  type StoreRequest,
  type StoreThreadData,
} from './messages.js'

type StoreThread = Thread<StoreRequest, StoreAnswer>

/** Throws `RushesError` (usage) when the file is of a later version of `rushes`. */
export async function openStoreThread(path: string): Promise<RunningStore> {
  // Creates and migrates the file, and throws what is wrong with it, before there is a thread.
  await openSqliteStore(path).close()
  const start = (role: StoreThreadData['role']): StoreThread =>
    startThread('store', { path, role } satisfies StoreThreadData)
  const thread = start('change')

  const readers = { lookup: start('lookup'), page: start('page') }
  // All have the same file open before it can be replaced.
  const isOpen: StoreRequest = { method: 'latestRun', args: [0] }
  await Promise.all(Object.values(readers).map((reader) => reader.ask(isOpen)))

  function threadFor(method: Method): StoreThread {
    const kind = METHODS[method]
    return kind === 'lookup' || kind === 'page' ? readers[kind] : thread
  }

  const call =
    (method: Method) =>
    async (...args: readonly unknown[]): Promise<unknown> => {
      const asked = threadFor(method)
      if (asked.hasEnded) throw new DatabaseUnavailable(new Error('the thread of the database has ended'))
      const answer = await asked.ask({ method, args })
      if ('error' in answer) throw receivedError(answer.error)
      return answer.result
    }
  const methods = Object.keys(METHODS) as readonly Method[]
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
        if (!reader.hasEnded) await reader.ask({ method: 'close', args: [] }).catch(() => {})
        await reader.close()
      }
      if (!thread.hasEnded) await store.close()
      await thread.close()
    },
  }
}
