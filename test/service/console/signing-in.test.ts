/** Signing in (docs/console.md): the first start, links and passwords, over the real service. */
import { describe, expect, test } from 'vitest'
import { AUTH_PATHS, CONSOLE_PATHS } from '../../../src/protocol/console.js'
import { createPasswords, type Passwords } from '../../../src/service/rules/credentials.js'
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
import { createQuickPasswords } from '../../support/passwords.js'
import { storedText } from '../../support/test-database.js'

describe('the first start', () => {
  test('creates an owner, whose link works once and allows setting a password', async () => {
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
    const set = await browser.post(AUTH_PATHS.password, { password: PASSWORD })
    expect(set).toMatchObject({ status: 200, body: { can_set_password: false, has_password: true } })
    const again = await createBrowser(service).post(AUTH_PATHS.link, { token })
    expect(again).toMatchObject(refusal(401, 'invalid_link'))
    const signIn = { email: ' Owner@LOCALHOST ', password: PASSWORD }
    const { status, body } = await createBrowser(service).post(AUTH_PATHS.signIn, signIn)
    expect([status, body.email, body.can_set_password]).toEqual([200, 'owner@localhost', false])
  })

  test('creates the only link; a later start creates none, even without users', async () => {
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

  test('creates no user on a worker', async () => {
    const { service } = await createConsoleService({ role: 'worker' })
    expect(service.console).toBeUndefined()
  })
})

describe('a sign-in link', () => {
  test('expires after 15 minutes', async () => {
    const service = await createConsoleService()
    const early = await addUser(service, 'one@example.com')
    const late = await addUser(service, 'two@example.com')
    const use = (token: string) => createBrowser(service).post(AUTH_PATHS.link, { token })
    await service.clock.advance(15 * 60_000 - 1)
    expect((await use(early)).status).toBe(200)
    await service.clock.advance(1)
    expect(await use(late)).toMatchObject(refusal(401, 'invalid_link'))
  })
})

describe('a password', () => {
  test('gets the same refusal for a known email, an unknown one and an invalid one', async () => {
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

  test('costs the same derivation for a known email, an unknown one and a user without one', async () => {
    const derived: object[] = []
    const passwords = createPasswords(async (_password, { salt, ...derivation }) => {
      derived.push({ ...derivation, saltBytes: salt.byteLength })
      return new Uint8Array(derivation.keyBytes)
    })
    const service = await createConsoleService({ passwords })
    await createUser(service)
    await addUser(service, 'new@example.com')
    for (const [email, password] of [
      [ANN, '\0'],
      [ANN, ''],
      ['nobody@example.com', PASSWORD],
      ['new@example.com', ''],
    ] as const) {
      derived.length = 0
      expect(await createBrowser(service).post(AUTH_PATHS.signIn, { email, password })).toMatchObject(
        refusal(401, 'invalid_credentials'),
      )
      const whole = { cost: 32_768, blockSize: 8, parallelization: 1, keyBytes: 32, saltBytes: 16 }
      expect([email, derived]).toEqual([email, [whole]])
    }
  })

  test.each<[name: string, body: unknown, says: RegExp, status?: number, code?: string]>([
    ['no JSON', '{', /not valid JSON/, 400, 'invalid_json'],
    ['a string', '"x"', /The body must be object/],
    ['a list', [], /The body must be object/],
    ['nothing', undefined, /email is missing/],
    ['no password', { email: ANN }, /password is missing/],
    ['a number', { email: ANN, password: 123456789012 }, /password must be string/],
    ['a list for an email', { email: [ANN], password: PASSWORD }, /email must be string/],
    ['a long email', { email: 'x'.repeat(255), password: PASSWORD }, /more than 254/],
    ['a long password', { email: ANN, password: 'x'.repeat(1_001) }, /more than 1000/],
    ['a large body', { email: ANN, password: 'x'.repeat(70_000) }, /65536/, 413, 'payload_too_large'],
  ])('is refused in a body with %s', async (_name, body, says, status = 400, code = 'invalid_input') => {
    const service = await createConsoleService()
    const answer = await createBrowser(service).post(AUTH_PATHS.signIn, body)
    expect(answer).toMatchObject(refusal(status, code))
    expect(answer.body.error.message).toMatch(says)
    expect(answer.body.error.message).not.toContain('model')
    expect(answer.header('cache-control')).toBe('no-store')
    expect(service.complaints).toEqual([])
  })

  test('can be changed with the current one, which ends the other sessions', async () => {
    const service = await createConsoleService()
    const [browser, other] = [await createUser(service), createBrowser(service)]
    await other.post(AUTH_PATHS.signIn, { email: ANN, password: PASSWORD })
    expect((await other.get(AUTH_PATHS.session)).status).toBe(200)
    const change = (body: object) => browser.post(AUTH_PATHS.password, body)
    const password = 'another long password'
    expect(await change({ password })).toMatchObject(refusal(400, 'invalid_input'))
    const wrong = await change({ password, current: 'x'.repeat(12) })
    expect(wrong).toMatchObject(refusal(401, 'invalid_credentials'))
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

  test('lets no sign-in with the old password succeed while it is changed', async () => {
    const passwords = createQuickPasswords()
    let afterMatch: () => unknown = () => {}
    const matches: Passwords['matches'] = async (...args) => {
      const isRight = await passwords.matches(...args)
      await afterMatch()
      return isRight
    }
    const service = await createConsoleService({ passwords: { ...passwords, matches } })
    await createUser(service)
    const browser = await signInByLink(service)
    afterMatch = () => browser.post(AUTH_PATHS.password, { password: 'another long password' })
    const late = await createBrowser(service).post(AUTH_PATHS.signIn, { email: ANN, password: PASSWORD })
    expect(late).toMatchObject(refusal(401, 'invalid_credentials'))
    expect((await browser.get(CONSOLE_PATHS.sessions)).body.sessions).toMatchObject([{ current: true }])
  })

  test('cannot be set if it could never match', async () => {
    const browser = await signInByLink(await createConsoleService())
    const password = `${PASSWORD}\0`
    expect(await browser.post(AUTH_PATHS.password, { password })).toMatchObject(refusal(400, 'invalid_input'))
    expect((await browser.get(AUTH_PATHS.session)).body.has_password).toBe(false)
  })

  test('never appears in the database, and neither does a token or a link', async () => {
    const service = await createConsoleService()
    const token = await addUser(service, 'other@example.com')
    const browser = await createUser(service)
    const text = await storedText(service)
    expect(text).toContain('scrypt$32768$8$1$')
    for (const secret of [PASSWORD, browser.cookie ?? '', token]) expect(text).not.toContain(secret)
  })
})
