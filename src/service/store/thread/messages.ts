/** What the service and its database thread send each other. */
import type { SentError } from '../../sent-error.js'
import type { ServiceStore } from '../service-store.js'

/** Reads are answered at once; changes that wait together share one commit. */
export const METHODS = {
  addRun: 'change',
  findRun: 'read',
  claimRun: 'change',
  finishRun: 'change',
  failRun: 'change',
  recordCrash: 'change',
  findOutput: 'read',
  imagesInUse: 'read',
  queueLengths: 'read',
  renewLease: 'change',
  extendLease: 'change',
  listWorkers: 'read',
  reapWorker: 'change',
  releaseWorker: 'change',
  checkWritable: 'change',
  ensureAccount: 'change',
  addAccount: 'change',
  listAccounts: 'read',
  setBanned: 'change',
  addKey: 'change',
  addFirstKey: 'change',
  findKey: 'read',
  listKeys: 'read',
  changeKey: 'change',
  rotateKey: 'change',
  recordKeyUse: 'change',
  listEntries: 'read',
  verify: 'read',
  addUser: 'change',
  findUser: 'read',
  listUsers: 'read',
  removeUser: 'change',
  setPassword: 'change',
  addLink: 'change',
  useLink: 'change',
  addSession: 'change',
  findSession: 'read',
  extendSession: 'change',
  endSession: 'change',
  endSessionById: 'change',
  endSessions: 'change',
  listSessions: 'read',
  addLogin: 'change',
  useLogin: 'change',
  findAccount: 'read',
  listRuns: 'read',
  findRuns: 'read',
  latestRun: 'read',
  listLostAttempts: 'read',
  listAccountKeys: 'read',
  findAccountKey: 'read',
  listAccountEntries: 'read',
  spendPerDay: 'read',
  close: 'change',
} as const satisfies Record<Exclude<keyof ServiceStore, 'onQueued'>, 'read' | 'change'>

export type Method = keyof typeof METHODS

export interface StoreCall {
  readonly method: Method
  readonly args: readonly unknown[]
}

/** `stop waiting`: the service closes, so a change waits for a lock only a little longer. */
export type StoreRequest = StoreCall | { readonly method: 'stop waiting' }

export type StoreAnswer = { readonly result: unknown } | { readonly error: SentError }
