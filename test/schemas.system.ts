/** The one schema of `schemas.test.ts` whose output needs PostgreSQL. */
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { runCli } from './support/cli.js'
import { describePostgres, temporaryDatabase } from './support/postgres.js'
import { expectToFit } from './support/schemas.js'
import { temporaryFolder } from './support/service.js'

describePostgres('admin-migrate', () => {
  it('accepts the printed JSON, but not with a missing or unknown key', async () => {
    const from = join(temporaryFolder(), 'data')
    await runCli(['admin', 'account', 'create', 'studio', '--data', from])
    const to = await temporaryDatabase()
    const { code, stdout } = await runCli(['admin', 'migrate', '--data', from, '--to-database', to, '--json'])
    expect(code).toBe(0)
    expectToFit('admin-migrate', JSON.parse(stdout))
  })
})
