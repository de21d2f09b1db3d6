/** The endpoints of keys and sessions. */
import { beforeAll, describe, expect, test } from 'vitest'
import { AUTH_PATHS, CONSOLE_PATHS } from '../../../src/protocol/console.js'
import {
  ANN,
  addSession,
  type Browser,
  createBrowser,
  createConsoleService,
  createUser,
  FOX,
  PASSWORD,
  pathOf,
  refusal,
  signInByLink,
  withStore,
} from '../../support/console.js'
import { ask } from '../../support/service.js'

const list = async (browser: Browser) => (await browser.get(CONSOLE_PATHS.keys)).body.keys
const change = (browser: Browser, id: number, body: unknown) =>
  browser.ask('PATCH', pathOf(CONSOLE_PATHS.key, id), body)

describe('an API key', () => {
  test('can be created, shown once, used, changed and disabled', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const made = await browser.post(CONSOLE_PATHS.keys, {
      name: 'laptop',
      spend_limit: 100,
      quota: 3,
      allowed_ips: ['127.0.0.1', '2001:db8::/32'],
      expires_at: '2026-02-01T00:00:00+01:00',
    })
    const { api_key: first, key } = made.body
    expect([made.status, first]).toEqual([201, expect.stringMatching(/^rk_[\w-]{43}$/)])
    expect(key).toEqual({
      id: expect.any(Number),
      name: 'laptop',
      prefix: first.slice(0, 9),
      disabled: false,
      spent: 0,
      spend_limit: 100,
      used: 0,
      quota: 3,
      allowed_ips: ['127.0.0.1', '2001:db8::/32'],
      expires_at: '2026-01-31T23:00:00.000Z',
      rate: null,
      created_at: '2026-01-01T00:00:00.000Z',
      last_used_at: null,
    })
    const use = async (apiKey: string) =>
      (await ask(service, 'POST', '/api/v1/runs', FOX, { key: apiKey })).status
    await service.clock.advance(90_000)
    expect(await use(first)).toBe(201)
    const listed = async () => (await list(browser))[0]
    await expect.poll(listed).toMatchObject({ spent: 1, used: 1, last_used_at: '2026-01-01T00:01:00.000Z' })
    expect(JSON.stringify(await listed())).not.toContain(first.slice(9))

    const changed = async (body: object) => (await change(browser, key.id, body)).body
    const disabled = { disabled: true, name: 'old laptop' }
    expect(await changed(disabled)).toMatchObject({ ...disabled, quota: 3 })
    expect(await use(first)).toBe(401)
    const open = { disabled: false, quota: null, allowed_ips: null, expires_at: null }
    expect(await changed(open)).toMatchObject({ ...open, spend_limit: 100 })
    expect((await changed({})).name).toBe('old laptop')
  })
})

describe('the list of keys', () => {
  test('comes in pages of 100, with at most 200 active keys', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    await withStore(service, async (store) => {
      const key = { accountId: 1, prefix: 'rk_', nowMs: 0 }
      for (let n = 2; n <= 200; n++) await store.addKey({ ...key, hash: `h${n}`, name: `key ${n}` })
    })
    const page = async (before: string) => (await browser.get(`${CONSOLE_PATHS.keys}?before=${before}`)).body
    const first = await page('')
    const second = await page(first.next)
    const names = [...first.keys, ...second.keys].map(({ name }: { name: string }) => name)
    expect([first.keys.length, second.keys.length, second.next]).toEqual([100, 100, null])
    expect([names[0], names[99], names[100], new Set(names).size]).toEqual([
      'key 200',
      'key 101',
      'key 100',
      200,
    ])

    const refused = refusal(409, 'too_many_keys')
    expect(await browser.post(CONSOLE_PATHS.keys, { name: 'one more' })).toMatchObject(refused)
    const { id } = first.keys[0]
    expect((await change(browser, id, { disabled: true })).status).toBe(200)
    expect((await browser.post(CONSOLE_PATHS.keys, { name: 'in its place' })).status).toBe(201)
    const enabled = await change(browser, id, { disabled: false })
    expect(enabled).toMatchObject(refused)
    expect(enabled.body.error.message).toMatch(/has 200 active API keys.*Disable one/)
  })
})

describe('an invalid key', () => {
  let browser: Browser
  beforeAll(async () => {
    browser = await signInByLink(await createConsoleService())
  })

  test.each<[name: string, body: unknown, says: RegExp]>([
    ['no name', {}, /name is missing/],
    ['an empty name', { name: '' }, /name must have 1 to 100/],
    ['a long name', { name: 'x'.repeat(101) }, /name must have/],
    ['a name of spaces', { name: '  ' }, /name must have/],
    ['a line end in the name', { name: 'a\nb' }, /name must have/],
    ['a name that reverses the text', { name: 'a\u202eb' }, /without invisible characters/],
    ['a name with a space of no width', { name: 'c\u200bi' }, /without invisible characters/],
    ['a rate', { name: 'x', rate: '100/10s' }, /rate cannot be set here/],
    ['a limit as text', { name: 'x', spend_limit: '5' }, /spend_limit must be integer,null/],
    ['a negative limit', { name: 'x', quota: -1 }, /quota must be >= 0/],
    ['a fraction', { name: 'x', quota: 1.5 }, /quota must be integer,null/],
    ['no addresses', { name: 'x', allowed_ips: [] }, /allowed_ips must not have fewer than 1/],
    [
      'an address that is none',
      { name: 'x', allowed_ips: ['10.0.0.0/33'] },
      /"10.0.0.0\/33" is not an IP address/,
    ],
    ['a time without a zone', { name: 'x', expires_at: '2026-01-31T12:00:00' }, /is not a time/],
    ['a month that does not exist', { name: 'x', expires_at: '2026-13-31T12:00:00Z' }, /is not a time/],
    ['a day that does not exist', { name: 'x', expires_at: '2026-02-30T00:00Z' }, /is not a time/],
    ['a day of leap years', { name: 'x', expires_at: '2027-02-29T00:00Z' }, /is not a time/],
    ['the hour 24', { name: 'x', expires_at: '2026-02-01T24:00Z' }, /is not a time/],
    ['the minute 60', { name: 'x', expires_at: '2026-02-01T12:60Z' }, /is not a time/],
    ['an offset of 24 hours', { name: 'x', expires_at: '2026-02-01T12:00+24:00' }, /is not a time/],
    ['a time in the past', { name: 'x', expires_at: '2025-12-31T23:59:59Z' }, /is in the past/],
    ['a time after the year 9999', { name: 'x', expires_at: '9999-12-31T23:59:59-01:00' }, /is not a time/],
    ['this moment', { name: 'x', expires_at: '2026-01-01T01:00+01:00' }, /is in the past.* disable it/],
    ['a flag as text', { name: 'x', disabled: 'no' }, /disabled must be boolean/],
  ])('with %s is refused', async (_name, body, says) => {
    const [{ id }] = await list(browser)
    const answers = [await browser.post(CONSOLE_PATHS.keys, body)]
    if (Object.keys(body as object).length > 0) answers.push(await change(browser, id, body))
    for (const answer of answers) {
      expect(answer).toMatchObject(refusal(400, 'invalid_input'))
      expect(answer.body.error.message).toMatch(says)
    }
    expect(await list(browser)).toHaveLength(1)
  })
})

describe('an existing key', () => {
  test('keeps an invalid name and a past expiry when another field changes', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const [{ id }] = await list(browser)
    await withStore(service, (store) => store.changeKey(id, { name: 'c\u200bi', expiresAtMs: 1 }))
    expect(await change(browser, id, { quota: 5 })).toMatchObject({
      status: 200,
      body: { name: 'c\u200bi', quota: 5, expires_at: '1970-01-01T00:00:00.001Z' },
    })
  })

  test('answers 404 for an id that is not a known number', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    for (const id of ['x', '0', '-1', '1.5', '999', '9'.repeat(30), '%00', 'constructor']) {
      expect((await browser.ask('PATCH', pathOf(CONSOLE_PATHS.key, id), {})).status).toBe(404)
      expect((await browser.ask('DELETE', pathOf(CONSOLE_PATHS.session, id), {})).status).toBe(404)
    }
  })
})

describe('sessions', () => {
  test('appear with address and browser, and can be ended one by one', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const other = createBrowser(service)
    await service.clock.advance(1_000)
    await addSession(service, ANN, 'h')
    const sessions = async () => (await browser.get(CONSOLE_PATHS.sessions)).body.sessions
    const end = async ({ id }: { id: string }) =>
      (await browser.ask('DELETE', pathOf(CONSOLE_PATHS.session, id))).status
    const [second, first] = await sessions()
    const createdAt = '2026-01-01T00:00:00.000Z'
    expect(first).toMatchObject({ current: true, address: browser.address, created_at: createdAt })
    expect(second).toMatchObject({ current: false, address: null, user_agent: null })
    expect(await end(second)).toBe(204)
    expect(await sessions()).toHaveLength(1)
    expect(await end(second)).toBe(404)
    expect([await end(first), browser.cookie]).toEqual([204, undefined])
    expect((await other.get(AUTH_PATHS.session)).status).toBe(401)
  })

  test('show at most 300 characters of the name of the browser', async () => {
    const service = await createConsoleService()
    const browser = await createUser(service)
    const odd = `Fox\u202e<b>${'x'.repeat(400)}`
    const headers = { 'user-agent': Buffer.from(odd).toString('latin1') }
    await createBrowser(service).ask('POST', AUTH_PATHS.signIn, { email: ANN, password: PASSWORD }, headers)
    const { sessions } = (await browser.get(CONSOLE_PATHS.sessions)).body
    const agents = sessions.map((each: { user_agent: string | null }) => each.user_agent ?? '')
    expect(agents.find((each: string) => each.startsWith('Fox'))).toHaveLength(300)
  })
})
