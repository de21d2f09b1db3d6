/**
 * The store as one call with the name of a method. What several methods have in common is a wrapper of this call:
 *
 *   below                  checks the budget of a create
 *   open-store.ts          sends a call to the thread of its route
 *   sqlite/index.ts        rejects a missing row of a replaced file
 *   postgres/index.ts      takes the turn of an account, and announces queued runs
 *   ../console/limits.ts   reads of one account, one at a time
 *   ../metrics/index.ts    counts runs and credits
 *   ../administration.ts   explains errors to users
 */
import { type AccountState, checkBudget } from '../rules/key-checks.js'
import type { NewRun, ServiceStore, Store } from './contract.js'

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
  archiveKey: 'change',
  recordKeyUse: 'change',
  addCredits: 'change',
  listEntries: 'page',
  listKeyLog: 'page',
  listAccountEntries: 'page',
  spendPerDay: 'page',
  verify: 'page',

  addUser: 'change',
  findUser: 'read',
  listUsers: 'page',
  changeUser: 'change',
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
  findUnknownFiles: 'lookup',
  databaseId: 'read',

  checkWritable: 'change',
  close: 'change',
}

export type StoreCall = (method: StoreMethod, args: readonly unknown[]) => Promise<unknown>

/** Returns a call that does something before or after `call`. */
export type StoreWrapper = (call: StoreCall) => StoreCall

/** For some methods, a function of the arguments. */
type ByArguments<Result> = {
  readonly [Method in StoreMethod]?: (...args: Parameters<Store[Method]>) => Result
}

/** For some methods, a function of the result. */
type ByResult = {
  readonly [Method in StoreMethod]?: (
    result: Awaited<ReturnType<Store[Method]>>,
    ...args: Parameters<Store[Method]>
  ) => void
}

export const callOf =
  (store: object): StoreCall =>
  (method, args) =>
    (store as Record<StoreMethod, (...args: readonly unknown[]) => Promise<unknown>>)[method](...args)

/** The store whose methods are calls. */
export const fromCall = (call: StoreCall): ServiceStore =>
  Object.fromEntries(
    Object.keys(ROUTES).map((name) => [
      name,
      (...args: readonly unknown[]) => call(name as StoreMethod, args),
    ]),
  ) as unknown as ServiceStore

/** Wraps the methods of a store. The last wrapper sees a call first. */
export const wrapStore = <Wrapped extends object>(
  store: Wrapped,
  ...wrappers: readonly StoreWrapper[]
): Wrapped => ({
  ...store,
  ...fromCall(wrappers.reduce((call, wrap) => wrap(call), callOf(store))),
})

/** Calls the function of a method with its result. If that throws, the call rejects. */
export const observing =
  (observers: ByResult): StoreWrapper =>
  (call) =>
  async (method, args) => {
    const result = await call(method, args)
    const observe = observers[method] as ((...values: readonly unknown[]) => void) | undefined
    observe?.(result, ...args)
    return result
  }

/** Makes calls of one account wait for each other. `accounts`: the account of each method that waits. */
export const inTurns =
  (
    accounts: ByArguments<number>,
    inTurn: (accountId: number, work: () => Promise<unknown>) => Promise<unknown>,
  ): StoreWrapper =>
  (call) =>
  (method, args) => {
    const accountOf = accounts[method] as ((...values: readonly unknown[]) => number) | undefined
    return accountOf === undefined ? call(method, args) : inTurn(accountOf(...args), () => call(method, args))
  }

/** Refuses a create that its key or account may not pay for. */
export const withBudgetCheck = (store: Store): ServiceStore =>
  wrapStore<object>(store, (call) => (method, args) => {
    if (method !== 'addRun') return call(method, args)
    const [run] = args as readonly [NewRun]
    const check = (account: AccountState) => checkBudget(account, run.price, run.createdAtMs)
    return call(method, [run, check])
  }) as ServiceStore
