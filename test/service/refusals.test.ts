import { beforeAll, expect, test } from 'vitest'
import { checkStructure } from '../../src/service/rules/create-request.js'
import { LOCAL_MODELS } from '../../src/service/rules/names.js'
import {
  type Asking,
  addAccount,
  ask,
  created,
  createTestService,
  FOX,
  type TestService,
} from '../support/index.js'
import { openStoreOf, runSql, usesPostgres } from '../support/test-database.js'

const RUNS = '/api/v1/runs'
const IMAGE = LOCAL_MODELS.image
const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`

/** For what is refused without an effect. */
let shared: TestService
let key: string
beforeAll(async () => {
  shared = await createTestService()
  key = await addAccount(shared, 'often', { rate: { requests: 10_000, windowMs: 1_000 } })
})

const image = (input: unknown) => ({ model: IMAGE, input })
const video = (input: unknown) => ({ model: LOCAL_MODELS.video, input })
/** An image with a prompt, and with what is written here as JSON. */
const raw = (more: string) => `{"model": "${IMAGE}", "input": {"prompt": "x", ${more}}}`
const urls = (count: number) => Array(count).fill('http://x')

test.each<[name: string, body: unknown, code: string, says?: RegExp]>([
  ['nothing', undefined, 'invalid_json', /empty/],
  ['an empty body', '', 'invalid_json'],
  ['half an object', '{"model":', 'invalid_json'],
  ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'invalid_json'],
  ['a list', [], 'missing_model'],
  ['no model', { input: {} }, 'missing_model'],
  ['a model that is not a string', { model: 7, input: { prompt: 'x' } }, 'missing_model'],
  ['a model in the prototype', '{"__proto__": {"model": "x", "input": {}}}', 'missing_model'],
  ['no input', { model: IMAGE }, 'missing_input'],
  ['no input for an unknown model', { model: 'acme/none' }, 'missing_input'],
  ['an input that is a list', image([]), 'missing_input'],
  ['an unknown model', { model: 'acme/none', input: {} }, 'model_not_found', /acme\/none/],
  ['a name of Object.prototype', { model: 'constructor', input: {} }, 'model_not_found'],
  ['no prompt', image({}), 'invalid_input', /input\.prompt is missing/],
  [
    'a value outside the schema',
    image({ prompt: 'x', quality: 'hi' }),
    'invalid_input',
    /did you mean "high"/,
  ],
  ['a number for a string', video({ prompt: 'x', duration: 5 }), 'invalid_input', /5, 10/],
  ['too many images', image({ prompt: 'x', image_urls: urls(15) }), 'invalid_input', /at most 14/],
  ...['fox.png', 'file:///etc/passwd', 'http:fox', 'https://', ''].map(
    (url): [string, unknown, string, RegExp] => [
      `an image at "${url}"`,
      image({ prompt: 'x', image_urls: [url] }),
      'invalid_input',
      /input\.image_urls\/0 is not an http\(s\) or data: URL/,
    ],
  ),
  ['an image that is no string', image({ prompt: 'x', image_urls: [1] }), 'invalid_input'],
  [
    'a data: URL that is not base64',
    image({ prompt: 'x', image_urls: ['data:image/png;base64,?'] }),
    'invalid_input',
    /image_urls\/0.*base64/,
  ],
  [
    'a data: URL with many attributes',
    image({ prompt: 'x', image_urls: [`data:image/png${';a'.repeat(500)};base64,AAAA`] }),
    'invalid_input',
    /image_urls\/0 is a data: URL with more than 1000 characters before its data/,
  ],
  ['an abyss', raw(`"more": ${deep(50_000)}`), 'invalid_input', /nested more than 100 levels/],
  ['an endless list that is no JSON', '['.repeat(1_000_000), 'invalid_input', /nested/],
  ['a huge number', raw('"a": -1e999'), 'invalid_input', /input\.a is a number outside the range/],
  ['many values', raw(`"more": [${'[],'.repeat(100_000)}0]`), 'invalid_input', /more than 10000 values/],
  ['many texts that are no JSON', '"'.repeat(100_000), 'invalid_input', /more than 10000 values/],
  [
    'an abyss behind a text that ends with backslashes',
    raw(String.raw`"a": "\\\"[\\", "more": ${deep(50_000)}`),
    'invalid_input',
    /nested more than 100 levels/,
  ],
  [
    'a long prompt',
    image({ prompt: 'x'.repeat(100_001) }),
    'invalid_input',
    /prompt has 100001 characters; the limit is 100000/,
  ],
  [
    'large unknown fields',
    image({ prompt: 'x', a: 'x'.repeat(140_000), b: 'x'.repeat(140_000) }),
    'invalid_input',
    /parameters other than prompt and media have 2800\d\d bytes/,
  ],
  [
    'many images for a video',
    video({ prompt: 'x', image_urls: urls(15) }),
    'invalid_input',
    /15 files; the limit is 14/,
  ],
  [
    'a long address of an image',
    image({ prompt: 'x', image_urls: ['http://x', `http://x/${'y'.repeat(9_000)}`] }),
    'invalid_input',
    /image_urls\/1 is longer than 8192/,
  ],
  ...['data:image/png;base64', 'data:image/png;base64,%4', 'data:text/plain,100%'].map(
    (url): [string, unknown, string, RegExp] => [
      `a broken data: URL (${url})`,
      image({ prompt: 'x', image_urls: ['https://example.org/a.png', url] }),
      'invalid_input',
      /input\.image_urls\/1 is a data: URL/,
    ],
  ),
])('answers 400 to %s', async (_name, body, code, says = /./) => {
  const answer = await ask(shared, 'POST', RUNS, body, { key })
  expect(answer.status).toBe(400)
  expect(answer.body).toEqual({ error: { message: expect.stringMatching(says), code } })
  expect(shared.complaints).toEqual([])
})

test('the check of a large body does not look at each byte of a picture', () => {
  let looks = 0
  const body = new Proxy(Buffer.from(`["${'A'.repeat(1_048_576)}"]`), {
    get(bytes, name) {
      looks++
      const value = Reflect.get(bytes, name)
      return typeof value === 'function' ? value.bind(bytes) : value
    },
  })
  checkStructure(body)
  expect(looks).toBeLessThan(20)
})

test.each<[name: string, asking: Asking, code: string]>([
  ['no header', { authorization: '' }, 'missing_api_key'],
  ['no key', { authorization: 'Bearer ' }, 'missing_api_key'],
  ['two words', { authorization: 'Bearer a b' }, 'missing_api_key'],
  ['an unknown key', { key: 'rk_unknown' }, 'invalid_api_key'],
])('answers 401 to a request with %s', async (_name, asking, code) => {
  for (const { status, body } of [
    await ask(shared, 'POST', RUNS, '{', asking),
    await ask(shared, 'GET', `${RUNS}/run_x`, undefined, asking),
  ])
    expect([status, body.error.code]).toEqual([401, code])
})

test('the scheme may be written in any case, and spaces may follow it', async () => {
  const service = await createTestService()
  for (const authorization of [`bearer ${service.apiKey}`, `BEARER   ${service.apiKey} `])
    expect((await ask(service, 'POST', RUNS, FOX, { authorization })).status).toBe(201)
})

test('a key is invalid from the instant it expires', async () => {
  const service = await createTestService()
  const expiring = await addAccount(service, 'two', { expiresAtMs: service.clock.now() + 5_000 })
  const answer = (key: string) => ask(service, 'POST', RUNS, FOX, { key })
  await service.clock.advance(4_999)
  expect((await answer(expiring)).status).toBe(201)
  await service.clock.advance(1)
  expect((await answer(expiring)).body.error.code).toBe('invalid_api_key')
})

test('a run is visible to every key of its account, and to no other', async () => {
  const service = await createTestService()
  const [stranger, first] = [await addAccount(service, 'stranger'), await addAccount(service, 'default')]
  const id = await created(service)
  const look = (path: string, key?: string) =>
    ask(service, 'GET', path, undefined, { key: key ?? service.apiKey })
  const path = `${RUNS}/${id}`
  expect((await look(path, first)).status).toBe(200)
  const hidden = await look(path, stranger)
  expect(hidden.status).toBe(404)
  expect(hidden.body.error.code).toBe('run_not_found')
  expect(hidden.body).toEqual((await look(`${RUNS}/run_never`)).body)
  for (const odd of ['%20', '%2e%2e%2fx', '%00', 'a'.repeat(3_000), 'run_%F0%9F%A6%8A'])
    expect((await look(`${RUNS}/${odd}`)).body.error.code).toBe('run_not_found')
})

test('a rate of its own limits a key from the next request', async () => {
  const service = await createTestService({ rendering: false })
  const key = await addAccount(service, 'large', { rate: { requests: 50, windowMs: 1_000 } })
  const look = async () => (await ask(service, 'GET', `${RUNS}/run_never`, undefined, { key })).status
  for (let count = 0; count < 50; count++) expect(await look()).toBe(404)
  expect(await look()).toBe(429)
  await service.clock.advance(1_000)
  expect(await look()).toBe(404)
  const store = await openStoreOf(service)
  await store.changeKey(2, { rate: { requests: 2, windowMs: 1_000 } })
  await store.close()
  expect([await look(), await look()]).toEqual([404, 429])
})

test('each key gets 20 requests in 10 s over both endpoints; refused requests do not count', async () => {
  const service = await createTestService({ rendering: false })
  const other = await addAccount(service, 'default')
  const create = (key?: string) => ask(service, 'POST', RUNS, FOX, { key: key ?? service.apiKey })
  const look = () => ask(service, 'GET', `${RUNS}/run_never`)
  for (let count = 0; count < 10; count++) {
    expect((await create()).status).toBe(201)
    expect((await look()).status).toBe(404)
  }
  for (const answer of [await create(), await look()]) {
    expect(answer.status).toBe(429)
    expect(answer.body.error).toEqual({
      code: 'RATE_LIMITED',
      message: expect.stringMatching(/^Rate limit exceeded/),
    })
  }
  expect((await create(other)).status).toBe(201)
  await service.clock.advance(9_999)
  expect((await create()).status).toBe(429)
  await service.clock.advance(1)
  for (let count = 0; count < 20; count++) expect((await create()).status).toBe(201)
  expect((await create()).status).toBe(429)
})

test.each([
  ['GET', '/', 404, 'not_found'],
  ['GET', `${RUNS}/a/b`, 404, 'not_found'],
  ['GET', `${RUNS}/%zz`, 404, 'run_not_found'],
  ['GET', `${RUNS}/%ff`, 404, 'run_not_found'],
  ['GET', '/%zz', 404, 'not_found'],
  ['GET', RUNS, 404, 'not_found'],
  ['POST', `${RUNS}/run_x`, 404, 'not_found'],
  ['POST', '/outputs/a/b', 404, 'not_found'],
] as const)('%s %s is %d %s', async (method, path, status, code) => {
  const answer = await ask(shared, method, path, undefined, { key })
  expect([answer.status, answer.body.error.code]).toEqual([status, code])
})

test('an internal error reveals no detail', async () => {
  const service = await createTestService({ rendering: false })
  await runSql(service, 'ALTER TABLE runs RENAME TO lost')
  const answer = await ask(service, 'POST', RUNS, FOX)
  expect(answer.status).toBe(500)
  expect(answer.body).toEqual({
    error: { code: 'internal_error', message: 'Internal error of the service.' },
  })
  expect(service.complaints[0]).toMatch(usesPostgres ? /relation "runs" does not exist/ : /no such table/)
})
