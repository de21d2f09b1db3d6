import { onTestFinished } from 'vitest'
import { openPostgresStore } from '../../../src/service/store/postgres/index.js'
import { accountContract } from '../../contract/account-store.js'
import { storeContract } from '../../contract/store.js'
import { describePostgres, temporaryDatabase } from '../../support/postgres.js'

async function openStore() {
  const store = await openPostgresStore(await temporaryDatabase())
  onTestFinished(() => store.close())
  return store
}

describePostgres('on PostgreSQL', () => {
  storeContract(openStore)
  accountContract(openStore)
})
