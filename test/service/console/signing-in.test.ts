/** CONTRACT 11, signing in: the first start, links and passwords, over the real service. */
import { describe, expect, test } from 'vitest'
import { AUTH_PATHS } from '../../../src/protocol/console.js'
import {
  ANN,
  addUser,
  CONSOLE_URL,
  createBrowser,
  createConsoleService,
  createUser,
  PASSWORD,
  refusal,
  signInByLink,
} from '../../support/console.js'
import { storedText } from '../../support/test-database.js'

describe('the first start', () => {
  test('creates an owner, whose link signs in once and lets a password be set', async () => {
    const service = await createConsoleService()
    const { linkToken: token, hasUsers } = service.service.console ?? {}
    expect([token, hasUsers]).toEqual([expect.stringMatching(/^[\w-]{43}$/), true])
    const browser = createBrowser(service)
    expect(await browser.post(AUTH_PATHS.link, { token })).toMatchObject({
      status: 200,
      body: {
        id: expect.stringMatching(/^[0-9a-f]{32}$/),
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

  // Processor time, of which other processes take none; the least of several has no collection of garbage in it.
  test('takes the same time for a known email, an unknown one, and a user without a password', async () => {
    const service = await createConsoleService()
    await createUser(service)
    await addUser(service, 'new@example.com')
    const times: Record<string, number[]> = { [ANN]: [], 'nobody@example.com': [], 'new@example.com': [] }
    for (let count = 0; count < 7; count++)
      for (const [email, taken] of Object.entries(times)) {
        await service.clock.advance(60_000)
        const before = process.cpuUsage()
        const { status } = await createBrowser(service).post(AUTH_PATHS.signIn, {
          email,
          password: 'x'.repeat(20),
        })
        const { user, system } = process.cpuUsage(before)
        taken.push(user + system)
        expect(status).toBe(401)
      }
    const least = Object.values(times).map((taken) => Math.min(...taken))
    expect(Math.max(...least) / Math.min(...least)).toBeLessThan(1.3)
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

  test.each<[name: string, password: string]>([
    ['NUL', '\0'.repeat(12)],
    ['NUL at the end', `${PASSWORD}\0`],
    ['half a character', `${PASSWORD}\ud83e`],
    ['one ligature', '\ufdfa'],
  ])('of %s cannot be set', async (_name, password) => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    expect(await browser.post(AUTH_PATHS.password, { password })).toMatchObject(refusal(400, 'invalid_input'))
    expect((await browser.get(AUTH_PATHS.session)).body.has_password).toBe(false)
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
