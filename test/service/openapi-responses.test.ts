/** Every response that the OpenAPI document has is provoked here from the real service, and must match its schema. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { MODELS_PATH, OPENAPI_PATH, RUNS_PATH } from '../../src/protocol/id.js'
import type { KeyTerms } from '../../src/service/rules/key-terms.js'
import { LOCAL_MODELS } from '../../src/service/rules/names.js'
import {
  type Asking,
  addAccount,
  administer,
  ask,
  createCommandedEngine,
  createTestService,
  ended,
  FOX,
  finished,
  ONE_PIXEL_PNG,
  ONE_PIXEL_URL,
  type TestService,
} from '../support/index.js'
import { createHead, dial } from '../support/line.js'
import { createPostgresProxy } from '../support/postgres-proxy.js'
import { TEST_BASE_URL } from '../support/service.js'
import { runSql } from '../support/test-database.js'
import { createDocumentCheck, type Exchange } from './openapi-check.js'

/** Sends bytes, and reads until the service closes the connection. */
async function heardAfter(url: string, text: string): Promise<Pick<Exchange, 'status' | 'body'>> {
  const line = dial(url, { allowHalfOpen: true })
  line.send(text)
  await line.otherSideDone()
  line.socket.destroy()
  const [, status, body = ''] = /^HTTP\/1\.1 (\d+) [\s\S]*?\r\n\r\n([\s\S]*)$/.exec(line.heard) ?? []
  return { status: Number(status), body: JSON.parse(Buffer.from(body, 'latin1').toString()) }
}

const BOAT = {
  model: LOCAL_MODELS.video,
  input: {
    prompt: 'a boat',
    duration: '10',
    image_urls: ['http://127.0.0.1:1/a.png', ONE_PIXEL_URL],
    mood: { calm: true },
  },
}

type Ask = typeof ask

test('every response matches the document, and every documented response occurs', async () => {
  const check = createDocumentCheck()
  const problems: string[] = []
  const see = (exchange: Exchange) => problems.push(...check.problemsOf(exchange))
  const checkedAsk: Ask = async (service, method, path, ...more) => {
    const answer = await ask(service, method, path, ...more)
    see({ method, path: new URL(path, TEST_BASE_URL).pathname, ...answer })
    return answer
  }
  await meetRuns(checkedAsk)
  await meetOutputs(checkedAsk)
  await meetRefusedBodies(checkedAsk)
  await meetRefusedCallers(checkedAsk)
  await meetBrokenDatabases(checkedAsk)
  await meetTooManyBodies(see)
  expect(problems).toEqual([])
  expect(check.unmet()).toEqual([])
})

test('detects a response that the document lacks', () => {
  const { problemsOf } = createDocumentCheck()
  const said = (status: number, body: unknown, path = `${RUNS_PATH}/run_x`) =>
    problemsOf({ method: 'GET', path, status, body })
  const error = (code: string) => ({ error: { message: 'x', code } })
  expect(said(404, error('run_not_found'))).toEqual([])
  for (const [status, body] of [
    [404, error('gone')],
    [402, error('insufficient_balance')],
    [404, { error: { message: 'x', code: 'run_not_found', more: 1 } }],
    [404, { message: 'x' }],
    [404, '<h1>'],
    [200, { id: 'run_x', status: 'succeeded' }],
    [201, error('run_not_found')],
  ] as const)
    expect(said(status, body), JSON.stringify(body)).not.toEqual([])
})

async function meetRuns(ask: Ask): Promise<void> {
  const engine = createCommandedEngine()
  const service = await createTestService({ engine, concurrency: 1 })
  const [image, video] = [
    await ask(service, 'POST', RUNS_PATH, FOX),
    await ask(service, 'POST', RUNS_PATH, BOAT),
  ]
  expect(video.body.input.image_urls[1]).toMatchObject({ bytes: ONE_PIXEL_PNG.byteLength })
  const met = new Set<string>()
  const look = async () => {
    for (const { body } of [image, video]) {
      await service.clock.advance(1_000)
      met.add((await ask(service, 'GET', `${RUNS_PATH}/${body.id}`)).body.status)
    }
  }
  await look()
  engine.finish()
  await ended(service, image.body.id)
  while (engine.waiting === 0) await service.clock.advance(10)
  engine.fail(new Error('no paint left'))
  await ended(service, video.body.id)
  await look()
  expect([...met].sort()).toEqual(['failed', 'processing', 'queued', 'succeeded'])
  const next = await ask(service, 'POST', RUNS_PATH, FOX)
  for (const { body } of [next, image]) await ask(service, 'POST', `${RUNS_PATH}/${body.id}/cancel`)

  for (const path of ['/healthz', '/readyz', OPENAPI_PATH]) await ask(service, 'GET', path)
  await ask(service, 'GET', MODELS_PATH)
  await ask(service, 'GET', '/nowhere')
  for (const path of ['/healthz', OPENAPI_PATH, `${RUNS_PATH}/run_x`]) await ask(service, 'POST', path)
  await ask(service, 'GET', RUNS_PATH)
}

/** A service with one output; its path. */
async function withOutput(service: TestService): Promise<string> {
  return new URL((await finished(service)).output.urls[0]).pathname
}

async function meetOutputs(ask: Ask): Promise<void> {
  const service = await createTestService()
  const path = await withOutput(service)
  const get = async (headers: Readonly<Record<string, string>> = {}) =>
    (await ask(service, 'GET', path, undefined, { authorization: '', headers })).status
  expect(await get()).toBe(200)
  expect(await get({ range: 'bytes=1-' })).toBe(206)
  expect(await get({ 'if-none-match': '*' })).toBe(304)
  expect(await get({ range: 'bytes=1000-' })).toBe(416)
  rmSync(join(service.dataFolder, 'files', path.replace(/^\/outputs\//, '').replace('.', '/')))
  expect(await get()).toBe(410)
  expect((await ask(service, 'GET', '/outputs/a/b')).status).toBe(404)
}

async function meetRefusedBodies(ask: Ask): Promise<void> {
  const service = await createTestService({ rendering: false, bodyLimitBytes: 1_000 })
  const bodies = [
    '{',
    [],
    { model: FOX.model },
    { ...FOX, model: 'acme/none' },
    { ...FOX, input: {} },
    { ...FOX, input: { prompt: 7, quality: 'hihg' } },
    'x'.repeat(1_001),
  ]
  for (const body of bodies) await ask(service, 'POST', RUNS_PATH, body)
}

async function meetRefusedCallers(ask: Ask): Promise<void> {
  const service = await createTestService({ rendering: false })
  const admin = await administer(service)
  const all = async (asking: Asking) => {
    await ask(service, 'POST', RUNS_PATH, FOX, asking)
    await ask(service, 'POST', `${RUNS_PATH}/run_x/cancel`, undefined, asking)
    for (const path of [`${RUNS_PATH}/run_x`, MODELS_PATH]) await ask(service, 'GET', path, undefined, asking)
  }
  await admin.createAccount('acme', 1)
  const keyWith = async (terms: Partial<KeyTerms>) => ({
    key: (await admin.createKey('acme', terms)).apiKey,
  })

  await all({ authorization: '' })
  await all({ key: 'rk_unknown' })
  await all(await keyWith({ allowedIps: ['192.0.2.1'] }))
  for (const terms of [{ spendLimit: 0 }, { quota: 0 }, {}, {}]) await all(await keyWith(terms))
  const [busy, banned] = [await keyWith({}), await keyWith({})]
  for (let count = 0; count < 11; count++) await all(busy)
  await admin.setBanned('acme', true)
  await all(banned)
}

async function meetBrokenDatabases(ask: Ask): Promise<void> {
  const odd = await createTestService({ rendering: false })
  await runSql(odd, ...['runs', 'outputs'].map((table) => `ALTER TABLE ${table} RENAME TO lost_${table}`))
  await ask(odd, 'POST', RUNS_PATH, FOX)
  await ask(odd, 'POST', `${RUNS_PATH}/run_x/cancel`)
  for (const path of [`${RUNS_PATH}/run_x`, '/outputs/a/b']) await ask(odd, 'GET', path)
  await runSql(odd, 'ALTER TABLE keys RENAME TO lost_keys')
  await ask(odd, 'GET', MODELS_PATH)
  await runSql(odd, 'ALTER TABLE lost_keys RENAME TO keys')
  await (odd.databaseUrl === undefined ? meetDamagedFile(ask) : meetLostDatabase(ask, odd.databaseUrl))
}

async function meetLostDatabase(ask: Ask, url: string): Promise<void> {
  const { url: databaseUrl, close } = await createPostgresProxy(url)
  const service = await createTestService({ databaseUrl, rendering: false, ephemeralKey: true })
  // The list reads the database only for the key.
  const key = await addAccount(service, 'stored')
  await close()
  const { clock } = service
  await clock.runUntil(ask(service, 'POST', RUNS_PATH, FOX))
  await clock.runUntil(ask(service, 'POST', `${RUNS_PATH}/run_x/cancel`))
  for (const path of [`${RUNS_PATH}/run_x`, '/outputs/a/b', '/readyz'])
    await clock.runUntil(ask(service, 'GET', path))
  await clock.runUntil(ask(service, 'GET', MODELS_PATH, undefined, { key }))
}

async function meetDamagedFile(ask: Ask): Promise<void> {
  const first = await createTestService()
  const path = await withOutput(first)
  await first.clock.runUntil(first.service.close())
  // Started again, so that the pages of the database are not in memory.
  const { apiKey, dataFolder } = first
  const damaged = { ...(await createTestService({ dataFolder, rendering: false })), apiKey }
  for (const name of ['service.db', 'service.db-wal']) writeFileSync(join(dataFolder, name), '')
  await ask(damaged, 'POST', RUNS_PATH, FOX)
  await ask(damaged, 'POST', `${RUNS_PATH}/run_x/cancel`)
  for (const each of [`${RUNS_PATH}/run_x`, MODELS_PATH, path, '/readyz']) await ask(damaged, 'GET', each)
}

async function meetTooManyBodies(see: (exchange: Exchange) => void): Promise<void> {
  const service = await createTestService({ port: 0, rendering: false, bodyLimitBytes: 1_000_000 })
  const text = `${createHead(service)}Content-Length: 1000000\r\n\r\n${'x'.repeat(999_999)}`
  // Four of them fit; the fifth is refused.
  const refused = await Promise.race(Array.from({ length: 5 }, () => heardAfter(service.baseUrl, text)))
  see({ method: 'POST', path: RUNS_PATH, ...refused })
}
