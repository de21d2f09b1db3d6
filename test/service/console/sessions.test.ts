/** Signing in (docs/console.md): sessions and their cookies, over the real service. */
import { describe, expect, test } from 'vitest'
import { AUTH_PATHS, CONSOLE_PATHS, SESSION_HEADER } from '../../../src/protocol/console.js'
import {
  ANN,
  addUser,
  createBrowser,
  createConsoleService,
  createUser,
  FOX,
  PASSWORD,
  refusal,
  setBanned,
  signInByLink,
} from '../../support/console.js'
import { createInstantEngine } from '../../support/engines.js'

const DAY_MS = 86_400_000

describe('a session', () => {
  test('expires 7 days after its last use, and is extended with its cookie at most once a minute', async () => {
    const service = await createConsoleService()
    const browser = await createUser(service)
    const check = () => browser.get(AUTH_PATHS.session)
    const cookieOf = async () => (await check()).header('set-cookie')
    expect(await cookieOf()).toBeUndefined()
    await service.clock.advance(59_999)
    expect(await cookieOf()).toBeUndefined()
    await service.clock.advance(1)
    expect(await cookieOf()).toContain('Max-Age=604800')
    expect(await cookieOf()).toBeUndefined()
    for (let day = 0; day < 20; day++) {
      await service.clock.advance(DAY_MS)
      expect((await check()).status).toBe(200)
    }
    await service.clock.advance(7 * DAY_MS - 1)
    expect((await check()).status).toBe(200)
    await service.clock.advance(7 * DAY_MS)
    expect(await check()).toMatchObject(refusal(401, 'not_signed_in'))
  })

  test('gets at most two new cookies from ten concurrent requests', async () => {
    const service = await createConsoleService()
    const browser = await createUser(service)
    await service.clock.advance(60_000)
    const answers = await Promise.all(Array.from({ length: 10 }, () => browser.get(CONSOLE_PATHS.sessions)))
    const cookies = answers.map(({ header }) => header('set-cookie'))
    expect(cookies.filter((each) => each !== undefined).length).toBeLessThanOrEqual(2)
  })

  test('always gets a new token, and a token from before the sign-in never works', async () => {
    const service = await createConsoleService()
    const browser = await createUser(service)
    const before = browser.cookie
    for (const planted of [before, 'planted', 'a'.repeat(43)]) {
      browser.cookie = planted
      const { status } = await browser.post(AUTH_PATHS.signIn, { email: ANN, password: PASSWORD })
      expect(status).toBe(200)
      expect(browser.cookie).toMatch(/^[\w-]{43}$/)
      expect(browser.cookie).not.toBe(planted)
      const other = createBrowser(service)
      other.cookie = planted
      expect((await other.get(AUTH_PATHS.session)).status).toBe(401)
    }
    const token = await addUser(service, ANN)
    const [old] = [browser.cookie]
    await service.clock.advance(60_000)
    await browser.post(AUTH_PATHS.link, { token })
    const other = createBrowser(service)
    other.cookie = old
    expect((await other.get(AUTH_PATHS.session)).status).toBe(401)
  })

  test('ends with a sign-out, or with a sign-out everywhere', async () => {
    const service = await createConsoleService()
    const browsers = [await createUser(service), createBrowser(service), createBrowser(service)] as const
    for (const each of browsers.slice(1))
      await each.post(AUTH_PATHS.signIn, { email: ANN, password: PASSWORD })
    const [one, two, three] = browsers
    const tokens = browsers.map(({ cookie }) => cookie)
    const states = async () => {
      const seen = []
      for (const cookie of tokens) {
        const browser = createBrowser(service)
        browser.cookie = cookie
        seen.push((await browser.get(AUTH_PATHS.session)).status)
      }
      return seen
    }
    expect(await states()).toEqual([200, 200, 200])
    const out = await one.post(AUTH_PATHS.signOut)
    expect([out.status, one.cookie]).toEqual([204, undefined])
    expect(out.header('set-cookie')).toMatch(/^rushes_session=; .*Path=\/.*HttpOnly; SameSite=Strict$/)
    expect(await states()).toEqual([401, 200, 200])
    expect((await one.post(AUTH_PATHS.signOut)).status).toBe(401)
    await service.clock.advance(60_000)
    expect((await two.post(AUTH_PATHS.signOut, { everywhere: true })).status).toBe(204)
    expect(await states()).toEqual([401, 401, 401])
    expect((await three.get(AUTH_PATHS.session)).status).toBe(401)
  })

  test('can read but not create when its account is banned', async () => {
    const service = await createConsoleService({ rendering: true, engine: createInstantEngine() })
    const browser = await createUser(service)
    const key = await browser.post(CONSOLE_PATHS.keys, { name: 'laptop' })
    await setBanned(service)
    expect((await browser.get(AUTH_PATHS.session)).body.account).toMatchObject({ banned: true })
    const again = await createBrowser(service).post(AUTH_PATHS.signIn, { email: ANN, password: PASSWORD })
    expect([again.status, again.body.account.banned]).toEqual([200, true])
    expect((await browser.get(CONSOLE_PATHS.runs)).status).toBe(200)
    const path = `${CONSOLE_PATHS.keys}/${key.body.key.id}`
    for (const [each, body] of [
      [CONSOLE_PATHS.runs, FOX],
      [CONSOLE_PATHS.keys, { name: 'another' }],
    ] as const)
      expect(await browser.post(each, body)).toMatchObject(refusal(403, 'account_banned'))
    expect((await browser.ask('PATCH', path, { disabled: true })).status).toBe(200)
  })
})

describe('the cookie', () => {
  const FLAGS = 'Max-Age=604800; Path=/; HttpOnly'
  const STRICT = `${FLAGS}; SameSite=Strict`
  const SECURE = `${FLAGS}; Secure; SameSite=Strict`
  const LOOPBACK = '127.0.0.1:7878'
  const PUBLIC = 'https://runs.example'
  const forwarded = (proto: string) => ({ 'x-forwarded-proto': proto, 'x-forwarded-host': 'runs.example' })

  test.each<[name: string, headers: { host: string; origin: string }, ends: string, options?: object]>([
    ['loopback', { host: LOOPBACK, origin: `http://${LOOPBACK}` }, STRICT],
    ['localhost', { host: 'localhost:7878', origin: 'http://localhost:7878' }, STRICT],
    ['a TLS proxy that says so', { host: 'x', origin: PUBLIC, ...forwarded('https') }, SECURE],
    [
      'a TLS proxy that passes the host',
      { host: 'runs.example', origin: PUBLIC },
      SECURE,
      { publicUrl: PUBLIC },
    ],
    [
      'a TLS proxy with its own host',
      { host: LOOPBACK, origin: PUBLIC },
      SECURE,
      { publicUrl: `${PUBLIC}/prefix` },
    ],
    [
      'a proxy that is not trusted',
      { host: 'runs.example', origin: PUBLIC, ...forwarded('https') },
      'foreign_origin',
      { trustedProxies: [] },
    ],
    ['plain HTTP from elsewhere', { host: '10.0.0.7', origin: 'http://10.0.0.7' }, 'https_required'],
    [
      'plain HTTP at the proxy',
      { host: 'x', origin: 'http://runs.example', ...forwarded('http') },
      'https_required',
    ],
  ])('has the right flags or is refused behind %s', async (_name, headers, ends, options) => {
    const service = await createConsoleService({ publicUrl: undefined, ...options })
    const token = await addUser(service, ANN)
    const answer = await createBrowser(service).ask('POST', AUTH_PATHS.link, { token }, headers)
    expect(answer.header('set-cookie') ?? answer.body.error.code).toMatch(new RegExp(`(^|; )${ends}$`))
  })

  test('keeps its flags when it is renewed behind a TLS proxy', async () => {
    const service = await createConsoleService({ publicUrl: 'https://runs.example' })
    const browser = await signInByLink(service)
    await service.clock.advance(60_000)
    const renewed = await browser.ask('GET', AUTH_PATHS.session, undefined, { host: '127.0.0.1:7878' })
    expect(renewed.header('set-cookie')).toMatch(/Secure; SameSite=Strict$/)
  })

  test('never comes from a sign-in with a password over plain HTTP', async () => {
    const service = await createConsoleService({ publicUrl: undefined })
    const headers = { host: '10.0.0.7', origin: 'http://10.0.0.7' }
    const body = { email: ANN, password: PASSWORD }
    expect(await createBrowser(service).ask('POST', AUTH_PATHS.signIn, body, headers)).toMatchObject(
      refusal(403, 'https_required'),
    )
  })
})

describe('a page that shows a session', () => {
  test('gets 409 without any effect when the cookie belongs to another session', async () => {
    const service = await createConsoleService()
    const browser = await createUser(service)
    const { body: shown } = await browser.get(AUTH_PATHS.session)
    const password = { email: 'bob@example.com', password: PASSWORD }
    await createUser(service, 'bob@example.com', 'acme')
    expect((await browser.post(AUTH_PATHS.signIn, password)).status).toBe(200)
    const { body: current } = await browser.get(AUTH_PATHS.session)
    expect(current.id).not.toBe(shown.id)

    const key = { name: 'laptop' }
    const link = { token: await addUser(service, ANN) }
    const ask = (method: 'GET' | 'POST', path: string, body: unknown, id: string) =>
      browser.ask(method, path, body, { [SESSION_HEADER]: id })
    for (const [method, path, body] of [
      ['GET', CONSOLE_PATHS.runs, undefined],
      ['GET', CONSOLE_PATHS.csv, undefined],
      ['POST', CONSOLE_PATHS.keys, key],
      ['POST', CONSOLE_PATHS.runs, FOX],
      ['POST', AUTH_PATHS.password, { current: PASSWORD, password: 'another long password' }],
      ['POST', AUTH_PATHS.link, link],
      ['POST', AUTH_PATHS.signIn, password],
      ['POST', AUTH_PATHS.signOut, {}],
    ] as const)
      expect(await ask(method, path, body, shown.id), path).toMatchObject(refusal(409, 'session_changed'))
    expect((await browser.get(CONSOLE_PATHS.keys)).body.keys).toEqual([])
    expect((await browser.get(CONSOLE_PATHS.runs)).body.runs).toEqual([])

    // With the right id, and without one, as curl sends it.
    expect((await ask('POST', CONSOLE_PATHS.keys, key, current.id)).status).toBe(201)
    expect((await browser.post(CONSOLE_PATHS.keys, key)).status).toBe(201)
    await service.clock.advance(60_000)
    expect((await createBrowser(service).post(AUTH_PATHS.link, link)).status).toBe(200)
  })

  test('gets 401 after the session has ended, and can sign in again', async () => {
    const service = await createConsoleService()
    const browser = await createUser(service)
    const { body: shown } = await browser.get(AUTH_PATHS.session)
    expect(JSON.stringify(shown)).not.toContain(browser.cookie)
    await browser.post(AUTH_PATHS.signOut)
    const headers = { [SESSION_HEADER]: shown.id }
    expect(await browser.ask('GET', CONSOLE_PATHS.keys, undefined, headers)).toMatchObject(
      refusal(401, 'not_signed_in'),
    )
    const again = await browser.ask('POST', AUTH_PATHS.signIn, { email: ANN, password: PASSWORD }, headers)
    expect(again.status).toBe(200)
    expect(again.body.id).not.toBe(shown.id)
  })

  test('keeps the session id when the session is extended or the password is set', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const idOf = async () => (await browser.get(AUTH_PATHS.session)).body.id
    const id = await idOf()
    await service.clock.advance(60_000)
    expect(await idOf()).toBe(id)
    expect((await browser.post(AUTH_PATHS.password, { password: PASSWORD })).body.id).toBe(id)
    expect(await idOf()).toBe(id)
  })
})
