/** The store on SQLite in a thread of its own, so that waiting for the disk or for a lock holds up no request. */
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { Refusal } from '../../rules/refusal.js'
import type { ServiceStore } from '../service-store.js'
import { openSqliteStore } from '../sqlite/index.js'
import { type FromStore, METHODS, type Method, type SentError } from './messages.js'

interface Waiting {
  resolve(result: unknown): void
  reject(error: Error): void
}

/** Throws `RushesError` (usage) when the file is of a later version of `rushes`. */
export async function openStoreThread(path: string): Promise<ServiceStore> {
  // Creates and migrates the file, and throws what is wrong with it, before there is a thread.
  await openSqliteStore(path).close()
  const waiting = new Map<number, Waiting>()
  let lastId = 0
  let ended: Error | undefined
  const thread = new Worker(threadScript(), { workerData: path })
  thread.unref()
  thread.on('message', ({ id, ...outcome }: FromStore) => {
    const { resolve, reject } = waiting.get(id) ?? {}
    waiting.delete(id)
    if ('error' in outcome) reject?.(receivedError(outcome.error))
    else resolve?.(outcome.result)
  })
  const onEnd = (cause: unknown) => {
    ended = new Error('the database thread has ended', { cause })
    for (const { reject } of waiting.values()) reject(ended)
    waiting.clear()
  }
  thread.on('error', onEnd)
  thread.on('exit', onEnd)

  const call =
    (method: Method) =>
    (...args: readonly unknown[]): Promise<unknown> =>
      new Promise((resolve, reject) => {
        if (ended !== undefined) return reject(ended)
        const id = ++lastId
        waiting.set(id, { resolve, reject })
        thread.postMessage({ id, method, args })
      })
  const methods = Object.keys(METHODS) as readonly Method[]
  const store = Object.fromEntries(methods.map((method) => [method, call(method)])) as unknown as ServiceStore
  return {
    ...store,
    async close() {
      if (ended === undefined) await store.close()
      await thread.terminate()
    },
  }
}

function receivedError(error: SentError): Error {
  if ('refusal' in error) return new Refusal(error.refusal, error.detail)
  return Object.assign(new Error(error.message), error.code !== undefined && { code: error.code })
}

/** Beside this file in the build; from the sources, the one that was built. */
function threadScript(): string {
  const built = fileURLToPath(new URL('./store.cjs', import.meta.url))
  return existsSync(built) ? built : fileURLToPath(new URL('../../../../dist/store.cjs', import.meta.url))
}
