/**
 * The entry of the database thread; built as `dist/store.cjs`, and started by `openStoreThread`. Each commit waits for the
 * disk, so the changes that wait together share one. A database that another process has locked is tried again every
 * few milliseconds, and reads are answered meanwhile.
 */
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads'
import { messageOf } from '../../../errors.js'
import { errorCode } from '../../../host/directories.js'
import { Refusal } from '../../rules/refusal.js'
import { withBudgetCheck } from '../service-store.js'
import { openServiceDatabase, storeOf } from '../sqlite/index.js'
import { type FromStore, METHODS, type SentError, type ToStore } from './messages.js'

const BUSY_PAUSE_MS = 25
const MAX_BUSY_MS = 10_000

const port = parentPort
if (port === null) throw new Error('this file is the entry of a thread')

const database = openServiceDatabase(workerData as string, { busyTimeoutMs: 0 })
const store = withBudgetCheck(storeOf(database))

interface Change {
  readonly message: ToStore
  readonly sinceMs: number
}

let changes: readonly Change[] = []
let retrying = false

const send = (message: FromStore) => port.postMessage(message)
const call = ({ method, args }: ToStore): Promise<unknown> =>
  (store[method] as (...args: readonly unknown[]) => Promise<unknown>)(...args)

async function outcomeOf(message: ToStore, result: Promise<unknown>): Promise<FromStore> {
  const { id } = message
  return result.then(
    (value) => ({ id, result: value }),
    (error: unknown) => ({ id, error: sentError(error) }),
  )
}

function sentError(error: unknown): SentError {
  if (error instanceof Refusal) return { refusal: error.code, detail: error.detail }
  return { message: messageOf(error), code: errorCode(error) }
}

const isBusy = (error: unknown): boolean => errorCode(error) === 'SQLITE_BUSY'

/** Every statement of the store runs before its function returns, so all of them are part of the transaction. */
async function commit(batch: readonly Change[]): Promise<void> {
  let results: readonly Promise<unknown>[] = []
  try {
    database.transaction(() => {
      results = batch.map(({ message }) => call(message))
      for (const result of results) result.catch(() => {})
    })
  } catch (error) {
    if (isBusy(error)) return retryLater(batch, error)
    const reason = (await firstFailure(results)) ?? error
    for (const { message } of batch) send({ id: message.id, error: sentError(reason) })
    return
  }
  for (const [index, { message }] of batch.entries())
    send(await outcomeOf(message, results[index] ?? Promise.resolve()))
}

/** A full disk ends the whole transaction: the change that met it knows why the commit failed. */
async function firstFailure(results: readonly Promise<unknown>[]): Promise<unknown> {
  const settled = await Promise.allSettled(results)
  return settled
    .filter((result) => result.status === 'rejected')
    .find(({ reason }) => errorCode(reason) !== undefined)?.reason
}

function retryLater(batch: readonly Change[], error: unknown): void {
  const isLate = ({ sinceMs }: Change) => performance.now() - sinceMs > MAX_BUSY_MS
  for (const change of batch.filter(isLate)) send({ id: change.message.id, error: sentError(error) })
  changes = [...batch.filter((change) => !isLate(change)), ...changes]
  retrying = true
  setTimeout(() => {
    retrying = false
    void commitAll()
  }, BUSY_PAUSE_MS)
}

async function commitAll(): Promise<void> {
  if (retrying || changes.length === 0) return
  const batch = changes
  changes = []
  const closing = batch.find(({ message }) => message.method === 'close')
  await commit(batch.filter((change) => change !== closing))
  if (closing === undefined) return
  send(await outcomeOf(closing.message, call(closing.message)))
  port?.close()
}

async function receive(first: ToStore): Promise<void> {
  const messages = [first]
  for (
    let next = receiveMessageOnPort(port as never);
    next !== undefined;
    next = receiveMessageOnPort(port as never)
  )
    messages.push(next.message as ToStore)
  for (const message of messages)
    if (METHODS[message.method] === 'read') send(await outcomeOf(message, call(message)))
    else changes = [...changes, { message, sinceMs: performance.now() }]
  await commitAll()
}

port.on('message', (message: ToStore) => void receive(message))
