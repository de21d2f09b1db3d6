/** The store as a running service uses it. Every argument and result can be sent to a thread. */
import { checkBudget } from '../rules/budget.js'
import type { NewRun, Store } from './contract.js'

export interface ServiceStore extends Omit<Store, 'addRun' | 'addCredits'> {
  /** Throws `Refusal`: 403 for the spend limit, 429 for the quota, 402 for the balance. */
  addRun(run: NewRun): Promise<void>
}

export const withBudgetCheck = (store: Store): ServiceStore => ({
  ...store,
  addRun: (run) => store.addRun(run, (account) => checkBudget(account, run.price)),
})
