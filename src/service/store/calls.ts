/** What several methods of a store have in common. */
import { checkBudget } from '../rules/key-checks.js'
import type { ServiceStore, Store } from './contract.js'

/** For some methods, a function of the result and the arguments. */
export type Observers = {
  readonly [Method in keyof Store]?: (
    result: Awaited<ReturnType<NonNullable<Store[Method]>>>,
    ...args: Parameters<NonNullable<Store[Method]>>
  ) => void
}

type AnyMethod = (...args: readonly unknown[]) => Promise<unknown>

/** The store, whose methods are replaced by what `replace` makes of them. */
export const withMethods = <Replaced extends object>(
  store: Replaced,
  replace: (method: AnyMethod, name: string) => AnyMethod,
): Replaced =>
  Object.fromEntries(
    Object.entries(store).map(([name, each]) => [
      name,
      typeof each === 'function' ? replace(each as AnyMethod, name) : each,
    ]),
  ) as Replaced

/** The store, which calls the function of a method with its result. If that throws, the call rejects. */
export const observed = <Observed extends object>(store: Observed, observers: Observers): Observed =>
  withMethods(store, (method, name) => {
    const observe = observers[name as keyof Observers] as
      | ((...values: readonly unknown[]) => void)
      | undefined
    if (observe === undefined) return method
    return async (...args) => {
      const result = await method(...args)
      observe(result, ...args)
      return result
    }
  })

/** Refuses a create that its key or account may not pay for. */
export const withBudgetCheck = <Checked extends Store>(
  store: Checked,
): Omit<Checked, 'addRun'> & ServiceStore => ({
  ...store,
  addRun: (run) => store.addRun(run, (account) => checkBudget(account, run.price, run.createdAtMs)),
})
