/** Signing in (docs/console.md): the first start, links, passwords, sessions, their cookies and their limits. */
import { describe, expect, test } from 'vitest'
import { createPasswords, type Passwords } from '../../../src/service/rules/credentials.js'
import {
  ANN,
  AUTH_PATHS,
  addUser,
  type Browser,
  CONSOLE_URL,
  createBrowser,
  createConsoleService,
  hiddenField,
  leadsTo,
  signedIn,
  signInByLink,
  wordsOf,
} from '../../support/console.js'
import type { TestServiceOptions } from '../../support/index.js'
import { createQuickPasswords } from '../../support/passwords.js'
import { storedText } from '../../support/test-database.js'

const DAY_MS = 86_400_000
const PASSWORD = 'correct horse battery staple'

/** Expected form of an error response, for `toMatchObject`. */
const refusal = (status: number, code: string) => ({ status, body: { error: { code } } })

/** A user with a password, whose link has begun a session. */
async function createUser(options?: TestServiceOptions) {
  const { service, browser } = await signedIn(options)
  await browser.post(AUTH_PATHS.password, { password: PASSWORD })
  return { service, browser }
}

const signIn = async (browser: Browser, email: string, password = 'x'.repeat(12)) => {
  const { status, body } = await browser.post(AUTH_PATHS.signIn, { email, password })
  return status === 429 ? body.error.code : status
}

const repeated = async <Answer>(count: number, work: (at: number) => Promise<Answer>): Promise<Answer[]> => {
  const answers: Answer[] = []
  for (let at = 0; at < count; at++) answers.push(await work(at))
  return answers
}

describe('the first start', () => {
  test('creates a user, whose link works once and lets a password be set', async () => {
    const service = await createConsoleService()
    const { linkToken = '' } = service.service.console ?? {}
    const browser = createBrowser(service)
    // The link itself signs nobody in: a program that previews links would use it up.
    const page = await browser.get(`/link/${linkToken}`)
    expect([page.status, browser.cookie]).toEqual([200, undefined])
    const entered = await browser.submit(AUTH_PATHS.link, { token: hiddenField(page, 'token') })
    expect(leadsTo(entered)).toBe('/account')
    expect(await browser.words('/account')).toContain('Set a password')
    const set = await browser.submit(AUTH_PATHS.password, { password: PASSWORD })
    expect(leadsTo(set)).toBe('/account?done=password')
    const again = await createBrowser(service).post(AUTH_PATHS.link, { token: linkToken })
    expect(again).toMatchObject(refusal(401, 'invalid_link'))
    const used = await createBrowser(service).submit(AUTH_PATHS.link, { token: linkToken })
    expect(wordsOf(used)).toMatch(
      /was used before, or has expired\..* admin user link <email> prints another/,
    )
    expect(used.body).not.toContain('<form')
    const answer = await createBrowser(service).post(AUTH_PATHS.signIn, {
      email: ' Owner@LOCALHOST ',
      password: PASSWORD,
    })
    expect(answer).toMatchObject({
      status: 200,
      body: {
        email: 'owner@localhost',
        account: { name: 'default', balance: 10_000, banned: false },
        can_set_password: false,
        has_password: true,
        expires_at: '2026-01-08T00:00:00.000Z',
      },
    })
  })

  test('with a console creates the only link, and one before it has no page; a later start creates none, even without users', async () => {
    const first = await createConsoleService({ console: undefined })
    const { dataFolder, clock } = first
    expect(first.service.console).toBeUndefined()
    expect((await createBrowser(first).get('/')).status).toBe(404)
    await clock.runUntil(first.service.close())
    const second = await createConsoleService({ dataFolder, clock })
    expect(second.service.console).toEqual({ linkToken: undefined })
    await addUser(second, ANN)
    await clock.runUntil(second.service.close())
    const third = await createConsoleService({ dataFolder, clock })
    expect(third.service.console).toEqual({ linkToken: undefined })
  })
})

describe('a form', () => {
  test('of sign-in shows itself again after a wrong password, and leads to the runs', async () => {
    const { service } = await createUser()
    const browser = createBrowser(service)
    expect(leadsTo(await browser.get('/runs/run_1?x=1'))).toBe('/sign-in')
    const wrong = await browser.submit(AUTH_PATHS.signIn, { email: ANN, password: 'x' })
    expect([wrong.status, wordsOf(wrong)]).toEqual([
      401,
      expect.stringContaining('The email or the password is not correct.'),
    ])
    expect(wrong.body).toContain(`value="${ANN}"`)
    const right = { email: ANN, password: PASSWORD, next: 'https://evil.example/' }
    expect(leadsTo(await browser.submit(AUTH_PATHS.signIn, right))).toBe('/runs')
  })

  test.each([
    ['application/x-www-form-urlencoded', 'x=1&'],
    ['multipart/form-data; boundary=edge', '--edge\r\nContent-Disposition: form-data; name="x"\r\n\r\n1\r\n'],
  ])('of type %s with more fields than any page has is refused before it is parsed', async (type, field) => {
    const { browser } = await signedIn()
    const sent = await browser.ask('POST', '/new/price', field.repeat(1_001), { 'content-type': type })
    expect([sent.status, wordsOf(sent)]).toEqual([400, expect.stringContaining('more than 1000 fields')])
  })
})

describe('a password', () => {
  test('that is wrong gets the same refusal after the same work, for a known email, an unknown one and an invalid one', async () => {
    const derived: number[] = []
    const passwords = createPasswords(async (_password, salt) => {
      derived.push(salt.byteLength)
      return new Uint8Array(32)
    })
    const { service } = await createUser({ passwords })
    await addUser(service, 'new@example.com')
    const refusals = []
    for (const email of [ANN, 'new@example.com', 'nobody@example.com', 'x', `${ANN}\0`]) {
      derived.length = 0
      const { status, body } = await createBrowser(service).post(AUTH_PATHS.signIn, { email, password: '\0' })
      refusals.push({ status, body, derived: [...derived] })
    }
    const [first] = refusals
    expect(first).toMatchObject({ ...refusal(401, 'invalid_credentials'), derived: [16] })
    expect(refusals).toEqual(refusals.map(() => first))
  })

  test.each([
    ['no JSON', '{', /not valid JSON/, 400, 'invalid_json'],
    ['nothing', undefined, /email is missing/],
    ['a number', { email: ANN, password: 123456789012 }, /password must be text/],
    ['a large body', { email: ANN, password: 'x'.repeat(70_000) }, /65536/, 413, 'payload_too_large'],
  ])('is refused in a body with %s', async (_name, body, says, status = 400, code = 'invalid_input') => {
    const service = await createConsoleService()
    const answer = await createBrowser(service).post(AUTH_PATHS.signIn, body)
    expect(answer).toMatchObject(refusal(status, code))
    expect(answer.body.error.message).toMatch(says)
    expect(answer.header('cache-control')).toBe('no-store')
    expect(service.complaints).toEqual([])
  })

  test('can be changed with the current one, which ends the other sessions', async () => {
    const { service, browser } = await createUser()
    const other = createBrowser(service)
    expect(await signIn(other, ANN, PASSWORD)).toBe(200)
    const change = (body: object) => browser.post(AUTH_PATHS.password, body)
    const password = 'another long password'
    expect(await change({ password })).toMatchObject(refusal(400, 'invalid_input'))
    expect(await change({ password, current: 'x' })).toMatchObject(refusal(401, 'invalid_credentials'))
    expect((await other.get(AUTH_PATHS.session)).status).toBe(200)
    expect((await change({ password, current: PASSWORD })).status).toBe(200)
    expect(await other.get(AUTH_PATHS.session)).toMatchObject(refusal(401, 'not_signed_in'))
    expect((await browser.get(AUTH_PATHS.session)).status).toBe(200)
    await service.clock.advance(60_000)
    expect(await signIn(createBrowser(service), ANN, PASSWORD)).toBe(401)
    expect(await signIn(createBrowser(service), ANN, password)).toBe(200)
  })

  test('lets no sign-in with the old password succeed while it is changed', async () => {
    const passwords = createQuickPasswords()
    let afterMatch: () => unknown = () => {}
    const matches: Passwords['matches'] = async (...args) => {
      const isRight = await passwords.matches(...args)
      await afterMatch()
      return isRight
    }
    const { service } = await createUser({ passwords: { ...passwords, matches } })
    const browser = await signInByLink(service)
    afterMatch = () => browser.post(AUTH_PATHS.password, { password: 'another long password' })
    expect(await signIn(createBrowser(service), ANN, PASSWORD)).toBe(401)
  })

  test('never appears in the database, and neither does a token or a link', async () => {
    const { service, browser } = await createUser()
    const token = await addUser(service, 'other@example.com')
    const text = await storedText(service)
    expect(text).toContain('scrypt$32768$8$1$')
    for (const secret of [PASSWORD, browser.cookie ?? '', token]) expect(text).not.toContain(secret)
  })
})

describe('a session', () => {
  test('expires 7 days after its last use, and is extended with its cookie at most once a minute', async () => {
    const { service, browser } = await createUser()
    const cookieOf = async () => (await browser.get('/keys')).header('set-cookie')
    expect(await cookieOf()).toBeUndefined()
    await service.clock.advance(60_000)
    expect(await cookieOf()).toContain('Max-Age=604800')
    expect(await cookieOf()).toBeUndefined()
    for (let day = 0; day < 10; day++) {
      await service.clock.advance(DAY_MS)
      expect((await browser.get('/keys')).status).toBe(200)
    }
    await service.clock.advance(7 * DAY_MS)
    expect((await browser.get('/keys')).status).toBe(303)
  })

  test('always gets a new token, and a token from before the sign-in never works', async () => {
    const { service, browser } = await createUser()
    for (const planted of [browser.cookie, 'planted', 'a'.repeat(43)]) {
      browser.cookie = planted
      expect(await signIn(browser, ANN, PASSWORD)).toBe(200)
      expect(browser.cookie).not.toBe(planted)
      const other = createBrowser(service)
      other.cookie = planted
      expect((await other.get(AUTH_PATHS.session)).status).toBe(401)
    }
  })

  test('ends with a sign-out, or with a sign-out everywhere, as a form and as JSON', async () => {
    const { service, browser: one } = await createUser()
    const [two, three] = [createBrowser(service), createBrowser(service)]
    const browsers = [one, two, three]
    for (const each of [two, three]) await signIn(each, ANN, PASSWORD)
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
    const out = await one.submit(AUTH_PATHS.signOut)
    expect([out.status, out.header('location'), one.cookie]).toEqual([303, '/sign-in', undefined])
    expect(out.header('set-cookie')).toMatch(/^rushes_session=; .*Path=\/.*HttpOnly; SameSite=Strict$/)
    expect(await states()).toEqual([401, 200, 200])
    expect((await one.post(AUTH_PATHS.signOut)).status).toBe(401)
    expect((await two.post(AUTH_PATHS.signOut, { everywhere: true })).status).toBe(204)
    expect(await states()).toEqual([401, 401, 401])
  })

  test('that ended makes a live part load the page again, and answers a form with a page that says so', async () => {
    const browser = createBrowser(await createConsoleService())
    const live = await browser.ask('GET', '/runs/live?at=x.y', undefined, { 'hx-request': 'true' })
    expect([live.status, live.header('hx-refresh'), live.body]).toEqual([401, 'true', ''])
    const sent = await browser.submit('/keys/new', { name: 'x' })
    expect([sent.status, wordsOf(sent)]).toEqual([401, expect.stringContaining('401 Unauthorized')])
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
    ['a TLS proxy that says so', { host: 'x', origin: PUBLIC, ...forwarded('https') }, SECURE],
    [
      'a proxy that is not trusted',
      { host: 'runs.example', origin: PUBLIC, ...forwarded('https') },
      'foreign_origin',
      { trustedProxies: [] },
    ],
    ['plain HTTP from elsewhere', { host: '10.0.0.7', origin: 'http://10.0.0.7' }, 'https_required'],
  ])('has the right flags or is refused behind %s', async (_name, headers, ends, options) => {
    const service = await createConsoleService({ publicUrl: undefined, ...options })
    const token = await addUser(service, ANN)
    const answer = await createBrowser(service).ask('POST', AUTH_PATHS.link, { token }, headers)
    const refused = /website/.test(String(answer.body)) ? 'foreign_origin' : answer.body.error?.code
    expect(answer.header('set-cookie') ?? refused).toMatch(new RegExp(`(^|; )${ends}$`))
  })
})

test('a change from another origin is refused at every route', async () => {
  const { browser } = await createUser()
  for (const path of [
    ...Object.values(AUTH_PATHS).filter((path) => path !== AUTH_PATHS.session),
    ...['/runs', '/new/form', '/new/price', '/runs/x/cancel'],
    ...['/keys/new', '/keys/1', '/keys/1/disable', '/keys/1/enable'],
  ]) {
    const headers = { origin: 'https://evil.example', 'content-type': 'application/x-www-form-urlencoded' }
    expect([path, (await browser.ask('POST', path, 'x=1', headers)).status]).toEqual([path, 403])
  }
  expect((await browser.get(AUTH_PATHS.session)).status).toBe(200)
})

test('a service below a path of its public URL prefixes every link of a page', async () => {
  const { service, browser } = await signedIn({ publicUrl: `${CONSOLE_URL}/media/` })
  const { body } = await browser.get('/runs')
  expect(body).toContain('href="/media/new"')
  expect(body).toContain('src="/media/assets/htmx.js?v=1"')
  expect(body).not.toMatch(/ (href|src|action|hx-get)="\/(?!media\/)/)
  expect((await createBrowser(service).get('/runs')).header('location')).toBe('/media/sign-in')
})

describe('the limits', () => {
  test('of an address are 5 requests in 60 s, over all emails and authentication endpoints', async () => {
    const { service } = await createUser()
    const token = await addUser(service, 'other@example.com')
    const browser = createBrowser(service, { address: '192.0.2.1' })
    expect(await signIn(browser, 'nobody@example.com')).toBe(401)
    await service.clock.advance(10_000)
    expect(await signIn(browser, ANN, PASSWORD)).toBe(200)
    expect((await browser.post(AUTH_PATHS.link, { token })).status).toBe(200)
    expect((await browser.post(AUTH_PATHS.signOut)).status).toBe(204)
    expect((await browser.post(AUTH_PATHS.link, { token: 'x' })).status).toBe(401)
    const limited = async () => [
      await signIn(browser, 'third@example.com'),
      (await browser.submit(AUTH_PATHS.link, { token: 'x' })).status,
      (await browser.post(AUTH_PATHS.password, { password: PASSWORD })).status,
    ]
    expect(await limited()).toEqual(['RATE_LIMITED', 429, 429])
    // None of these has counted: the first request is 60 s old in 50 s.
    await service.clock.advance(49_999)
    expect(await limited()).toEqual(['RATE_LIMITED', 429, 429])
    await service.clock.advance(1)
    expect(await signIn(browser, 'nobody@example.com')).toBe(401)
    expect((await limited()).at(-1)).toBe(429)
  })

  test('of an email are 5 attempts in 60 s, from any address and in any case', async () => {
    const { service, browser } = await createUser()
    await service.clock.advance(60_000)
    const attempt = () => signIn(createBrowser(service), ` ${ANN.toUpperCase()} `)
    expect(await repeated(6, attempt)).toEqual([401, 401, 401, 401, 401, 'RATE_LIMITED'])
    // Strangers cannot keep the user from changing the password and signing out.
    const change = { current: PASSWORD, password: 'another long password' }
    expect((await browser.post(AUTH_PATHS.password, change)).status).toBe(200)
    expect((await browser.post(AUTH_PATHS.signOut)).status).toBe(204)
  })

  test('of the session check are 60 in 60 s', async () => {
    const { service, browser } = await createUser()
    const check = async () => (await browser.get(AUTH_PATHS.session)).status
    expect(new Set(await repeated(60, check))).toEqual(new Set([200]))
    expect(await check()).toBe(429)
    await service.clock.advance(60_000)
    expect(await check()).toBe(200)
  })

  test('count an IPv6 client by its /64 network', async () => {
    const service = await createConsoleService()
    const attempt = (at: number) =>
      signIn(createBrowser(service, { address: `2001:db8::${at + 1}` }), `user${at}@example.com`)
    expect((await repeated(6, attempt)).at(-1)).toBe('RATE_LIMITED')
  })
})
