import { onTestFinished } from 'vitest'
import { openPostgresStore } from '../../../src/service/store/postgres/index.js'
import { accountContract } from '../../contract/account-store.js'
import { cancelContract } from '../../contract/cancels.js'
import { consoleContract } from '../../contract/console-store.js'
import { creditLedgerContract } from '../../contract/credit-ledger.js'
import { fileRecordsContract } from '../../contract/file-records.js'
import { storeContract } from '../../contract/store.js'
import { userContract } from '../../contract/user-store.js'
import { describePostgres, STILL_CLOCK, sharedPostgres, temporaryDatabase } from '../../support/postgres.js'

async function openStore() {
  const store = await openPostgresStore(await temporaryDatabase(), { clock: STILL_CLOCK })
  onTestFinished(() => store.close())
  return store
}

describePostgres('on PostgreSQL', () => {
  storeContract(openStore)
  cancelContract(openStore)
  fileRecordsContract(openStore)
  accountContract(openStore)
  userContract(openStore)
  consoleContract(openStore)
  creditLedgerContract(async () => {
    const url = await temporaryDatabase()
    const store = await openPostgresStore(url, { clock: STILL_CLOCK })
    onTestFinished(() => store.close())
    const server = await sharedPostgres()
    return { store, run: async (sql) => void (await server.query(`SET search_path = rushes; ${sql}`, url)) }
  })
})
