/** The start: what is created, what is refused, and what is said. */
import { expect, onTestFinished, test } from 'vitest'
import { explainConnection } from '../../../src/service/store/postgres/connection-errors.js'
import { openPostgresStore } from '../../../src/service/store/postgres/index.js'
import { openSchema } from '../../../src/service/store/postgres/open-schema.js'
import { SERVICE_MIGRATIONS } from '../../../src/service/store/postgres/service-migrations.js'
import { describePostgres, sharedPostgres, temporaryDatabase } from '../../support/postgres.js'

async function open(url: string) {
  const store = await openPostgresStore(url)
  onTestFinished(() => store.close())
  return store
}

const usage = (message: RegExp, hint = /./) => ({
  code: 'usage',
  exitCode: 2,
  message: expect.stringMatching(message),
  hint: expect.stringMatching(hint),
})

test.each([
  ['mysql://db/rushes', /not a valid PostgreSQL URL/],
  ['rushes', /not a valid PostgreSQL URL/],
  ['postgres://user:p@ss/word@db:port/rushes', /not a valid PostgreSQL URL/],
  ['postgres://db.example.com', /names no database/],
])('%s is refused', async (url, message) => {
  await expect(openPostgresStore(url)).rejects.toMatchObject(usage(message))
})

test.each([
  [{ code: 'ECONNREFUSED' }, /connection refused/],
  [Object.assign(new AggregateError([{ code: 'ECONNREFUSED' }])), /connection refused/],
  [{ code: 'ENOTFOUND' }, /no such host/],
  [{ code: '28P01' }, /wrong user or password/],
  [{ code: '3D000' }, /the database does not exist/],
  [{ code: '53300' }, /too many connections/],
  [new Error('SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string'), /asks for a password/],
  [new Error('The server does not support SSL connections'), /TLS/],
  [new Error('self-signed certificate'), /TLS/],
  [new Error('timeout expired'), /no answer/],
])('%s', (error, message) => {
  const explained = explainConnection('postgres://user:s3cret@db:5433/rushes?sslmode=disable', error)
  expect(explained).toMatchObject(usage(message))
  expect(explained?.message).toContain('postgres://db:5433/rushes cannot be used')
  expect(JSON.stringify([explained?.message, explained?.hint])).not.toContain('s3cret')
})

test('an error that is not about the connection is not explained as one', () => {
  expect(explainConnection('postgres://db/rushes', new Error('division by zero'))).toBeUndefined()
})

describePostgres('on PostgreSQL', () => {
  test('processes that start together create the schema once, and one first key', async () => {
    const url = await temporaryDatabase()
    const stores = await Promise.all(Array.from({ length: 5 }, () => open(url)))
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

  test('a later start finds everything, and a migration runs once', async () => {
    const url = await temporaryDatabase()
    await (await open(url)).ensureAccount({ name: 'kept', credits: 5, nowMs: 0 })
    await openSchema(url, { migrations: [...SERVICE_MIGRATIONS, 'CREATE TABLE later (x integer)'] })
    await openSchema(url, { migrations: [...SERVICE_MIGRATIONS, 'CREATE TABLE later (x integer)'] })
    const server = await sharedPostgres()
    expect(await server.query('SELECT name, version FROM rushes.accounts, rushes.format', url)).toEqual([
      { name: 'kept', version: SERVICE_MIGRATIONS.length + 1 },
    ])
    await expect(openPostgresStore(url)).rejects.toMatchObject(
      usage(/newer version of rushes/, /Update rushes/),
    )
  })

  test('a database from before the console keeps everything, and its prompts are found', async () => {
    const url = await temporaryDatabase()
    await openSchema(url, { migrations: SERVICE_MIGRATIONS.slice(0, 1) })
    const server = await sharedPostgres()
    const prompts = [
      'a Fox',
      'a \0 fox \\u0000 and half \ud83e',
      'C:\\\\\0\0x',
      '\\ud800 whole 🦊',
      undefined,
    ]
    const rows = prompts.map((prompt, n) => {
      const input = JSON.stringify({ prompt, quality: 'high' }).replaceAll("'", "''")
      return `(${n + 1}, 'run_${n}', 1, 1, 'm', 'image', '${input}', 2, 'queued', ${n})`
    })
    await server.query(
      `SET search_path = rushes;
       INSERT INTO accounts (id, name, balance, created_at) VALUES (1, 'acme', 90, 0);
       INSERT INTO keys (id, account_id, name, hash, spent, used, created_at) VALUES (1, 1, 'ci', 'h1', 10, 5, 0);
       INSERT INTO runs (sequence, id, account_id, key_id, model, kind, input, price, status, created_at)
       VALUES ${rows.join(', ')};
       INSERT INTO credits (account_id, kind, amount, created_at) VALUES (1, 'added', 100, 0);
       INSERT INTO credits (account_id, kind, amount, run_id, key_id, created_at)
       SELECT 1, 'charge', -2, id, 1, created_at FROM runs`,
      url,
    )
    const store = await open(url)
    const found = async (search: string) =>
      (await store.listRuns({ accountId: 1, limit: 9, search })).runs.map(({ id }) => id)
    expect(await found('FOX')).toEqual(['run_1', 'run_0'])
    expect(await found(' fox \\u0000 and half ')).toEqual(['run_1'])
    expect(await found('C:\\\\x')).toEqual(['run_2'])
    expect(await found('\\ud800 whole 🦊')).toEqual(['run_3'])
    const { runs } = await store.listRuns({ accountId: 1, limit: 9 })
    const stored = await Promise.all(runs.map(({ id }) => store.findRun(id, 1)))
    expect(stored.map((run) => run?.input.prompt)).toEqual([...prompts].reverse())
    expect(await store.listKeys()).toMatchObject([
      { prefix: undefined, usedAtMs: undefined, rotatesUntilMs: undefined },
    ])
    expect(await store.findKey('h1', 0)).toMatchObject({ id: 1 })
    expect(await store.spendPerDay(1, 0)).toEqual([{ day: '1970-01-01', credits: 10, runs: 5 }])
    expect((await store.verify()).problems).toEqual([])
  })

  test('a migration that fails changes nothing', async () => {
    const url = await temporaryDatabase()
    await expect(openSchema(url, { migrations: [...SERVICE_MIGRATIONS, 'SELECT 1 / 0'] })).rejects.toThrow(
      /division by zero/,
    )
    const server = await sharedPostgres()
    expect(await server.query("SELECT nspname FROM pg_namespace WHERE nspname = 'rushes'", url)).toEqual([])
    await open(url)
  })

  test('a database from before the table of files keeps every input, and knows its files', async () => {
    const url = await temporaryDatabase()
    await openSchema(url, { migrations: SERVICE_MIGRATIONS.slice(0, 3) })
    const server = await sharedPostgres()
    const input = JSON.stringify({
      ...{ prompt: 'a \0 fox '.repeat(1_000), aspect_ratio: '16:9' },
      image_urls: [{ sha256: 'a', bytes: 5, content_type: 'image/png' }],
    })
    await server.query(
      `SET search_path = rushes;
       INSERT INTO accounts (id, name, balance, created_at) VALUES (1, 'acme', 90, 0);
       INSERT INTO runs (id, account_id, model, kind, input, images, prompt, price, status, owner, created_at, finished_at)
       SELECT id, 1, 'm', 'image', '${input}', '{a}', repeat('a fox ', 1000), 0, status, 'me', 7, finished_at
       FROM (VALUES ('one', 'succeeded', 50), ('two', 'queued', NULL)) AS run (id, status, finished_at);
       INSERT INTO outputs VALUES ('one', 0, 't', 'a.png', 'image/png', 3, 'sha')`,
      url,
    )
    const store = await open(url)
    expect((await store.findRun('two', 1))?.input).toEqual(JSON.parse(input))
    const all = (sql: string) => server.query(`SET search_path = rushes; ${sql}`, url)
    expect(await all("SELECT length(prompt), aspect_ratio FROM runs WHERE id = 'two'")).toEqual([
      { length: 1_000, aspect_ratio: '16:9' },
    ])
    expect(
      await all(
        'SELECT kind, key, sha256, bytes::integer, state, run_id, used_at::integer FROM files ORDER BY kind',
      ),
    ).toEqual([
      { kind: 'input', key: 'a', sha256: 'a', bytes: null, state: 'stored', run_id: null, used_at: 7 },
      {
        kind: 'output',
        key: 't/a.png',
        sha256: 'sha',
        bytes: 3,
        state: 'stored',
        run_id: 'one',
        used_at: 50,
      },
    ])
    expect(await all('SELECT run_id, key FROM run_files')).toEqual([{ run_id: 'two', key: 'a' }])
  })

  test('a database of another program is refused and untouched, unless a schema was made in it', async () => {
    const url = await temporaryDatabase()
    const server = await sharedPostgres()
    await server.query('CREATE TABLE accounts (x integer)', url)
    await expect(openPostgresStore(url)).rejects.toMatchObject(
      usage(/another program/, /CREATE SCHEMA rushes/),
    )
    expect(await server.query("SELECT nspname FROM pg_namespace WHERE nspname = 'rushes'", url)).toEqual([])
    await server.query('CREATE SCHEMA rushes', url)
    await (await open(url)).ensureAccount({ name: 'acme', credits: 5, nowMs: 0 })
    expect(await server.query('SELECT * FROM public.accounts', url)).toEqual([])
  })

  test('a schema of this name with other tables is refused', async () => {
    const url = await temporaryDatabase()
    const server = await sharedPostgres()
    await server.query('CREATE SCHEMA rushes; CREATE TABLE rushes.runs (x integer)', url)
    await expect(openPostgresStore(url)).rejects.toMatchObject(usage(/another program/, /other tables/))
  })

  test('a user without rights, a missing database and a read-only one are refused', async () => {
    const url = await temporaryDatabase()
    const server = await sharedPostgres()
    const missing = Object.assign(new URL(url), { pathname: '/rushes_is_not_there' }).href
    await expect(openPostgresStore(missing)).rejects.toMatchObject(
      usage(/the database does not exist/, /CREATE DATABASE/),
    )
    const name = `rushes_test_${process.pid}_guest`
    await server.query(`DROP ROLE IF EXISTS ${name}; CREATE ROLE ${name} LOGIN PASSWORD 'guest'`)
    onTestFinished(() => void server.query(`DROP ROLE IF EXISTS ${name}`))
    const guest = Object.assign(new URL(url), { username: name, password: 'guest' }).href
    await expect(openPostgresStore(guest)).rejects.toMatchObject(usage(/may not create/, /GRANT CREATE/))
    const readOnly = `${url}?options=-c%20default_transaction_read_only%3Don`
    await expect(openPostgresStore(readOnly)).rejects.toMatchObject(usage(/read-only/))
    // One that has the schema needs no write at the start, and is refused too.
    await (await open(url)).close()
    await expect(openPostgresStore(readOnly)).rejects.toMatchObject(usage(/read-only/))
  })

  test('a database without data is refused where the data should be there', async () => {
    const url = await temporaryDatabase()
    await expect(openPostgresStore(url, { make: false })).rejects.toMatchObject(
      usage(/contains no data of a service/, /Check the name of the database/),
    )
    const server = await sharedPostgres()
    expect(await server.query("SELECT nspname FROM pg_namespace WHERE nspname = 'rushes'", url)).toEqual([])
    await (await open(url)).close()
    await (await openPostgresStore(url, { make: false })).close()
  })

  test.each(['prefer', 'require', 'verify-ca'])(
    'sslmode=%s checks the certificate, without a word of the driver',
    async (mode) => {
      const warnings: string[] = []
      const note = (warning: Error) => void warnings.push(warning.message)
      process.on('warning', note)
      onTestFinished(() => void process.off('warning', note))
      const url = `${await temporaryDatabase()}?sslmode=${mode}`
      await expect(openPostgresStore(url)).rejects.toMatchObject(
        usage(/TLS: The server does not support SSL/),
      )
      await new Promise(setImmediate)
      expect(warnings).toEqual([])
    },
  )

  test('a certificate that is not there is named, and an unknown sslmode is refused', async () => {
    const url = await temporaryDatabase()
    await expect(
      openPostgresStore(`${url}?sslmode=verify-full&sslrootcert=/no/ca.pem`),
    ).rejects.toMatchObject(usage(/\/no\/ca\.pem: no such file/, /sslrootcert/))
    await expect(openPostgresStore(`${url}?sslmode=nonsense`)).rejects.toMatchObject(
      usage(/unknown sslmode "nonsense"/, /verify-full/),
    )
  })

  test('an ordinary user with a database of its own can do everything', async () => {
    const url = await temporaryDatabase()
    const server = await sharedPostgres()
    const name = `rushes_test_${process.pid}_owner`
    await server.query(`DROP ROLE IF EXISTS ${name}; CREATE ROLE ${name} LOGIN PASSWORD 'owner'`)
    await server.query(`ALTER DATABASE ${new URL(url).pathname.slice(1)} OWNER TO ${name}`)
    const own = Object.assign(new URL(url), { username: name, password: 'owner' }).href
    const store = await open(own)
    await store.renewLease('me')
    await store.checkWritable()
    expect(await store.listWorkers()).toMatchObject([{ id: 'me', isDisconnected: false }])
    await store.close()
    await server.dropDatabase(url)
    await server.query(`DROP ROLE ${name}`)
  })

  test('the server sees who is connected', async () => {
    const url = await temporaryDatabase()
    await (await open(url)).renewLease('me')
    const server = await sharedPostgres()
    const names = await server.query(
      `SELECT DISTINCT application_name AS name FROM pg_stat_activity WHERE datname = '${new URL(url).pathname.slice(1)}'`,
    )
    expect(names).toEqual([{ name: 'rushes' }])
  })
})
