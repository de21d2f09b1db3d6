/** What the service and its database thread send each other. */
import type { SentError } from '../../sent-error.js'
import type { ServiceStore } from '../service-store.js'

/**
 * Changes that wait together share one commit. A database in WAL mode can be read while another connection writes, so what is read
 * often and what is read long have a thread each: a `lookup` is of a row or two, a `page` of many. Other reads are rare.
 */
export const METHODS = {
  addRun: 'change',
  findRun: 'lookup',
  claimRun: 'change',
  finishRun: 'change',
  failRun: 'change',
  recordCrash: 'change',
  findOutput: 'lookup',
  holdImage: 'change',
  findImage: 'read',
  addOutputFiles: 'change',
  markOldFiles: 'change',
  markOrphans: 'change',
  markUnknownFiles: 'change',
  listMarkedFiles: 'read',
  recordRemoved: 'change',
  forgetRemoved: 'change',
  queueLengths: 'page',
  renewLease: 'change',
  extendLease: 'change',
  listWorkers: 'read',
  reapWorker: 'change',
  releaseWorker: 'change',
  checkWritable: 'change',
  ensureAccount: 'change',
  addAccount: 'change',
  listAccounts: 'page',
  setBanned: 'change',
  addKey: 'change',
  addFirstKey: 'change',
  findKey: 'lookup',
  listKeys: 'page',
  changeKey: 'change',
  rotateKey: 'change',
  recordKeyUse: 'change',
  listEntries: 'page',
  verify: 'page',
  addUser: 'change',
  findUser: 'read',
  listUsers: 'page',
  removeUser: 'change',
  setPassword: 'change',
  addLink: 'change',
  useLink: 'change',
  addSession: 'change',
  findSession: 'lookup',
  extendSession: 'change',
  endSession: 'change',
  endSessionById: 'change',
  endSessions: 'change',
  listSessions: 'page',
  addLogin: 'change',
  useLogin: 'change',
  findAccount: 'lookup',
  listRuns: 'page',
  findRuns: 'page',
  latestRun: 'lookup',
  listLostAttempts: 'page',
  listAccountKeys: 'page',
  findAccountKey: 'lookup',
  listAccountEntries: 'page',
  spendPerDay: 'page',
  close: 'change',
} as const satisfies Record<Exclude<keyof ServiceStore, 'onQueued'>, 'read' | 'change' | ReadingRole>

export type Method = keyof typeof METHODS

/** Of a thread that only reads. */
export type ReadingRole = 'lookup' | 'page'

/** What a thread is started with. */
export interface StoreThreadData {
  readonly path: string
  readonly role: 'change' | ReadingRole
}

export interface StoreCall {
  readonly method: Method
  readonly args: readonly unknown[]
}

/** `stop waiting`: the service closes, so a change waits for a lock only a little longer. */
export type StoreRequest = StoreCall | { readonly method: 'stop waiting' }

export type StoreAnswer = { readonly result: unknown } | { readonly error: SentError }
