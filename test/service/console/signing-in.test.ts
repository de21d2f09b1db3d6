/** CONTRACT 11, signing in: passwords, links, sessions and cookies, over the real service. */
import { describe, expect, test } from 'vitest'
import { AUTH_PATHS, CONSOLE_PATHS } from '../../../src/protocol/console.js'
import {
  addUser,
  CONSOLE_URL,
  createBrowser,
  createConsoleService,
  createUser,
  PASSWORD,
  signInByLink,
} from '../../support/console.js'
import { createInstantEngine } from '../../support/engines.js'
import { openStoreOf, storedText } from '../../support/test-database.js'

const DAY_MS = 86_400_000
const ANN = 'ann@example.com'

const refusal = (status: number, code: string) => ({ status, body: { error: { code } } })

describe('the first start', () => {
  test('creates an owner, whose link signs in once and lets a password be set', async () => {
    const service = await createConsoleService()
    const { linkToken: token, hasUsers } = service.service.console ?? {}
    expect([token, hasUsers]).toEqual([expect.stringMatching(/^[\w-]{43}$/), true])
    const browser = createBrowser(service)
    expect(await browser.post(AUTH_PATHS.link, { token })).toMatchObject({
      status: 200,
      body: {
        email: 'owner@localhost',
        account: { name: 'default', balance: 10_000, banned: false },
        can_set_password: true,
        has_password: false,
        expires_at: '2026-01-08T00:00:00.000Z',
        models: { image: 'rushes/preview-image', video: 'rushes/preview-video' },
        base_url: CONSOLE_URL,
      },
    })
    expect(await browser.post(AUTH_PATHS.password, { password: PASSWORD })).toMatchObject({
      status: 200,
      body: { can_set_password: false, has_password: true },
    })
    expect(await createBrowser(service).post(AUTH_PATHS.link, { token })).toMatchObject(
      refusal(401, 'invalid_link'),
    )
    const signedIn = await createBrowser(service).post(AUTH_PATHS.signIn, {
      email: ' Owner@LOCALHOST ',
      password: PASSWORD,
    })
    expect(signedIn).toMatchObject({
      status: 200,
      body: { email: 'owner@localhost', can_set_password: false },
    })
  })

  test('is the only one with a link; data without users gets none', async () => {
    const { dataFolder, clock, service: first } = await createConsoleService({ console: undefined })
    expect(first.console).toBeUndefined()
    await clock.runUntil(first.close())
    const second = await createConsoleService({ dataFolder, clock })
    expect(second.service.console).toEqual({ linkToken: undefined, hasUsers: false })
    await addUser(second, ANN)
    await clock.runUntil(second.service.close())
    const third = await createConsoleService({ dataFolder, clock })
    expect(third.service.console).toEqual({ linkToken: undefined, hasUsers: true })
  })

  test('of a worker creates no user', async () => {
    const { service } = await createConsoleService({ role: 'worker' })
    expect(service.console).toBeUndefined()
  })
})

describe('a link', () => {
  test('is valid for 15 minutes', async () => {
    const service = await createConsoleService()
    const [early, late] = [
      await addUser(service, 'one@example.com'),
      await addUser(service, 'two@example.com'),
    ]
    await service.clock.advance(15 * 60_000 - 1)
    expect((await createBrowser(service).post(AUTH_PATHS.link, { token: early })).status).toBe(200)
    await service.clock.advance(1)
    expect(await createBrowser(service).post(AUTH_PATHS.link, { token: late })).toMatchObject(
      refusal(401, 'invalid_link'),
    )
  })

  test('signs in one of several browsers that use it at once', async () => {
    const service = await createConsoleService()
    const token = await addUser(service, ANN)
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => createBrowser(service).post(AUTH_PATHS.link, { token })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([200, ...Array(19).fill(401)])
  })

  test('ends when the password is set', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const token = await addUser(service, ANN)
    await browser.post(AUTH_PATHS.password, { password: PASSWORD })
    expect((await createBrowser(service).post(AUTH_PATHS.link, { token })).status).toBe(401)
  })
})

describe('a password', () => {
  test('is refused with one answer, whoever it is', async () => {
    const service = await createConsoleService()
    await createUser(service)
    await addUser(service, 'new@example.com')
    const wrong = async (email: string, password: string) => {
      const { status, body } = await createBrowser(service).post(AUTH_PATHS.signIn, { email, password })
      return { status, body }
    }
    const first = await wrong(ANN, `${PASSWORD}!`)
    expect(first).toMatchObject(refusal(401, 'invalid_credentials'))
    // Another user, one without a password, nobody, and no email at all.
    for (const email of ['new@example.com', 'nobody@example.com', 'x', `${ANN}\0`])
      expect(await wrong(email, PASSWORD)).toEqual(first)
    expect(await wrong(ANN, '')).toEqual(first)
  })

  test('takes the same time for a known email, an unknown one, and a user without a password', {
    retry: 3,
  }, async () => {
    const service = await createConsoleService()
    await createUser(service)
    await addUser(service, 'new@example.com')
    const times: Record<string, number[]> = { [ANN]: [], 'nobody@example.com': [], 'new@example.com': [] }
    for (let count = 0; count < 7; count++)
      for (const [email, taken] of Object.entries(times)) {
        await service.clock.advance(60_000)
        const startedAtMs = performance.now()
        const { status } = await createBrowser(service).post(AUTH_PATHS.signIn, {
          email,
          password: 'x'.repeat(20),
        })
        taken.push(performance.now() - startedAtMs)
        expect(status).toBe(401)
      }
    const medians = Object.values(times).map((each) => each.sort((a, b) => a - b)[3] ?? 0)
    expect(Math.max(...medians) / Math.min(...medians)).toBeLessThan(1.2)
  })

  test.each<[name: string, body: unknown, status: number, code: string, says: RegExp]>([
    ['no JSON', '{', 400, 'invalid_json', /not valid JSON/],
    ['a string', '"x"', 400, 'invalid_input', /The body must be object/],
    ['a list', [], 400, 'invalid_input', /The body must be object/],
    ['nothing', undefined, 400, 'invalid_input', /email is missing/],
    ['no password', { email: ANN }, 400, 'invalid_input', /password is missing/],
    ['a number', { email: ANN, password: 123456789012 }, 400, 'invalid_input', /password must be string/],
    [
      'a list for an email',
      { email: [ANN], password: PASSWORD },
      400,
      'invalid_input',
      /email must be string/,
    ],
    ['a long email', { email: 'x'.repeat(255), password: PASSWORD }, 400, 'invalid_input', /more than 254/],
    ['a long password', { email: ANN, password: 'x'.repeat(1_001) }, 400, 'invalid_input', /more than 1000/],
    ['a large body', { email: ANN, password: 'x'.repeat(70_000) }, 413, 'payload_too_large', /65536/],
  ])('%s is refused', async (_name, body, status, code, says) => {
    const service = await createConsoleService()
    const answer = await createBrowser(service).post(AUTH_PATHS.signIn, body)
    expect(answer).toMatchObject(refusal(status, code))
    expect(answer.body.error.message).toMatch(says)
    expect(answer.body.error.message).not.toContain('model')
    expect(answer.header('cache-control')).toBe('no-store')
    expect(service.complaints).toEqual([])
  })

  test('is changed with the current one, which ends the other sessions and codes', async () => {
    const service = await createConsoleService()
    const [browser, other] = [await createUser(service), createBrowser(service)]
    await other.post(AUTH_PATHS.signIn, { email: ANN, password: PASSWORD })
    expect((await other.get(AUTH_PATHS.session)).status).toBe(200)
    const change = (body: object) => browser.post(AUTH_PATHS.password, body)
    const password = 'another long password'
    expect(await change({ password })).toMatchObject(refusal(400, 'invalid_input'))
    expect(await change({ password, current: 'x'.repeat(12) })).toMatchObject(
      refusal(401, 'invalid_credentials'),
    )
    expect((await other.get(AUTH_PATHS.session)).status).toBe(200)
    await service.clock.advance(60_000)
    const short = await change({ current: PASSWORD, password: 'eleven char' })
    expect(short).toMatchObject(refusal(400, 'invalid_input'))
    expect(short.body.error.message).toMatch(/fewer than 12/)
    expect((await change({ password, current: PASSWORD })).status).toBe(200)
    expect(await other.get(AUTH_PATHS.session)).toMatchObject(refusal(401, 'not_signed_in'))
    expect((await browser.get(AUTH_PATHS.session)).status).toBe(200)
    await service.clock.advance(60_000)
    const signIn = async (password: string) =>
      (await createBrowser(service).post(AUTH_PATHS.signIn, { email: ANN, password })).status
    expect([await signIn(PASSWORD), await signIn(password)]).toEqual([401, 200])
  })

  test('is nowhere in the database, and neither is a token or a link', async () => {
    const service = await createConsoleService()
    const token = await addUser(service, 'other@example.com')
    const browser = await createUser(service)
    const text = await storedText(service)
    expect(text).toContain('scrypt$32768$8$1$')
    for (const secret of [PASSWORD, browser.cookie ?? '', token]) expect(text).not.toContain(secret)
  })
})

describe('a session', () => {
  test('lasts 7 days after its last use, and is extended at most once a minute, with its cookie', async () => {
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

  test('is extended once by requests of the same moment', async () => {
    const service = await createConsoleService()
    const browser = await createUser(service)
    await service.clock.advance(60_000)
    const cookies = await Promise.all(
      Array.from({ length: 10 }, async () =>
        (await browser.ask('GET', CONSOLE_PATHS.sessions)).header('set-cookie'),
      ),
    )
    expect(cookies.filter((each) => each !== undefined).length).toBeLessThanOrEqual(2)
  })

  test('always has a new token: one that the browser had before is never signed in, and ends', async () => {
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

  test('ends with a sign-out, and with one everywhere', async () => {
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

  test('ends at once with its user', async () => {
    const service = await createConsoleService()
    const browser = await createUser(service)
    const store = await openStoreOf(service)
    await store.removeUser(ANN)
    await store.close()
    for (const path of [AUTH_PATHS.session, CONSOLE_PATHS.runs])
      expect(await browser.get(path)).toMatchObject(refusal(401, 'not_signed_in'))
  })

  test('of a banned account reads and sees why, and creates nothing', async () => {
    const service = await createConsoleService({ rendering: true, engine: createInstantEngine() })
    const browser = await createUser(service)
    const key = await browser.post(CONSOLE_PATHS.keys, { name: 'laptop' })
    const code = (await browser.post(CONSOLE_PATHS.logins, { challenge: 'x'.repeat(43), name: 'cli' })).body
      .code
    const store = await openStoreOf(service)
    await store.setBanned('default', true)
    await store.close()
    expect((await browser.get(AUTH_PATHS.session)).body.account).toMatchObject({ banned: true })
    const again = await createBrowser(service).post(AUTH_PATHS.signIn, { email: ANN, password: PASSWORD })
    expect([again.status, again.body.account.banned]).toEqual([200, true])
    expect((await browser.get(CONSOLE_PATHS.runs)).status).toBe(200)
    const fox = { model: 'rushes/preview-image', input: { prompt: 'a fox' } }
    const path = `${CONSOLE_PATHS.keys}/${key.body.key.id}`
    for (const [each, body] of [
      [CONSOLE_PATHS.runs, fox],
      [CONSOLE_PATHS.keys, { name: 'another' }],
      [`${path}/rotate`, undefined],
      [CONSOLE_PATHS.logins, { challenge: 'x'.repeat(43), name: 'cli' }],
    ] as const)
      expect(await browser.post(each, body)).toMatchObject(refusal(403, 'account_banned'))
    expect((await browser.ask('PATCH', path, { disabled: true })).status).toBe(200)
    const exchange = { code, verifier: 'v' }
    expect(await browser.post(AUTH_PATHS.login, exchange)).toMatchObject(refusal(401, 'invalid_code'))
  })
})

describe('the cookie', () => {
  const cookieOf = async (
    options: Parameters<typeof createConsoleService>[0],
    headers: Readonly<Record<string, string>>,
  ) => {
    const service = await createConsoleService(options)
    const token = await addUser(service, ANN)
    const answer = await createBrowser(service).ask('POST', AUTH_PATHS.link, { token }, headers)
    return answer.header('set-cookie') ?? answer.body.error.code
  }
  const flags = 'Max-Age=604800; Path=/; HttpOnly'

  test.each<
    [name: string, publicUrl: string | undefined, headers: Readonly<Record<string, string>>, ends: string]
  >([
    [
      'loopback',
      undefined,
      { host: '127.0.0.1:7878', origin: 'http://127.0.0.1:7878' },
      `${flags}; SameSite=Strict`,
    ],
    [
      'localhost',
      undefined,
      { host: 'localhost:7878', origin: 'http://localhost:7878' },
      `${flags}; SameSite=Strict`,
    ],
    [
      'a TLS proxy that says so',
      undefined,
      {
        host: 'x',
        'x-forwarded-proto': 'https',
        'x-forwarded-host': 'runs.example',
        origin: 'https://runs.example',
      },
      `${flags}; Secure; SameSite=Strict`,
    ],
    [
      'a TLS proxy that passes the host on',
      'https://runs.example',
      { host: 'runs.example', origin: 'https://runs.example' },
      `${flags}; Secure; SameSite=Strict`,
    ],
    [
      'a TLS proxy that puts its own host',
      'https://runs.example/prefix',
      { host: '127.0.0.1:7878', origin: 'https://runs.example' },
      `${flags}; Secure; SameSite=Strict`,
    ],
    [
      'plain HTTP from another machine',
      undefined,
      { host: '10.0.0.7:7878', origin: 'http://10.0.0.7:7878' },
      'https_required',
    ],
    [
      'plain HTTP at the proxy',
      undefined,
      {
        host: 'x',
        'x-forwarded-proto': 'http',
        'x-forwarded-host': 'runs.example',
        origin: 'http://runs.example',
      },
      'https_required',
    ],
  ])('%s', async (_name, publicUrl, headers, ends) => {
    const cookie = await cookieOf({ publicUrl }, headers)
    expect(cookie.endsWith(ends)).toBe(true)
  })

  test('of a proxy that is not trusted is what the connection is', async () => {
    const headers = { host: 'x.example', 'x-forwarded-proto': 'https', origin: 'https://x.example' }
    expect(await cookieOf({ publicUrl: undefined, trustedProxies: [] }, headers)).toBe('foreign_origin')
  })

  test('is renewed with the same flags behind a TLS proxy', async () => {
    const service = await createConsoleService({ publicUrl: 'https://runs.example' })
    const browser = await signInByLink(service)
    await service.clock.advance(60_000)
    const renewed = await browser.ask('GET', AUTH_PATHS.session, undefined, { host: '127.0.0.1:7878' })
    expect(renewed.header('set-cookie')).toMatch(/Secure; SameSite=Strict$/)
  })

  test('is also refused over plain HTTP for a password', async () => {
    const service = await createConsoleService({ publicUrl: undefined })
    const headers = { host: '10.0.0.7', origin: 'http://10.0.0.7' }
    const body = { email: ANN, password: PASSWORD }
    expect(await createBrowser(service).ask('POST', AUTH_PATHS.signIn, body, headers)).toMatchObject(
      refusal(403, 'https_required'),
    )
  })
})
