/** The endpoints that the page asks: runs, keys, credits, sessions and logins. */
import { createHash } from 'node:crypto'
import { parse } from 'csv-parse/sync'
import { describe, expect, test } from 'vitest'
import { AUTH_PATHS, CONSOLE_PATHS } from '../../../src/protocol/console.js'
import {
  type Browser,
  createBrowser,
  createConsoleService,
  createUser,
  signInByLink,
} from '../../support/console.js'
import { createFamilyEngine, createInstantEngine, ONE_PIXEL_PNG } from '../../support/engines.js'
import { ask, ended, type TestService } from '../../support/service.js'
import { openStoreOf } from '../../support/test-database.js'

const FOX = { model: 'rushes/preview-image', input: { prompt: 'a fox' } }
const BOAT = {
  model: 'rushes/preview-video',
  input: { prompt: 'a boat', duration: '10', aspect_ratio: '9:16' },
}

const create = async (browser: Browser, body: object = FOX) =>
  (await browser.post(CONSOLE_PATHS.runs, body)).body
const pathOf = (path: string, id: unknown) => path.replace(':id', String(id))
const idsOf = (runs: readonly { id: string }[]) => runs.map(({ id }) => id)

/** Creates with an API key, two a second. */
async function createByKey(service: TestService, count: number, key = service.apiKey, body: object = FOX) {
  const ids: string[] = []
  for (let at = 0; at < count; at++) {
    await service.clock.advance(500)
    ids.push((await ask(service, 'POST', '/api/v1/runs', body, { key })).body.id)
  }
  return ids
}

describe('runs', () => {
  test('a create is charged to the account, is checked as that of the API, and has no key', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const answer = await browser.post(CONSOLE_PATHS.runs, BOAT)
    expect([answer.status, answer.header('location')]).toEqual([
      201,
      `${service.baseUrl}/api/v1/runs/${answer.body.id}`,
    ])
    expect(answer.body).toMatchObject({
      kind: 'video',
      status: 'queued',
      prompt: 'a boat',
      aspect_ratio: '9:16',
      key: null,
      price: 10,
      outputs: [],
      input: BOAT.input,
      attempts: [],
      service: { id: answer.body.id, status: 'queued', output: null },
    })
    expect((await browser.get(CONSOLE_PATHS.credits)).body.balance).toBe(9_990)
    for (const [body, status, code] of [
      ['{', 400, 'invalid_json'],
      [{}, 400, 'missing_model'],
      [{ model: 'acme/none', input: {} }, 400, 'model_not_found'],
      [{ ...FOX, input: { prompt: 'x', quality: 'hihg' } }, 400, 'invalid_input'],
      [{ ...FOX, input: { prompt: 'x', image_urls: ['data:image/png;base64,?'] } }, 400, 'invalid_input'],
    ] as const)
      expect(await browser.post(CONSOLE_PATHS.runs, body)).toMatchObject({
        status,
        body: { error: { code } },
      })
    expect((await browser.get(CONSOLE_PATHS.credits)).body.balance).toBe(9_990)
  })

  test('a create that the balance cannot pay is 402, and takes nothing', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service, 'poor@example.com', 'poor')
    const store = await openStoreOf(service)
    await store.addCredits({ account: 'poor', amount: -9_999, nowMs: 0 }, () => {})
    await store.close()
    expect(await browser.post(CONSOLE_PATHS.runs, BOAT)).toMatchObject({
      status: 402,
      body: { error: { code: 'insufficient_balance' } },
    })
    expect((await browser.post(CONSOLE_PATHS.runs, FOX)).status).toBe(201)
    expect((await browser.get(CONSOLE_PATHS.credits)).body.balance).toBe(0)
  })

  test('a body over the limit is 413, an image of it is stored, and its price is refunded when it fails', async () => {
    const engine = createFamilyEngine()
    const service = await createConsoleService({ bodyLimitBytes: 100_000, rendering: true, engine })
    const browser = await signInByLink(service)
    const image_urls = [`data:image/png;base64,${ONE_PIXEL_PNG.toString('base64')}`]
    const { id, input } = await create(browser, { ...FOX, input: { prompt: 'FAIL', image_urls } })
    expect(input.image_urls).toEqual([{ sha256: expect.any(String), bytes: 70, content_type: 'image/png' }])
    const large = { ...FOX, input: { prompt: 'x'.repeat(100_000) } }
    expect(await browser.post(CONSOLE_PATHS.runs, large)).toMatchObject({
      status: 413,
      body: { error: { code: 'payload_too_large' } },
    })
    await ended(service, id)
    const details = (await browser.get(pathOf(CONSOLE_PATHS.run, id))).body
    expect(details).toMatchObject({ status: 'failed', error: { code: 'render_failed' }, outputs: [] })
    expect(details.attempts).toMatchObject([{ result: 'failed' }])
    expect((await browser.get(CONSOLE_PATHS.credits)).body).toMatchObject({
      balance: 10_000,
      entries: [
        { kind: 'refund', amount: 1, run_id: id, key: null },
        { kind: 'charge', amount: -1, run_id: id },
        { kind: 'added', amount: 10_000, run_id: null },
      ],
    })
  })

  test('the list has pages, the newest first, and says what is new', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const ids = (await createByKey(service, 7)).reverse()
    const page = async (query: string) => (await browser.get(`${CONSOLE_PATHS.runs}?${query}`)).body
    const first = await page('limit=3')
    const second = await page(`limit=3&before=${first.next}`)
    const third = await page(`limit=3&before=${second.next}`)
    expect([first, second, third].map(({ runs }) => idsOf(runs))).toEqual([
      ids.slice(0, 3),
      ids.slice(3, 6),
      ids.slice(6),
    ])
    expect([first.next !== null, second.next !== null, third.next]).toEqual([true, true, null])
    expect((await page('limit=7')).next).toBeNull()
    expect(first.runs[0]).toMatchObject({ key: { id: 1, name: 'first' }, price: 1, aspect_ratio: '1:1' })

    const updates = async (query: string) => (await browser.get(`${CONSOLE_PATHS.updates}?${query}`)).body
    expect(await updates(`after=${first.latest}`)).toEqual({
      changed: [],
      added: [],
      next: null,
      latest: first.latest,
      balance: 9_993,
    })
    const { id } = await create(browser)
    const more = await updates(`ids=${ids[0]},run_none,${ids[6]}&after=${first.latest}`)
    expect(idsOf(more.added)).toEqual([id])
    expect(idsOf(more.changed).sort()).toEqual([ids[0], ids[6]].sort())
    expect([Number(more.latest) > Number(first.latest), more.balance]).toEqual([true, 9_992])
    expect(await updates(`after=${more.latest}`)).toMatchObject({ added: [], latest: more.latest })
    expect(await updates('')).toMatchObject({ changed: [], added: [], latest: more.latest })
    expect(idsOf((await updates('after=0')).added)).toEqual([id, ...ids])
  })

  test('of more than 200 new runs the newest come, and where to go on', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const ids = (await createByKey(service, 203)).reverse()
    const { added, next, latest } = (await browser.get(`${CONSOLE_PATHS.updates}?after=0`)).body
    expect([idsOf(added), latest]).toEqual([ids.slice(0, 200), expect.any(String)])
    const { runs } = (await browser.get(`${CONSOLE_PATHS.runs}?before=${next}`)).body
    expect(idsOf(runs)).toEqual(ids.slice(200))
  })

  test('the filters', async () => {
    const service = await createConsoleService({ rendering: true, engine: createInstantEngine() })
    const browser = await signInByLink(service)
    const [image = ''] = await createByKey(service, 1)
    await ended(service, image)
    const { id: video } = await create(browser, { ...BOAT, input: { prompt: 'Ein BOOT im Hafen, 100%' } })
    const found = async (query: string) =>
      idsOf((await browser.get(`${CONSOLE_PATHS.runs}?${query}`)).body.runs)
    expect(await found('')).toEqual([video, image])
    expect(await found('status=&kind=&model=&key=&search=&before=&limit=')).toEqual([video, image])
    expect(await found('kind=image')).toEqual([image])
    expect(await found('model=rushes/preview-video')).toEqual([video])
    expect(await found('key=console')).toEqual([video])
    expect(await found('key=1')).toEqual([image])
    expect(await found('key=99')).toEqual([])
    expect(await found('status=succeeded&kind=image')).toEqual([image])
    expect(await found(`search=${encodeURIComponent('boot')}`)).toEqual([video])
    expect(await found(`search=${encodeURIComponent('100%')}`)).toEqual([video])
    expect(await found('search=_')).toEqual([])
    expect(await found('search=fox&kind=video')).toEqual([])
  })

  test('a prompt is cut to 500 characters, and not within one', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const prompt = `${'x'.repeat(499)}🦊🦊`
    const { id } = await create(browser, { ...FOX, input: { prompt } })
    const details = (await browser.get(pathOf(CONSOLE_PATHS.run, id))).body
    expect([details.prompt, details.input.prompt]).toEqual([`${'x'.repeat(499)}🦊`, prompt])
  })

  test.each([
    [CONSOLE_PATHS.runs, 'limit=0', /limit: "0" is not a whole number from 1 to 200/],
    [CONSOLE_PATHS.runs, 'limit=201', /limit/],
    [CONSOLE_PATHS.runs, 'limit=1.5', /limit/],
    [CONSOLE_PATHS.runs, 'limit=1&limit=2', /limit is given more than once/],
    [CONSOLE_PATHS.runs, 'before=x', /before/],
    [CONSOLE_PATHS.runs, 'before=-1', /before/],
    [CONSOLE_PATHS.runs, 'before=99999999999999999999', /before/],
    [CONSOLE_PATHS.runs, 'status=done', /status: "done" is not one of queued, processing, succeeded, failed/],
    [CONSOLE_PATHS.runs, 'kind=toString', /kind/],
    [CONSOLE_PATHS.runs, 'key=mine', /key/],
    [CONSOLE_PATHS.runs, `search=${'x'.repeat(1_001)}`, /search has more than 1000/],
    [CONSOLE_PATHS.updates, `ids=${'x,'.repeat(300)}x`, /ids has more than 300/],
    [CONSOLE_PATHS.updates, 'after=now', /after/],
    [CONSOLE_PATHS.credits, 'limit=501', /limit/],
    [CONSOLE_PATHS.credits, 'kind=gift', /kind: "gift" is not one of added, charge, refund/],
    [CONSOLE_PATHS.credits, 'from=2026-02-30', /from: "2026-02-30" is not a day/],
    [CONSOLE_PATHS.credits, 'to=yesterday', /to: "yesterday" is not a day/],
    [CONSOLE_PATHS.csv, 'to=yesterday', /to: "yesterday" is not a day/],
    [CONSOLE_PATHS.spend, 'days=0', /days/],
    [CONSOLE_PATHS.spend, 'days=367', /days/],
  ])('%s?%s is refused', async (path, query, says) => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const { status, body } = await browser.get(`${path}?${query}`)
    expect([status, body.error.code]).toEqual([400, 'invalid_input'])
    expect(body.error.message).toMatch(says)
  })
})

describe('keys', () => {
  test('one is created, shown once, used, changed, disabled, and rotated', async () => {
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
      rotates_until: null,
    })
    const path = pathOf(CONSOLE_PATHS.key, key.id)
    const use = async (apiKey: string) =>
      (await ask(service, 'POST', '/api/v1/runs', FOX, { key: apiKey })).status
    await service.clock.advance(90_000)
    expect(await use(first)).toBe(201)
    const list = async () => (await browser.get(CONSOLE_PATHS.keys)).body.keys
    await expect
      .poll(async () => (await list())[0])
      .toMatchObject({
        spent: 1,
        used: 1,
        last_used_at: '2026-01-01T00:01:00.000Z',
      })
    expect(JSON.stringify(await list())).not.toContain(first.slice(9))

    const change = (body: object) => browser.ask('PATCH', path, body)
    expect((await change({ disabled: true, name: 'old laptop' })).body).toMatchObject({
      disabled: true,
      name: 'old laptop',
      quota: 3,
    })
    expect(await use(first)).toBe(401)
    expect(
      (await change({ disabled: false, quota: null, allowed_ips: null, expires_at: null })).body,
    ).toMatchObject({
      disabled: false,
      quota: null,
      allowed_ips: null,
      expires_at: null,
      spend_limit: 100,
    })
    expect((await change({})).body.name).toBe('old laptop')

    const rotated = (await browser.post(pathOf(CONSOLE_PATHS.rotate, key.id))).body
    expect(rotated.key).toMatchObject({ id: key.id, used: 1, rotates_until: '2026-01-02T00:01:30.000Z' })
    expect(rotated.key.prefix).toBe(rotated.api_key.slice(0, 9))
    expect([await use(first), await use(rotated.api_key)]).toEqual([201, 201])
    await service.clock.advance(24 * 3_600_000)
    expect([await use(first), await use(rotated.api_key)]).toEqual([401, 201])
    expect((await list())[0].rotates_until).toBeNull()
  })

  test.each<[name: string, body: unknown, says: RegExp]>([
    ['no name', {}, /name is missing/],
    ['an empty name', { name: '' }, /name must have 1 to 100/],
    ['a long name', { name: 'x'.repeat(101) }, /name must have/],
    ['a name of spaces', { name: '  ' }, /name must have/],
    ['a line end in the name', { name: 'a\nb' }, /name must have/],
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
    ['a day that does not exist', { name: 'x', expires_at: '2026-13-31T12:00:00Z' }, /is not a time/],
    ['a flag as text', { name: 'x', disabled: 'no' }, /disabled must be boolean/],
  ])('%s is refused', async (_name, body, says) => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const { id } = (await browser.get(CONSOLE_PATHS.keys)).body.keys[0]
    const answers = [await browser.post(CONSOLE_PATHS.keys, body)]
    if (Object.keys(body as object).length > 0)
      answers.push(await browser.ask('PATCH', pathOf(CONSOLE_PATHS.key, id), body))
    for (const answer of answers) {
      expect(answer).toMatchObject({ status: 400, body: { error: { code: 'invalid_input' } } })
      expect(answer.body.error.message).toMatch(says)
    }
    expect((await browser.get(CONSOLE_PATHS.keys)).body.keys).toHaveLength(1)
  })

  test('an id that is not a number is 404', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    for (const id of ['x', '0', '-1', '1.5', '999', '9'.repeat(30), '%00', 'constructor'])
      for (const path of [CONSOLE_PATHS.key, CONSOLE_PATHS.session]) {
        const method = path === CONSOLE_PATHS.key ? 'PATCH' : 'DELETE'
        expect((await browser.ask(method, pathOf(path, id), {})).status).toBe(404)
      }
  })

  test('the last use of a key is written once a minute, and never for one that is refused', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const used = async () => (await browser.get(CONSOLE_PATHS.keys)).body.keys[0].last_used_at
    await ask(service, 'GET', '/api/v1/runs/run_x', undefined, { key: 'rk_unknown' })
    expect(await used()).toBeNull()
    for (const [advanceMs, minute] of [
      [0, '00:00'],
      [59_999, '00:00'],
      [1, '00:01'],
      [30_000, '00:01'],
      [600_000, '00:11'],
    ] as const) {
      await service.clock.advance(advanceMs)
      await ask(service, 'GET', '/api/v1/runs/run_x')
      await expect.poll(used).toBe(`2026-01-01T${minute}:00.000Z`)
    }
    // Another node, or a clock that is set back, never sets it back.
    service.clock.jump(-300_000)
    await ask(service, 'GET', '/api/v1/runs/run_x')
    expect(await used()).toBe('2026-01-01T00:11:00.000Z')
  })
})

describe('credits', () => {
  test('the ledger has pages, filters and a CSV of everything', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const { key, api_key } = (await browser.post(CONSOLE_PATHS.keys, { name: '=SUM(A1), "x"' })).body
    await createByKey(service, 3)
    await service.clock.advance(24 * 3_600_000)
    const [last] = await createByKey(service, 1, api_key)
    const page = async (query: string) => (await browser.get(`${CONSOLE_PATHS.credits}?${query}`)).body
    const first = await page('limit=2')
    expect(first).toMatchObject({
      balance: 9_996,
      entries: [
        { kind: 'charge', amount: -1, run_id: last, key: { id: key.id, name: '=SUM(A1), "x"' } },
        { amount: -1 },
      ],
    })
    const second = await page(`limit=3&before=${first.next}`)
    expect([second.entries.length, second.next, second.entries.at(-1).kind]).toEqual([3, null, 'added'])
    const counts = async (query: string) => (await page(query)).entries.length
    expect(await counts('kind=charge')).toBe(4)
    expect(await counts('kind=refund')).toBe(0)
    expect(await counts(`key=${key.id}`)).toBe(1)
    expect(await counts('from=2026-01-01&to=2026-01-01')).toBe(4)
    expect(await counts('from=2026-01-02')).toBe(1)
    expect(await counts('to=2025-12-31')).toBe(0)

    const csv = await browser.get(`${CONSOLE_PATHS.csv}?kind=charge`)
    expect([
      csv.status,
      csv.header('content-type'),
      csv.header('content-disposition'),
      csv.header('cache-control'),
    ]).toEqual([200, 'text/csv; charset=utf-8', 'attachment; filename="credits.csv"', 'no-store'])
    const rows = parse(csv.body) as string[][]
    expect(rows[0]).toEqual(['time', 'kind', 'amount', 'run', 'key number', 'key name'])
    expect(rows[1]).toEqual([
      '2026-01-02T00:00:02.000Z',
      'charge',
      '-1',
      last,
      String(key.id),
      `'=SUM(A1), "x"`,
    ])
    expect(rows).toHaveLength(5)
    expect(csv.body).toContain('\r\n')
  })

  test('a CSV of more entries than are in memory at once has each of them once', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service, 'rich@example.com', 'rich')
    const store = await openStoreOf(service)
    for (let at = 0; at < 2_500; at++)
      await store.addCredits({ account: 'rich', amount: 1, nowMs: service.clock.now() + at }, () => {})
    await store.close()
    const rows = parse((await browser.get(CONSOLE_PATHS.csv)).body) as string[][]
    expect([rows.length, new Set(rows.map(([time]) => time)).size]).toEqual([2_502, 2_501])
  })

  test('the spend of each day, days without any included', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    await create(browser, BOAT)
    await service.clock.advance(2 * 24 * 3_600_000)
    await createByKey(service, 2)
    const spend = async (query: string) => (await browser.get(`${CONSOLE_PATHS.spend}${query}`)).body.days
    expect(await spend('?days=4')).toEqual([
      { day: '2025-12-31', credits: 0, runs: 0 },
      { day: '2026-01-01', credits: 10, runs: 1 },
      { day: '2026-01-02', credits: 0, runs: 0 },
      { day: '2026-01-03', credits: 2, runs: 2 },
    ])
    expect((await spend('')).length).toBe(30)
    expect(await spend('?days=1')).toEqual([{ day: '2026-01-03', credits: 2, runs: 2 }])
  })
})

describe('sessions', () => {
  test('are listed with their browser, and one can be ended', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const other = createBrowser(service)
    await service.clock.advance(1_000)
    const store = await openStoreOf(service)
    const user = await store.findUser('ann@example.com')
    await store.addSession({
      hash: 'h',
      userId: user?.id ?? 0,
      fromLink: false,
      address: undefined,
      userAgent: undefined,
      nowMs: service.clock.now(),
      expiresAtMs: service.clock.now() + 60_000,
    })
    await store.close()
    const list = async () => (await browser.get(CONSOLE_PATHS.sessions)).body.sessions
    const [second, first] = await list()
    expect(first).toMatchObject({
      current: true,
      address: browser.address,
      created_at: '2026-01-01T00:00:00.000Z',
    })
    expect(second).toMatchObject({ current: false, address: null, user_agent: null })
    expect((await browser.ask('DELETE', pathOf(CONSOLE_PATHS.session, second.id))).status).toBe(204)
    expect(await list()).toHaveLength(1)
    expect((await browser.ask('DELETE', pathOf(CONSOLE_PATHS.session, second.id))).status).toBe(404)
    const own = await browser.ask('DELETE', pathOf(CONSOLE_PATHS.session, first.id))
    expect([own.status, browser.cookie]).toEqual([204, undefined])
    expect((await other.get(AUTH_PATHS.session)).status).toBe(401)
  })

  test('the browser of a session is text of at most 300 characters', async () => {
    const service = await createConsoleService()
    const browser = await createUser(service)
    const odd = `Fox\u202e<b>${'x'.repeat(400)}`
    const signIn = { email: 'ann@example.com', password: 'correct horse battery staple' }
    await createBrowser(service).ask('POST', AUTH_PATHS.signIn, signIn, {
      'user-agent': Buffer.from(odd).toString('latin1'),
    })
    const { sessions } = (await browser.get(CONSOLE_PATHS.sessions)).body
    const agents = sessions.map((each: { user_agent: string | null }) => each.user_agent ?? '')
    expect(agents.find((each: string) => each.startsWith('Fox'))).toHaveLength(300)
  })
})

describe('rushes login --web', () => {
  const verifier = 'v'.repeat(43)
  const challenge = createHash('sha256').update(verifier).digest('base64url')
  const program = { origin: '', 'sec-fetch-site': '' }

  /** Without `Origin` and without a cookie, as the command sends it. */
  async function exchange(service: TestService, code: string, proof = verifier) {
    const response = await service.fetch({
      method: 'POST',
      url: new URL(AUTH_PATHS.login, service.baseUrl),
      headers: { 'x-forwarded-for': createBrowser(service).address },
      body: Buffer.from(JSON.stringify({ code, verifier: proof })),
    })
    let text = ''
    for await (const chunk of response.body) text += Buffer.from(chunk).toString()
    return { status: response.status, body: JSON.parse(text) }
  }

  const grant = async (browser: Browser, name = 'cli on fox') =>
    (await browser.post(CONSOLE_PATHS.logins, { challenge, name })).body.code as string

  test('a code is exchanged once for a key that works', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const code = await grant(browser)
    expect(code).toMatch(/^[\w-]{43}$/)
    const { status, body } = await exchange(service, code)
    expect([status, body.key.name]).toEqual([200, 'cli on fox'])
    expect((await ask(service, 'POST', '/api/v1/runs', FOX, { key: body.api_key })).status).toBe(201)
    expect(await exchange(service, code)).toMatchObject({
      status: 401,
      body: { error: { code: 'invalid_code' } },
    })
    expect((await browser.get(CONSOLE_PATHS.keys)).body.keys).toHaveLength(2)
  })

  test('a code with a wrong verifier is used up, and one of 60 s is expired', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    const [stolen, late, early] = [await grant(browser), await grant(browser), await grant(browser)]
    expect((await exchange(service, stolen, 'w'.repeat(43))).status).toBe(401)
    expect((await exchange(service, stolen)).status).toBe(401)
    await service.clock.advance(59_999)
    expect((await exchange(service, early)).status).toBe(200)
    await service.clock.advance(1)
    expect((await exchange(service, late)).status).toBe(401)
  })

  test('a code of an account that was banned meanwhile is 403', async () => {
    const service = await createConsoleService()
    const code = await grant(await signInByLink(service))
    const store = await openStoreOf(service)
    await store.setBanned('default', true)
    await store.close()
    expect(await exchange(service, code)).toMatchObject({
      status: 403,
      body: { error: { code: 'account_banned' } },
    })
  })

  test('a challenge and a name that are not valid are refused, and so is a browser of another site', async () => {
    const service = await createConsoleService()
    const browser = await signInByLink(service)
    for (const body of [{ challenge: 'x', name: 'a' }, { challenge, name: '' }, { challenge }, { name: 'a' }])
      expect((await browser.post(CONSOLE_PATHS.logins, body)).status).toBe(400)
    const code = await grant(browser)
    for (const headers of [
      { origin: 'https://evil.example' },
      { ...program, 'sec-fetch-site': 'cross-site' },
    ])
      expect(await browser.ask('POST', AUTH_PATHS.login, { code, verifier }, headers)).toMatchObject({
        status: 403,
        body: { error: { code: 'foreign_origin' } },
      })
    expect((await exchange(service, code)).status).toBe(200)
  })
})
