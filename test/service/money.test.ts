/** Who may ask, from where, for how much: the checks of a request in their order, and credits under concurrency. */
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { expect, test } from 'vitest'
import type { KeyTerms } from '../../src/service/rules/key-terms.js'
import { LOCAL_MODELS } from '../../src/service/rules/names.js'
import {
  type Asking,
  administer,
  ask,
  createCommandedEngine,
  created,
  createInstantEngine,
  createTestService,
  ended,
  FOX,
  finished,
  runOf,
  type TestService,
} from '../support/index.js'

const RUNS = '/api/v1/runs'
const FILM = { model: LOCAL_MODELS.video, input: { prompt: 'a fox', resolution: '1080p', duration: '10' } }

/** The service with an account `acme`, as an administrator made it beside. */
async function createPaidService(credits: number, options: Parameters<typeof createTestService>[0] = {}) {
  const service = await createTestService(options)
  const admin = await administer(service)
  await admin.createAccount('acme', credits)
  const addKey = async (terms: Partial<KeyTerms> = {}) => await admin.createKey('acme', terms)
  const balance = async () => (await admin.accounts()).find(({ name }) => name === 'acme')?.balance
  const key = async (id: number) => (await admin.keys()).find((each) => each.id === id)
  return { service, admin, addKey, balance, key }
}

const codeOf = async (service: TestService, body: unknown, asking: Asking) => {
  const answer = await ask(service, 'POST', RUNS, body, asking)
  return [answer.status, answer.body.error?.code ?? 'created']
}

test('checks a create in a fixed order', async () => {
  const { service, admin, addKey } = await createPaidService(0)
  const { apiKey, key } = await addKey({
    disabled: true,
    allowedIps: ['10.0.0.0/8'],
    spendLimit: 0,
    quota: 0,
  })
  const id = String(key.id)
  const next = (body: unknown = FOX) => codeOf(service, body, { key: apiKey })

  await admin.setBanned('acme', true)
  expect(await next('{')).toEqual([401, 'invalid_api_key'])
  await admin.changeKey(id, { disabled: false })
  expect(await next('{')).toEqual([403, 'account_banned'])
  await admin.setBanned('acme', false)
  expect(await next('{')).toEqual([403, 'ip_not_allowed'])
  await admin.changeKey(id, { allowedIps: undefined })
  // Only now does a request count against the rate.
  for (let n = 0; n < 20; n++) expect(await next('{')).toEqual([400, 'invalid_json'])
  expect(await next()).toEqual([429, 'RATE_LIMITED'])
  await service.clock.advance(10_000)
  expect(await next({ ...FOX, model: 'acme/none' })).toEqual([400, 'model_not_found'])
  expect(await next()).toEqual([403, 'api_key_spend_limit_exceeded'])
  await admin.changeKey(id, { spendLimit: undefined })
  expect(await next()).toEqual([429, 'USAGE_EXCEEDED'])
  await admin.changeKey(id, { quota: undefined })
  expect(await next()).toEqual([402, 'insufficient_balance'])
  await admin.addCredits('acme', 1)
  expect(await next()).toEqual([201, 'created'])
  expect(await next()).toEqual([402, 'insufficient_balance'])
  expect(service.complaints).toEqual([])
})

test('a status request is refused for its key, a ban or its address, but never for credits', async () => {
  const { service, admin, addKey } = await createPaidService(1)
  const { apiKey, key } = await addKey({ quota: 1, spendLimit: 1 })
  const id = await created(service, FOX, { key: apiKey })
  const look = async () => {
    const { error, status } = await runOf(service, id, { key: apiKey })
    return error?.code ?? status
  }
  expect(await look()).toMatch(/queued|processing|succeeded/)
  await admin.setBanned('acme', true)
  expect(await look()).toBe('account_banned')
  expect((await runOf(service, id)).error.code).toBe('run_not_found')
  await admin.setBanned('acme', false)
  await admin.changeKey(String(key.id), { allowedIps: ['192.0.2.1'] })
  expect(await look()).toBe('ip_not_allowed')
  await admin.changeKey(String(key.id), { allowedIps: ['127.0.0.1'] })
  expect(await look()).toMatch(/queued|processing|succeeded/)
})

test('a run costs the price of its input, and is refunded when it fails', async () => {
  const engine = createCommandedEngine()
  const { service, addKey, balance, key } = await createPaidService(100, { engine })
  const { apiKey, key: made } = await addKey({ spendLimit: 30 })
  const asking = { key: apiKey }
  const id = await created(service, FILM, asking)
  expect(await balance()).toBe(80)
  // Spent plus price would be 40.
  expect(await codeOf(service, FILM, asking)).toEqual([403, 'api_key_spend_limit_exceeded'])
  while (engine.waiting === 0) await service.clock.advance(10)
  engine.fail(new Error('no'))
  expect((await ended(service, id, asking)).status).toBe('failed')
  expect(await balance()).toBe(100)
  expect(await key(made.id)).toMatchObject({ spent: 0, used: 1 })
  expect(await codeOf(service, FILM, asking)).toEqual([201, 'created'])
})

test('a balance has room for the refunds of its runs', async () => {
  const most = (Number.MAX_SAFE_INTEGER - 1) / 2
  const engine = createCommandedEngine()
  const { service, admin, addKey, balance } = await createPaidService(most, { engine })
  const { apiKey } = await addKey()
  const id = await created(service, FOX, { key: apiKey })
  while (engine.waiting === 0) await service.clock.advance(10)
  await admin.addCredits('acme', 1)
  engine.fail(new Error('no'))
  expect((await ended(service, id, { key: apiKey })).status).toBe('failed')
  expect(await balance()).toBe(most + 1)
  await expect(admin.addCredits('acme', 1)).rejects.toThrow('would be too large')
})

test('the allowed IP addresses of a key check the client address, and trusts only configured proxies', async () => {
  const from = (address: string) => ({ headers: { 'x-forwarded-for': address } })
  const behind = async (trustedProxies: readonly string[] | undefined) => {
    const { service, addKey } = await createPaidService(10, { trustedProxies })
    const { apiKey } = await addKey({ allowedIps: ['203.0.113.0/24'] })
    return async (address: string) => (await codeOf(service, FOX, { key: apiKey, ...from(address) }))[1]
  }
  for (const proxies of [undefined, ['10.0.0.1']])
    expect(await (await behind(proxies))('203.0.113.7')).toBe('ip_not_allowed')
  // In process a request comes from 127.0.0.1.
  const outcome = await behind(['127.0.0.0/8', '10.0.0.0/8'])
  for (const address of ['203.0.113.7', '203.0.113.7, 10.1.1.1'])
    expect(await outcome(address)).toBe('created')
  for (const address of ['203.0.113.7, 198.51.100.1', 'nonsense', ''])
    expect(await outcome(address)).toBe('ip_not_allowed')
})

test('runs of the in-memory key are free, even for a banned account without a balance', async () => {
  const service = await createTestService({ ephemeralKey: true, engine: createInstantEngine() })
  const admin = await administer(service)
  await admin.addCredits('default', -10_000)
  await admin.setBanned('default', true)
  expect((await finished(service, FILM)).status).toBe('succeeded')
  expect(await admin.verify()).toMatchObject({ problems: [], credits: 0 })
})

test.each([
  ['whose key is disabled', 401, 'invalid_api_key'],
  ['whose account is banned', 403, 'account_banned'],
])('a create %s while its body arrives is refused and not charged', async (_what, status, code) => {
  const service = await createTestService({ port: 0 })
  const admin = await administer(service)
  await admin.createAccount('acme', 5)
  const { apiKey, key } = await admin.createKey('acme', {})
  const body = JSON.stringify(FOX)
  const creating = request(new URL(RUNS, service.baseUrl), {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-length': body.length, expect: '100-continue' },
  })
  const answered = once(creating, 'response')
  creating.flushHeaders()
  // The key and the account have been checked when the service asks for the body.
  await once(creating, 'continue')
  if (status === 401) await admin.changeKey(String(key.id), { disabled: true })
  else await admin.setBanned('acme', true)
  creating.end(body)
  const [answer] = (await answered) as [IncomingMessage]
  const text = (await answer.toArray()).join('')
  expect([answer.statusCode, JSON.parse(text).error.code]).toEqual([status, code])
  expect((await admin.accounts()).find(({ name }) => name === 'acme')).toMatchObject({ balance: 5, runs: 0 })
})

test('a create with an Idempotency-Key is charged once, even if it is sent repeatedly', async () => {
  const { service, addKey, balance } = await createPaidService(10)
  const { apiKey: key } = await addKey()
  const send = (body: unknown, idempotencyKey: string) =>
    ask(service, 'POST', RUNS, body, { key, headers: { 'idempotency-key': idempotencyKey } })
  const image_urls = [`data:image/png;base64,${Buffer.from('one').toString('base64')}`]
  const body = { ...FOX, input: { ...FOX.input, image_urls } }

  const first = await send(body, 'draft-1')
  expect(first.status).toBe(201)
  const { id } = first.body
  await ended(service, id, { key })
  const again = await send(body, 'draft-1')
  expect(again.status).toBe(201)
  // The run as it is now.
  expect(again.body).toMatchObject({ id, status: 'succeeded' })
  expect(await balance()).toBe(9)
  const other = await send(FOX, 'draft-1')
  expect([other.status, other.body.error]).toEqual([
    400,
    {
      code: 'invalid_input',
      message:
        'This Idempotency-Key was used for another request in the last 24 hours. Use a new key for each request.',
    },
  ])
  for (const bad of ['', 'a b', 'a'.repeat(256)])
    expect((await send(FOX, bad)).body.error, bad).toMatchObject({ code: 'invalid_input' })
  expect((await send(FOX, 'a'.repeat(255))).status).toBe(201)
})

test('an Idempotency-Key is remembered for 24 hours', async () => {
  const service = await createTestService({ rendering: false })
  const send = () => created(service, FOX, { headers: { 'idempotency-key': 'k' } })
  const id = await send()
  await service.clock.advance(24 * 3_600_000 - 1)
  expect(await send()).toBe(id)
  await service.clock.advance(1)
  expect(await send()).not.toBe(id)
})
