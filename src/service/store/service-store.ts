/** The store as a running service uses it. Every argument and result can be sent to a thread. */
import type { RateLimiter } from '../rate/contract.js'
import { checkBudget } from '../rules/budget.js'
import type { AddedRun, NewRun, Store } from './contract.js'

export interface ServiceStore extends Omit<Store, 'addRun' | 'addCredits'> {
  /** Throws `Refusal`: 401 for the key, 403 for account and spend limit, 429 for the quota, 402 for the balance. */
  addRun(run: NewRun): Promise<AddedRun>
}

/** A store that is closed with its service. */
export interface RunningStore extends ServiceStore {
  /** Of all nodes on the database; undefined for a database that has none. */
  readonly rateLimiter?: RateLimiter | undefined
  /** From now on a change that waits for the database gives up in time for the service to close. */
  stopWaiting(): void
}

export const withBudgetCheck = (store: Store): ServiceStore => ({
  ...store,
  addRun: (run) => store.addRun(run, (account) => checkBudget(account, run.price, run.createdAtMs)),
})
