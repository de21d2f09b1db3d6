/** The methods of a store by their names: what a thread needs to know of each, and what several of them have in common. */
import { checkBudget } from '../rules/key-checks.js'
import type { ServiceStore, Store } from './contract.js'

export type StoreMethod = Exclude<keyof Store, 'onQueued'>

/**
 * Thread that runs a method on SQLite. In WAL mode, SQLite can read while another connection writes, so short reads
 * (`lookup`, one or two rows) and long reads (`page`, many rows) have a thread each. Changes that wait share one commit
 * (`change`). Other reads (`read`) are rare, and share the thread of the changes.
 */
export type StoreRoute = 'change' | 'read' | 'lookup' | 'page'

export const ROUTES: Readonly<Record<StoreMethod, StoreRoute>> = {
  ensureAccount: 'change',
  addAccount: 'change',
  listAccounts: 'page',
  findAccount: 'lookup',
  setBanned: 'change',
  addKey: 'change',
  addFirstKey: 'change',
  findKey: 'lookup',
  findAccountKey: 'lookup',
  listKeys: 'page',
  listAccountKeys: 'page',
  changeKey: 'change',
  recordKeyUse: 'change',
  addCredits: 'change',
  listEntries: 'page',
  listAccountEntries: 'page',
  spendPerDay: 'page',
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

  addRun: 'change',
  findCreated: 'lookup',
  findRun: 'lookup',
  findRuns: 'page',
  listRuns: 'page',
  cancelRun: 'change',
  findStopping: 'lookup',
  settleCanceled: 'change',
  decideUnknown: 'change',
  findOutput: 'lookup',

  claimRun: 'change',
  addOutputFiles: 'change',
  saveJob: 'change',
  adoptJob: 'change',
  finishRun: 'change',
  failRun: 'change',
  returnRuns: 'change',
  recordCrash: 'change',
  queueLengths: 'page',
  renewLease: 'change',
  extendLease: 'change',
  listWorkers: 'read',
  reapWorker: 'change',
  releaseWorker: 'change',

  findImage: 'read',
  removeOldFiles: 'change',
  removeOutputs: 'change',
  findUnknownFiles: 'lookup',
  databaseId: 'read',

  checkWritable: 'change',
  close: 'change',
}

export type StoreCall = (method: StoreMethod, args: readonly unknown[]) => Promise<unknown>

/** For some methods, a function of the result and the arguments. */
export type Observers = {
  readonly [Method in StoreMethod]?: (
    result: Awaited<ReturnType<Store[Method]>>,
    ...args: Parameters<Store[Method]>
  ) => void
}

type AnyMethod = (...args: readonly unknown[]) => Promise<unknown>

export const callOf =
  (store: object): StoreCall =>
  (method, args) =>
    (store as Record<StoreMethod, AnyMethod>)[method](...args)

/** The store whose methods are calls. */
export const fromCall = (call: StoreCall): ServiceStore =>
  Object.fromEntries(
    Object.keys(ROUTES).map((name) => [
      name,
      (...args: readonly unknown[]) => call(name as StoreMethod, args),
    ]),
  ) as unknown as ServiceStore

/** The store, which calls the function of a method with its result. If that throws, the call rejects. */
export function observed<Observed extends object>(store: Observed, observers: Observers): Observed {
  const call = callOf(store)
  const methods = Object.entries(observers).map(([name, observe]): [string, AnyMethod] => [
    name,
    async (...args) => {
      const result = await call(name as StoreMethod, args)
      ;(observe as (...values: readonly unknown[]) => void)(result, ...args)
      return result
    },
  ])
  return { ...store, ...Object.fromEntries(methods) }
}

/** Refuses a create that its key or account may not pay for. */
export const withBudgetCheck = <Checked extends Store>(
  store: Checked,
): Omit<Checked, 'addRun'> & ServiceStore => ({
  ...store,
  addRun: (run) => store.addRun(run, (account) => checkBudget(account, run.price, run.createdAtMs)),
})
