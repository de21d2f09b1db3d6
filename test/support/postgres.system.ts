import { expect, test } from 'vitest'
import { canRestartPostgres, describePostgres, sharedPostgres, startPostgres } from './postgres.js'

describePostgres('the PostgreSQL of the tests', () => {
  test('a database is created, its connections are killed, and it is dropped', async () => {
    const server = await sharedPostgres()
    const url = await server.createDatabase()
    await server.query('CREATE TABLE x AS SELECT 1 AS one', url)
    expect(await server.query('SELECT one FROM x', url)).toEqual([{ one: 1 }])
    expect(await server.killBackends(url)).toBe(0)
    await server.dropDatabase(url)
    await expect(server.query('SELECT 1', url)).rejects.toThrow(/does not exist/)
  })

  test.skipIf(!canRestartPostgres)('it is restarted on its port, with its data, and stopped', async () => {
    const server = await startPostgres()
    await server.query('CREATE TABLE x AS SELECT 1 AS one')
    await server.halt()
    await expect(server.query('SELECT 1')).rejects.toThrow(/ECONNREFUSED/)
    await server.resume()
    expect(await server.query('SELECT one FROM x')).toEqual([{ one: 1 }])
    await server.restart()
    await server.stop()
    await expect(server.query('SELECT 1')).rejects.toThrow(/ECONNREFUSED/)
  })
})
