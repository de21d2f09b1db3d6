/** Reads of one account wait for each other, so that those of other accounts come between. */
import { refusalSaying } from '../rules/refusal.js'
import type { ServiceStore } from '../store/service-store.js'
import { createOwnedTurns } from '../turns.js'

/** Of one account: several people, with several tabs each. */
const MAX_WAITING = 50

export interface ReadTurns extends ServiceStore {
  /** As `listAccountEntries`, for the rest of a response that has begun: it is never refused. */
  readonly listMoreEntries: ServiceStore['listAccountEntries']
}

/** The same store, with one page, list, search or sum of an account at a time. Too many throw `Refusal` (503). */
export function withReadTurns(store: ServiceStore): ReadTurns {
  const inTurn = createOwnedTurns({
    atOnce: 1,
    maxWaiting: MAX_WAITING,
    refusal: () =>
      refusalSaying('overloaded', 'Too many reads of this account are waiting. Try again in a moment.'),
  })
  return {
    ...store,
    listRuns: (filter) => inTurn(filter.accountId, () => store.listRuns(filter)),
    findRuns: (ids, accountId) => inTurn(accountId, () => store.findRuns(ids, accountId)),
    listAccountKeys: (page) => inTurn(page.accountId, () => store.listAccountKeys(page)),
    listAccountEntries: (filter) => inTurn(filter.accountId, () => store.listAccountEntries(filter)),
    listMoreEntries: (filter) => inTurn(filter.accountId, () => store.listAccountEntries(filter), true),
    spendPerDay: (accountId, fromMs) => inTurn(accountId, () => store.spendPerDay(accountId, fromMs)),
  }
}
