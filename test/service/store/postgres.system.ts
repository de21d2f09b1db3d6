import { databaseContract } from '../../contract/databases.js'
import { describePostgres, openTestStore, sharedPostgres, temporaryDatabase } from '../../support/postgres.js'

describePostgres('on PostgreSQL', () => {
  databaseContract(async () => {
    const url = await temporaryDatabase()
    const store = await openTestStore(url)
    const server = await sharedPostgres()
    return { store, run: async (sql) => void (await server.query(`SET search_path = rushes; ${sql}`, url)) }
  })
})
