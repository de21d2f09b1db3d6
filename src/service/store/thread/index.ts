/** The store on SQLite in a thread of its own, so that waiting for the disk or for a lock holds up no request. */
import { startThread } from '../../../host/thread.js'
import { receivedError } from '../../sent-error.js'
import type { RunningStore, ServiceStore } from '../service-store.js'
import { openSqliteStore } from '../sqlite/index.js'
import { METHODS, type Method, type StoreAnswer, type StoreRequest } from './messages.js'

/** Throws `RushesError` (usage) when the file is of a later version of `rushes`. */
export async function openStoreThread(path: string): Promise<RunningStore> {
  // Creates and migrates the file, and throws what is wrong with it, before there is a thread.
  await openSqliteStore(path).close()
  const thread = startThread<StoreRequest, StoreAnswer>('store', path)

  const call =
    (method: Method) =>
    async (...args: readonly unknown[]): Promise<unknown> => {
      const answer = await thread.ask({ method, args })
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
      if (!thread.hasEnded) await store.close()
      await thread.close()
    },
  }
}
