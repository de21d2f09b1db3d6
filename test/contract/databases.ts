/** All that a database of the service keeps to. */
import { accountContract } from './account-store.js'
import { cancelContract } from './cancels.js'
import { consoleContract } from './console-store.js'
import { creditLedgerContract } from './credit-ledger.js'
import type { OpenDatabase } from './filled-store.js'
import { storeContract } from './store.js'
import { userContract } from './user-store.js'

/** `open` gives an empty database. It is called within each test. */
export function databaseContract(open: OpenDatabase): void {
  const openStore = async () => (await open()).store
  storeContract(openStore)
  cancelContract(openStore)
  accountContract(openStore)
  userContract(open)
  consoleContract(open)
  creditLedgerContract(open)
}
