/** `rushes admin --database`. What its commands do is in `admin.test.ts`, which runs on PostgreSQL too (project `postgres`). */
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { type RunOptions, runCli, temporaryFolder } from '../support/index.js'
import { describePostgres, sharedPostgres, temporaryDatabase } from '../support/postgres.js'

const PASSWORD = 's3cr@t'

/** The tests' server lets everybody in, whatever the password. */
const withPassword = (url: string): string => Object.assign(new URL(url), { password: PASSWORD }).href

/** No command may say the password, written in whatever way. */
async function run(words: readonly string[], options: RunOptions = {}) {
  const ran = await runCli(words, options)
  for (const text of [ran.stdout, ran.stderr]) expect(text).not.toMatch(/s3cr|%40t/)
  return ran
}

async function createAdmin() {
  const url = withPassword(await temporaryDatabase())
  const home = temporaryFolder()
  const admin = (...words: string[]) => run(['admin', ...words, '--database', url, '--debug'], { home })
  return { url, home, admin }
}

describePostgres('admin --database', () => {
  it('creates an account and a key in a new database, and no data folder', async () => {
    const { home, admin } = await createAdmin()
    const account = await admin('account', 'create', 'acme', '--balance', '5')
    expect(account).toMatchObject({ code: 0, stdout: 'acme\n' })
    expect((await admin('key', 'create', '--account', 'acme')).stdout).toMatch(/^rk_[\w-]{43}\n$/)
    expect((await admin('account', 'list')).stdout).toMatch(/^1\tacme\t5\tactive\t1\t0\t\S+Z\n$/)
    expect(existsSync(join(home, 'state', 'service'))).toBe(false)
  })

  it('is RUSHES_DATABASE_URL by default, unless --data selects a folder', async () => {
    const { url, home, admin } = await createAdmin()
    await admin('account', 'create', 'acme')
    const env = { RUSHES_DATABASE_URL: url }
    const list = (...words: string[]) => run(['admin', 'account', 'list', ...words], { home, env })
    expect((await list()).stdout).toMatch(/^1\tacme\t/)
    const data = join(home, 'data')
    expect(await list('--data', data)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`${data} contains no data of a local service`),
    })
  })

  it('cannot be used together with --data', async () => {
    const { home, admin } = await createAdmin()
    expect(await admin('account', 'create', 'acme', '--data', join(home, 'data'))).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('--data and --database cannot be used together.'),
    })
    expect(existsSync(join(home, 'data'))).toBe(false)
    expect((await admin('account', 'list')).stdout).toBe('')
  })

  it('leaves backups to the tools of PostgreSQL, and says which', async () => {
    const { home, admin } = await createAdmin()
    await admin('account', 'create', 'acme')
    const { code, stdout, stderr } = await admin('backup', join(home, 'backup.db'))
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
    expect(stderr).toMatch(/PostgreSQL is backed up with its own tools[\s\S]*pg_dump .*--schema=rushes/)
    expect(readdirSync(home)).not.toContain('backup.db')
  })

  it.each<[name: string, of: (url: URL) => string, says: RegExp]>([
    ['another kind of database', () => `mysql://root:${PASSWORD}@db/x`, /not a valid PostgreSQL URL/],
    ['an unescaped password', () => 'postgres://root:s3cr/t@db/x', /not a valid PostgreSQL URL[\s\S]*%2F/],
    ['no database', ({ host }) => `postgres://root:${PASSWORD}@${host}`, /names no database/],
    [
      'a server that does not listen',
      () => `postgres://root:s3cr%40t@127.0.0.1:1/x`,
      /postgres:\/\/127\.0\.0\.1:1\/x cannot be used: connection refused/,
    ],
    [
      'a database that does not exist',
      ({ host }) => `postgres://postgres:s3cr%40t@${host}/nowhere`,
      /\/nowhere cannot be used: database \\*"nowhere\\*" does not exist/,
    ],
  ])('is a usage error for %s, without the password', async (_, of, says) => {
    const { url: own } = await sharedPostgres()
    const url = of(new URL(own))
    for (const words of [
      ['--database', url],
      ['--database', url, '--json', '--debug'],
    ]) {
      const { code, stdout, stderr } = await run(['admin', 'account', 'list', ...words])
      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toMatch(says)
    }
  })
})
