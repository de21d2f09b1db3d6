/**
 * Entry point of the database threads, built as `dist/store.cjs` and started by `openStoreThread`. Each commit waits
 * for the disk, so waiting changes share one commit. If another process has locked the database, changes are retried
 * every 25 ms, and reads continue in between. Two of the threads only read.
 */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { errorCode, isBusy } from '../../../host/system-error.js'
import type { Numbered } from '../../../host/thread.js'
import { type SentError, sentError } from '../../rules/refusal.js'
import { callOf, ROUTES, type StoreMethod, type StoreRoute, withBudgetCheck } from '../calls.js'
import { openServiceDatabase, storeOf } from './index.js'

/** `workerData` of a thread. */
export interface StoreThreadData {
  readonly path: string
  readonly role: Exclude<StoreRoute, 'read'>
}

interface StoreCall {
  readonly method: StoreMethod
  readonly args: readonly unknown[]
}

/** `stop waiting`: the service closes, so a change waits for a lock for at most `MAX_CLOSING_BUSY_MS` from now. */
export type StoreRequest = StoreCall | { readonly method: 'stop waiting' }

export type StoreAnswer = { readonly result: unknown } | { readonly error: SentError }

/** Maximum time that one statement waits for a lock. Reads behind the statement wait too. */
const BUSY_TIMEOUT_MS = 100
const BUSY_PAUSE_MS = 25
const MAX_BUSY_MS = 10_000
/** Maximum wait when the service closes. Below the 3 s that the service waits for its responses. */
const MAX_CLOSING_BUSY_MS = 1_500
/**
 * Maximum duration of a transaction, regardless of the size of its changes. Changes that do not fit wait for the next
 * transaction, and reads run in between.
 */
const MAX_COMMIT_MS = 20

const port = parentPort
if (port === null) throw new Error('this file is the entry of a thread')

const { path, role } = workerData as StoreThreadData
const database = openServiceDatabase(path, { busyTimeoutMs: BUSY_TIMEOUT_MS })
if (role !== 'change') database.get('PRAGMA query_only = ON')
const callStore = callOf(withBudgetCheck(storeOf(database)))

interface PendingChange {
  readonly request: Numbered<StoreCall>
  readonly sinceMs: number
}

let changes: readonly PendingChange[] = []
let retrying = false
let closingSinceMs: number | undefined

const send = (id: number, message: StoreAnswer) =>
  port.postMessage({ id, message } satisfies Numbered<StoreAnswer>)
const call = ({ message: { method, args } }: Numbered<StoreCall>) => callStore(method, args)

const sendOutcome = (id: number, result: Promise<unknown>): Promise<void> =>
  result.then(
    (value) => send(id, { result: value }),
    (error: unknown) => send(id, { error: sentError(error) }),
  )

/**
 * Commits as many changes as fit in one transaction, each in a savepoint. No message is received meanwhile: a change
 * waits for nothing but its statements, which run in this thread.
 */
async function commit(batch: readonly PendingChange[]): Promise<void> {
  const results: Promise<unknown>[] = []
  const attempted = () => batch.slice(0, results.length)
  try {
    await database.transaction(async () => {
      const untilMs = performance.now() + MAX_COMMIT_MS
      for (const { request } of batch) {
        if (results.length > 0 && performance.now() > untilMs) break
        const result = call(request)
        results.push(result)
        await result.catch(() => {})
      }
    })
    changes = [...batch.slice(results.length), ...changes]
  } catch (error) {
    if (isBusy(error)) return retryLater(batch, error)
    const failed = results.length === 0 ? batch : attempted()
    changes = [...batch.slice(failed.length), ...changes]
    const reason = (await firstFailure(results)) ?? error
    for (const { request } of failed) send(request.id, { error: sentError(reason) })
    return
  }
  for (const [index, { request }] of attempted().entries())
    await sendOutcome(request.id, results[index] ?? Promise.resolve())
}

/**
 * Finds the reason for a failed commit. For example, a full disk ends the whole transaction, but only the change that
 * hit it has the reason.
 */
async function firstFailure(results: readonly Promise<unknown>[]): Promise<unknown> {
  const settled = await Promise.allSettled(results)
  return settled
    .filter((result) => result.status === 'rejected')
    .find(({ reason }) => errorCode(reason) !== undefined)?.reason
}

function hasTimedOut({ sinceMs }: PendingChange): boolean {
  const nowMs = performance.now()
  const hasExceededClosing =
    closingSinceMs !== undefined && nowMs - Math.max(sinceMs, closingSinceMs) > MAX_CLOSING_BUSY_MS
  return hasExceededClosing || nowMs - sinceMs > MAX_BUSY_MS
}

function retryLater(batch: readonly PendingChange[], error: unknown): void {
  for (const { request } of batch.filter(hasTimedOut)) send(request.id, { error: sentError(error) })
  changes = [...batch.filter((change) => !hasTimedOut(change)), ...changes]
  retrying = true
  setTimeout(() => {
    retrying = false
    void commitAll()
  }, BUSY_PAUSE_MS)
}

async function commitAll(): Promise<void> {
  if (retrying || changes.length === 0) return
  const closing = changes.find(({ request }) => request.message.method === 'close')
  const batch = changes.filter((change) => change !== closing)
  changes = []
  await commit(batch)
  if (changes.length > 0) {
    if (closing !== undefined) changes = [...changes, closing]
    if (!retrying) setImmediate(() => void commitAll())
    return
  }
  if (closing === undefined) return
  await sendOutcome(closing.request.id, call(closing.request))
  port?.close()
}

async function receive(first: Numbered<StoreRequest>): Promise<void> {
  const requests = [first]
  for (let next = receiveNow(); next !== undefined; next = receiveNow()) requests.push(next)
  for (const { id, message } of requests) {
    if (message.method === 'stop waiting') {
      closingSinceMs = performance.now()
      send(id, { result: undefined })
    } else if (role !== 'change' || ROUTES[message.method] !== 'change')
      await sendOutcome(id, call({ id, message }))
    else changes = [...changes, { request: { id, message }, sinceMs: performance.now() }]
  }
  await commitAll()
}

/** Returns the next waiting request, or undefined if none is waiting. */
const receiveNow = (): Numbered<StoreRequest> | undefined => receiveMessageOnPort(port)?.message

port.on('message', (request: Numbered<StoreRequest>) => void receive(request))
