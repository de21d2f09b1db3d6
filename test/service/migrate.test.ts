import { mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { expect, it } from 'vitest'
import { openAdministration } from '../../src/service/administration.js'
import { openS3Storage } from '../../src/service/files/s3-storage.js'
import { migrateData } from '../../src/service/migrate/index.js'
import { hashOfKey } from '../../src/service/secrets.js'
import { openPostgresStore } from '../../src/service/store/postgres/index.js'
import { openSqliteStore } from '../../src/service/store/sqlite/index.js'
import { filesBelow } from '../support/binary.js'
import { createInstantEngine } from '../support/engines.js'
import { describePostgres, sharedPostgres, temporaryDatabase } from '../support/postgres.js'
import { hasS3rver, inEnvironment, startS3Store } from '../support/s3-store.js'
import {
  addAccount,
  ask,
  createTestService,
  ended,
  type TestService,
  temporaryFolder,
} from '../support/service.js'
import { until } from '../support/until.js'

const PNG =
  'data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='

/** A stopped service with runs of every kind and status, and what they were. */
async function createGrown() {
  const dataFolder = temporaryFolder()
  const engine = createInstantEngine()
  const service = await createTestService({
    dataFolder,
    engine: {
      render: async (job) => {
        if (String(job.input.prompt).includes('fails')) throw new Error('it does not work')
        return await engine.render(job)
      },
    },
  })
  const key = await addAccount(service, 'studio', {
    quota: 100,
    spendLimit: 500,
    allowedIps: ['127.0.0.0/8', '::1'],
    expiresAtMs: service.clock.now() + 86_400_000_000,
    rate: { requests: 200, windowMs: 10_000 },
  })
  const ids: string[] = []
  const create = async (input: object, apiKey = service.apiKey, model = 'rushes/preview-image') => {
    const { status, body } = await ask(service, 'POST', '/api/v1/runs', { model, input }, { key: apiKey })
    expect({ status, body }).toMatchObject({ status: 201 })
    ids.push(body.id)
    return body.id as string
  }
  const ours = await create({ prompt: 'a fox \u0000 and \ud800 half', quality: 'high' })
  const theirs = await create(
    { prompt: 'with an image', image_urls: [PNG, 'https://example.com/a.png'] },
    key,
  )
  const failed = await create({ prompt: 'it fails' })
  await ended(service, ours)
  await ended(service, theirs, { key })
  await ended(service, failed)
  const admin = await openAdministration({ dataFolder, clock: service.clock, make: false })
  await admin.createAccount('banned', 7)
  await admin.setBanned('banned', true)
  await admin.addCredits('studio', -3)
  await admin.close()
  await service.clock.runUntil(service.service.close())
  // A service that renders nothing, of which a worker has died in a render.
  const quiet = await createTestService({ dataFolder, rendering: false, clock: service.clock })
  const queued = await ask(
    quiet,
    'POST',
    '/api/v1/runs',
    { model: 'rushes/preview-image', input: { prompt: 'later' } },
    { key: service.apiKey },
  )
  const rendering = await ask(
    quiet,
    'POST',
    '/api/v1/runs',
    { model: 'rushes/preview-image', input: { prompt: 'now' } },
    { key },
  )
  await quiet.clock.runUntil(quiet.service.close())
  const store = openSqliteStore(join(dataFolder, 'service.db'), {
    host: 'gone',
    pid: 1,
    bornAtMs: 1,
    processExists: () => false,
  })
  await store.renewLease('dead')
  expect((await store.claimRun('dead', [rendering.body.id], 5, 'requested'))?.id).toBe(rendering.body.id)
  // Another worker had lost it before.
  await store.releaseWorker('dead', 6)
  await store.renewLease('dead')
  await store.claimRun('dead', [rendering.body.id], 7, 'requested')
  const userId = (await store.addUser({ email: 'ann@example.com', accountId: 2, nowMs: 3 })) ?? 0
  await store.addUser({ email: 'bob@example.com', accountId: 1, nowMs: 4 })
  const session = { hash: 's', userId, fromLink: true, address: undefined, userAgent: undefined }
  await store.addSession({ ...session, nowMs: 5, expiresAtMs: 4e12 })
  await store.setPassword(userId, 'scrypt', 's')
  await store.addLink({ hash: 'l', userId, nowMs: 5, expiresAtMs: 4e12 })
  await store.recordKeyUse(2, 60_000)
  await store.rotateKey(1, { hash: hashOfKey(service.apiKey), prefix: 'rk_first', oldUntilMs: 4e12 })
  await store.close()
  ids.push(queued.body.id, rendering.body.id)
  return {
    service,
    dataFolder,
    key,
    ids,
    theirs,
    queued: queued.body.id as string,
    rendering: rendering.body.id as string,
  }
}

const contentOf = async (
  store: Awaited<ReturnType<typeof openPostgresStore>> | ReturnType<typeof openSqliteStore>,
  ids: readonly string[],
) => {
  const accounts = await store.listAccounts()
  const runs = await Promise.all(
    ids.map(async (id) =>
      (await Promise.all(accounts.map((account) => store.findRun(id, account.id)))).find(Boolean),
    ),
  )
  const entries = await Promise.all(accounts.map(({ name }) => store.listEntries(name, -1)))
  return {
    accounts,
    keys: await store.listKeys(),
    runs,
    entries,
    images: [...(await store.imagesInUse())].sort(),
    users: (await store.listUsers(9)).map(({ sessions, ...user }) => user),
    lost: await Promise.all(ids.map((id) => store.listLostAttempts(id))),
    found: (await store.listRuns({ accountId: 1, limit: 9, search: 'A FOX ' })).map(({ id }) => id),
  }
}

/** The dead worker's lease is 30 s old by the clock of the database. */
const endLease = async (dataFolder: string) => {
  const { openServiceDatabase } = await import('../../src/service/store/sqlite/index.js')
  const database = openServiceDatabase(join(dataFolder, 'service.db'))
  database.run('UPDATE workers SET heartbeat_at = heartbeat_at - 31000')
  database.close()
}

const move = (dataFolder: string, databaseUrl: string, signal?: AbortSignal) =>
  migrateData({ dataFolder, databaseUrl, storage: undefined, signal })

const restart = (service: TestService, dataFolder: string, databaseUrl: string) =>
  createTestService({ dataFolder, databaseUrl, clock: service.clock })

describePostgres('admin migrate', () => {
  it('moves everything, and the service goes on with PostgreSQL as if nothing had happened', async () => {
    const { service, dataFolder, key, ids, theirs, queued, rendering } = await createGrown()
    await endLease(dataFolder)
    const url = await temporaryDatabase()
    expect(await move(dataFolder, url)).toMatchObject({
      accounts: 3,
      runs: 5,
      outputs: 2,
      problems: [],
      files: undefined,
    })
    const [before, after] = [openSqliteStore(join(dataFolder, 'service.db')), await openPostgresStore(url)]
    const { runs, ...rest } = await contentOf(before, ids)
    const expected = runs.map((run) =>
      run?.id === rendering ? { ...run, status: 'queued', startedAtMs: undefined } : run,
    )
    expect(await contentOf(after, ids)).toEqual({ ...rest, runs: expected })
    await before.close()
    await after.close()

    const moved = await restart(service, dataFolder, url)
    expect(moved.apiKey).toBe('')
    expect(await ended(moved, queued, { key: service.apiKey })).toMatchObject({ status: 'succeeded' })
    expect(await ended(moved, rendering, { key })).toMatchObject({ status: 'succeeded' })
    const { output } = (await ask(moved, 'GET', `/api/v1/runs/${theirs}`, undefined, { key })).body
    expect((await ask(moved, 'GET', new URL(output.urls[0]).pathname)).status).toBe(200)
    const { status } = await ask(
      moved,
      'POST',
      '/api/v1/runs',
      { model: 'rushes/preview-image', input: { prompt: 'new' } },
      { key },
    )
    expect(status).toBe(201)
    const admin = await openAdministration({
      dataFolder,
      databaseUrl: url,
      clock: service.clock,
      make: false,
    })
    // People sign in again.
    expect(await admin.users()).toMatchObject([
      { email: 'ann@example.com', account: 'studio', password: 'scrypt', sessions: 0, lastSeenAtMs: 5 },
      { email: 'bob@example.com', account: 'default', password: undefined, sessions: 0 },
    ])
    expect((await admin.addUser('eve@example.com', 'studio')).user.id).toBe(3)
    expect((await admin.createAccount('fourth', 1)).id).toBe(4)
    expect((await admin.createKey('fourth', {})).key.id).toBe(3)
    expect((await admin.verify()).problems).toEqual([])
    await admin.close()
  })

  it('refuses a database that has data, data in use, wrong sums and a folder without data', async () => {
    const { service, dataFolder } = await createGrown()
    const url = await temporaryDatabase()
    await expect(move(temporaryFolder(), url)).rejects.toThrow(/contains no data of a local service/)
    await expect(move(dataFolder, url)).rejects.toThrow(/A service works on this data/)
    await endLease(dataFolder)
    await move(dataFolder, url)
    await expect(move(dataFolder, url)).rejects.toThrow(/already has the data of a service/)

    const { openServiceDatabase } = await import('../../src/service/store/sqlite/index.js')
    const database = openServiceDatabase(join(dataFolder, 'service.db'))
    database.run("UPDATE accounts SET balance = balance + 1 WHERE name = 'studio'")
    database.close()
    await expect(move(dataFolder, await temporaryDatabase())).rejects.toThrow(/The data has problems.*studio/)
    expect(service.complaints.filter((line) => !/does not work/.test(String(line)))).toEqual([])
  })

  it('changes nothing when it is interrupted, or when the data changes meanwhile', async () => {
    const { dataFolder } = await createGrown()
    await endLease(dataFolder)
    const url = await temporaryDatabase()
    await expect(move(dataFolder, url, AbortSignal.abort(new Error('Ctrl-C')))).rejects.toThrow('Ctrl-C')
    const server = await sharedPostgres()
    await (await openPostgresStore(url)).close()
    // The import waits for this lock, while somebody adds credits.
    const other = new pg.Client(url)
    await other.connect()
    await other.query('BEGIN; LOCK TABLE rushes.accounts')
    const moving = move(dataFolder, url)
    moving.catch(() => {})
    await until('the import', async () => {
      const [row] = await server.query('SELECT count(*) AS waiting FROM pg_locks WHERE NOT granted', url)
      return Number(row?.waiting) > 0
    })
    const admin = await openAdministration({ dataFolder, clock: { now: () => 1 }, make: false })
    await admin.addCredits('studio', 5)
    await admin.close()
    await other.end()
    await expect(moving).rejects.toThrow(/was used while its data was copied/)
    const [row] = await server.query('SELECT count(*) AS accounts FROM rushes.accounts', url)
    expect(Number(row?.accounts)).toBe(0)
    expect((await move(dataFolder, url)).accounts).toBe(3)
  })

  it.skipIf(!hasS3rver)(
    'copies the files to a storage, once, and refuses bytes that have changed',
    async () => {
      const { service, dataFolder, ids, theirs, key } = await createGrown()
      await endLease(dataFolder)
      const store = await startS3Store()
      inEnvironment(store.env)
      const open = () =>
        openS3Storage({
          url: `s3://${store.bucket}/moved`,
          proxy: false,
          env: store.env,
          clock: service.clock,
          warn: (message) => expect.fail(message),
        })
      const storage = await open()
      const url = await temporaryDatabase()
      const moveFiles = () => migrateData({ dataFolder, databaseUrl: url, storage })
      const [output = ''] = filesBelow(join(dataFolder, 'outputs'))
      const path = join(dataFolder, 'outputs', output)
      const bytes = readFileSync(path)
      writeFileSync(path, 'other bytes')
      await expect(moveFiles()).rejects.toThrow(/has other bytes than were recorded/)
      rmSync(path)
      await expect(moveFiles()).rejects.toMatchObject({
        message: expect.stringContaining(`Outputs without a file: 1, for example ${path}`),
        hint: expect.stringContaining('--allow-missing'),
      })
      mkdirSync(path)
      await expect(moveFiles()).rejects.toThrow(/Cannot read .*\.png.*nothing was moved/)
      rmdirSync(path)
      const filled = await temporaryDatabase()
      const other = await openPostgresStore(filled)
      await other.ensureAccount({ name: 'other', credits: 1, nowMs: 1 })
      await other.close()
      const before = store.keys()
      await expect(migrateData({ dataFolder, databaseUrl: filled, storage })).rejects.toThrow(
        /already has the data/,
      )
      expect(store.keys()).toEqual(before)
      writeFileSync(path, bytes)
      writeFileSync(join(dataFolder, 'inputs', 'half.tmp'), 'of a process that was killed')
      const { files } = await moveFiles()
      // The other output and the image were copied before, or beside, the wrong one.
      expect((files?.copied ?? 0) + (files?.present ?? 0)).toBe(3)
      expect(files?.missing).toBe(0)
      expect(store.keys()).toHaveLength(3)
      storage.close?.()

      rmSync(join(dataFolder, 'outputs'), { recursive: true })
      const moved = await createTestService({
        dataFolder,
        databaseUrl: url,
        clock: service.clock,
        storage: await open(),
        rendering: false,
      })
      const { output: found } = (await ask(moved, 'GET', `/api/v1/runs/${theirs}`, undefined, { key })).body
      const redirected = await ask(moved, 'GET', new URL(found.urls[0]).pathname)
      expect(redirected.status).toBe(302)
      const signed = await fetch(redirected.header('location') ?? '')
      expect([signed.status, signed.headers.get('content-type')]).toEqual([200, 'image/png'])
      expect(ids).toHaveLength(5)
    },
  )
})
