/** The start: what is created, what is refused, and what is said. */
import { expect, onTestFinished, test } from 'vitest'
import { explainConnection } from '../../../src/service/store/postgres/connection-errors.js'
import { openPostgresStore } from '../../../src/service/store/postgres/index.js'
import { POSTGRES_SCRIPTS } from '../../../src/service/store/postgres/open-schema.js'
import { createManualClock } from '../../support/clock.js'
import { describePostgres, openTestStore, sharedPostgres, temporaryDatabase } from '../../support/postgres.js'
import { createTestService } from '../../support/service.js'
import { OLD_ROWS } from './old-rows.js'

const usage = (message: RegExp, hint = /./) => ({
  code: 'usage',
  exitCode: 2,
  message: expect.stringMatching(message),
  hint: expect.stringMatching(hint),
})

const failed = (message: string, code?: string) => Object.assign(new Error(message), { code })
const REFUSED = failed('connect ECONNREFUSED 127.0.0.1:5433', 'ECONNREFUSED')

test.each([
  [REFUSED, /connection refused/],
  [new AggregateError([REFUSED]), /connection refused/],
  [failed('password authentication failed for user "user"', '28P01'), /password authentication failed/],
  [failed('database "rushes" does not exist', '3D000'), /database "rushes" does not exist/],
  [new Error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'), /client password/],
  [new Error('self-signed certificate'), /self-signed/],
])('%s', (error, message) => {
  const explained = explainConnection('postgres://user:s3cret@db:5433/rushes?sslmode=disable', error)
  expect(explained).toMatchObject(usage(message))
  expect(explained?.message).toContain('postgres://db:5433/rushes cannot be used')
  expect(JSON.stringify([explained?.message, explained?.hint])).not.toContain('s3cret')
})

test('an error that does not concern the connection is not explained as one', () => {
  expect(explainConnection('postgres://db/rushes', new Error('division by zero'))).toBeUndefined()
})

describePostgres('on PostgreSQL', () => {
  test('processes that start together create the schema once, and one first key', async () => {
    const url = await temporaryDatabase()
    const stores = await Promise.all(Array.from({ length: 5 }, () => openTestStore(url)))
    const keys = await Promise.all(
      stores.map(async (store, at) => {
        const accountId = await store.ensureAccount({ name: 'default', credits: 10, nowMs: 0 })
        return await store.addFirstKey({
          accountId,
          hash: `hash ${at}`,
          prefix: 'rk_',
          name: 'first',
          nowMs: 0,
        })
      }),
    )
    expect(keys.filter((isFirst) => isFirst)).toHaveLength(1)
    expect(await stores[0]?.listAccounts()).toMatchObject([{ name: 'default', balance: 10, keys: 1 }])
  })

  test('a database of another format is refused and left unchanged', async () => {
    const url = await temporaryDatabase()
    await (await openTestStore(url)).ensureAccount({ name: 'kept', credits: 5, nowMs: 0 })
    const server = await sharedPostgres()
    await server.query('UPDATE rushes.format SET version = 6', url)
    await expect(openPostgresStore(url)).rejects.toMatchObject(
      usage(
        /later version of rushes: it has format 6, and this version reads formats up to 5/,
        /Use that version/,
      ),
    )
    expect(await server.query('SELECT name, version FROM rushes.accounts, rushes.format', url)).toEqual([
      { name: 'kept', version: '6' },
    ])
  })

  test('a database of an earlier format is brought up to date, also by processes that start together', async () => {
    const url = await temporaryDatabase()
    const server = await sharedPostgres()
    await server.query(`CREATE SCHEMA rushes; SET search_path = rushes; ${POSTGRES_SCRIPTS[0]}`, url)
    for (const row of OLD_ROWS) await server.query(`SET search_path = rushes; ${row}`, url)
    const [store] = await Promise.all([openTestStore(url), openTestStore(url)])
    expect(await store.listKeys()).toMatchObject([{ id: 1, name: 'old', disabled: true }])
    expect(await store.listUsers()).toMatchObject([{ email: 'ann@example.com', account: 'acme' }])
  })

  test('a database of another program is shared: its tables are left alone', async () => {
    const url = await temporaryDatabase()
    const server = await sharedPostgres()
    await server.query('CREATE TABLE accounts (x integer)', url)
    await (await openTestStore(url)).ensureAccount({ name: 'acme', credits: 5, nowMs: 0 })
    expect(await server.query('SELECT * FROM public.accounts', url)).toEqual([])
  })

  test('a database in another encoding than UTF8 is refused', async () => {
    const url = await temporaryDatabase()
    const server = await sharedPostgres()
    const name = `${new URL(url).pathname.slice(1)}_latin1`
    await server.query(`CREATE DATABASE ${name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0`)
    onTestFinished(() => void server.query(`DROP DATABASE IF EXISTS ${name}`))
    const latin = Object.assign(new URL(url), { pathname: `/${name}` }).href
    await expect(openPostgresStore(latin)).rejects.toMatchObject(usage(/encoding LATIN1/, /ENCODING 'UTF8'/))
  })

  test('a user without rights, a missing database and a read-only one are refused', async () => {
    const url = await temporaryDatabase()
    const server = await sharedPostgres()
    const missing = Object.assign(new URL(url), { pathname: '/rushes_is_not_there' }).href
    await expect(openPostgresStore(missing)).rejects.toMatchObject(
      usage(/database .* does not exist/, /CREATE DATABASE/),
    )
    const name = `rushes_test_${process.pid}_guest`
    await server.query(`DROP ROLE IF EXISTS ${name}; CREATE ROLE ${name} LOGIN PASSWORD 'guest'`)
    onTestFinished(() => void server.query(`DROP ROLE IF EXISTS ${name}`))
    const guest = Object.assign(new URL(url), { username: name, password: 'guest' }).href
    await expect(openPostgresStore(guest)).rejects.toMatchObject(usage(/permission denied/, /GRANT CREATE/))
    const readOnly = `${url}?options=-c%20default_transaction_read_only%3Don`
    await expect(openPostgresStore(readOnly)).rejects.toMatchObject(usage(/read-only/, /primary server/))
    // A replica of a database that a service has used.
    await (await openTestStore(url)).close()
    const clock = createManualClock()
    const start = clock.runUntil(createTestService({ clock, databaseUrl: readOnly }))
    await expect(start).rejects.toMatchObject(
      usage(/^The database cannot be used: .*read-only/, /--database/),
    )
  })

  test('a database without data is refused where data is required', async () => {
    const url = await temporaryDatabase()
    await expect(openPostgresStore(url, { make: false })).rejects.toMatchObject(
      usage(/contains no data of a service/, /Check the name of the database/),
    )
    const server = await sharedPostgres()
    expect(await server.query("SELECT nspname FROM pg_namespace WHERE nspname = 'rushes'", url)).toEqual([])
    await (await openTestStore(url)).close()
    await (await openPostgresStore(url, { make: false })).close()
  })

  test.each(['prefer', 'require', 'verify-ca', 'nonsense'])(
    'sslmode=%s checks the certificate, without a word of the driver',
    async (mode) => {
      const warnings: string[] = []
      const note = (warning: Error) => void warnings.push(warning.message)
      process.on('warning', note)
      onTestFinished(() => void process.off('warning', note))
      const url = `${await temporaryDatabase()}?sslmode=${mode}`
      await expect(openPostgresStore(url)).rejects.toMatchObject(usage(/The server does not support SSL/))
      await new Promise(setImmediate)
      expect(warnings).toEqual([])
    },
  )

  test('a missing certificate is named', async () => {
    const url = await temporaryDatabase()
    await expect(
      openPostgresStore(`${url}?sslmode=verify-full&sslrootcert=/no/ca.pem`),
    ).rejects.toMatchObject(usage(/\/no\/ca\.pem: no such file/, /sslrootcert/))
  })
})
