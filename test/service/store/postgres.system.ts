import { accountContract } from '../../contract/account-store.js'
import { cancelContract } from '../../contract/cancels.js'
import { consoleContract } from '../../contract/console-store.js'
import { creditLedgerContract } from '../../contract/credit-ledger.js'
import { storeContract } from '../../contract/store.js'
import { userContract } from '../../contract/user-store.js'
import { describePostgres, openTestStore, sharedPostgres, temporaryDatabase } from '../../support/postgres.js'

const openStore = async () => await openTestStore(await temporaryDatabase())

describePostgres('on PostgreSQL', () => {
  storeContract(openStore)
  cancelContract(openStore)
  accountContract(openStore)
  userContract(openStore)
  consoleContract(openStore)
  creditLedgerContract(async () => {
    const url = await temporaryDatabase()
    const store = await openTestStore(url)
    const server = await sharedPostgres()
    return { store, run: async (sql) => void (await server.query(`SET search_path = rushes; ${sql}`, url)) }
  })
})
