import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LOCAL_MODELS } from '../../src/service/local-models.js'
import { type Asking, addAccount, ask, createTestService } from '../support/service.js'
import { openStoreOf, runSql, usesPostgres } from '../support/test-database.js'

const RUNS = '/api/v1/runs'
const IMAGE = LOCAL_MODELS.image
const good = { model: IMAGE, input: { prompt: 'a fox' } }
const deep = (levels: number): string => `${'['.repeat(levels)}${']'.repeat(levels)}`

test.each<[name: string, body: unknown, code: string, says?: RegExp]>([
  ['nothing', undefined, 'invalid_json', /empty/],
  ['an empty body', '', 'invalid_json'],
  ['half an object', '{"model":', 'invalid_json'],
  ['bytes that are no UTF-8', Buffer.from([0x22, 0xff, 0x22]), 'invalid_json'],
  ['a list', [], 'missing_model'],
  ['null', 'null', 'missing_model'],
  ['a string', '"model"', 'missing_model'],
  ['no model', { input: {} }, 'missing_model'],
  ['a model that is not a string', { model: 7, input: { prompt: 'x' } }, 'missing_model'],
  ['a model in the prototype', '{"__proto__": {"model": "x", "input": {}}}', 'missing_model'],
  ['no input', { model: IMAGE }, 'missing_input'],
  ['no input for an unknown model', { model: 'acme/none' }, 'missing_input'],
  ['an input that is a list', { model: IMAGE, input: [] }, 'missing_input'],
  ['an input that is null', { model: IMAGE, input: null }, 'missing_input'],
  [
    'an unknown model',
    { model: 'acme/none', input: {} },
    'model_not_found',
    /acme\/none.*rushes\/preview-image/,
  ],
  ['a name of another form', { model: 'preview', input: {} }, 'model_not_found'],
  ['an empty name', { model: '', input: {} }, 'model_not_found'],
  ['a name of Object.prototype', { model: 'constructor', input: {} }, 'model_not_found'],
  ['no prompt', { model: IMAGE, input: {} }, 'invalid_input', /input\.prompt is missing/],
  [
    'a value outside the schema',
    { model: IMAGE, input: { prompt: 'x', quality: 'hi' } },
    'invalid_input',
    /did you mean "high"/,
  ],
  [
    'a number for a string',
    { model: LOCAL_MODELS.video, input: { prompt: 'x', duration: 5 } },
    'invalid_input',
    /5, 10/,
  ],
  ['an odd object', { model: IMAGE, input: { prompt: 'x', quality: { toString: 1 } } }, 'invalid_input'],
  [
    'too many images',
    { model: IMAGE, input: { prompt: 'x', image_urls: Array(15).fill('http://x') } },
    'invalid_input',
    /at most 14/,
  ],
  ['an image that is no string', { model: IMAGE, input: { prompt: 'x', image_urls: [1] } }, 'invalid_input'],
  [
    'a broken data: URL',
    { model: IMAGE, input: { prompt: 'x', image_urls: ['data:image/png;base64,?'] } },
    'invalid_input',
    /image_urls\/0.*base64/,
  ],
  [
    'an abyss',
    `{"model": "${IMAGE}", "input": {"prompt": "x", "more": ${deep(50_000)}}}`,
    'invalid_input',
    /nested more than 100 levels/,
  ],
  [
    'an abyss for a value',
    `{"model": "${IMAGE}", "input": {"prompt": "x", "quality": ${deep(50_000)}}}`,
    'invalid_input',
    /nested/,
  ],
  ['an endless list that is no JSON', '['.repeat(1_000_000), 'invalid_input', /nested/],
  [
    'a great many values',
    `{"model": "${IMAGE}", "input": {"prompt": "x", "more": [${'[],'.repeat(100_000)}0]}}`,
    'invalid_input',
    /more than 10000 values/,
  ],
  [
    'a long prompt',
    { model: IMAGE, input: { prompt: 'x'.repeat(100_001) } },
    'invalid_input',
    /prompt has 100001 characters; the limit is 100000/,
  ],
  [
    'large unknown fields',
    { model: IMAGE, input: { prompt: 'x', a: 'x'.repeat(40_000), b: 'x'.repeat(40_000) } },
    'invalid_input',
    /fields that the model does not define have 800\d\d bytes/,
  ],
  [
    'many images for a video',
    { model: LOCAL_MODELS.video, input: { prompt: 'x', image_urls: Array(15).fill('http://x') } },
    'invalid_input',
    /15 images; the limit is 14/,
  ],
  [
    'a long address of an image',
    { model: IMAGE, input: { prompt: 'x', image_urls: ['http://x', `http://x/${'y'.repeat(9_000)}`] } },
    'invalid_input',
    /image_urls\/1 is longer than 8192/,
  ],
  [
    'a huge number',
    `{"model":"${IMAGE}","input":{"prompt":"x","a":1e999}}`,
    'invalid_input',
    /input\.a is a number outside the range of ±1\.79\d+e\+308/,
  ],
  [
    'a huge number deep inside',
    `{"model":"${IMAGE}","input":{"prompt":"x","a":{"b":[1,-${'9'.repeat(400)}]}}}`,
    'invalid_input',
    /input\.a\/b\/1 is a number outside the range/,
  ],
])('400: %s', async (_name, body, code, says = /./) => {
  const service = await createTestService()
  const answer = await ask(service, 'POST', RUNS, body)
  expect(answer.status).toBe(400)
  expect(answer.body).toEqual({ error: { message: expect.stringMatching(says), code } })
  expect(service.complaints).toEqual([])
})

test('whatever is in a body, and whatever type it says it has, the answer is one of the interface’s', async () => {
  const service = await createTestService({ rendering: false })
  const key = fc.constantFrom('model', 'input', 'prompt', 'image_urls', 'quality', '__proto__', 'toString')
  const value = fc.letrec((tie) => ({
    any: fc.oneof(
      { maxDepth: 4 },
      fc.constantFrom(IMAGE, LOCAL_MODELS.video, 'data:,x', 'data:;base64,%zz', 'high', '\ud800', null, 14),
      fc.string(),
      fc.array(tie('any'), { maxLength: 16 }),
      fc.dictionary(fc.oneof(key, fc.string()), tie('any')),
    ),
  })).any
  const body = fc.oneof(
    fc.uint8Array(),
    fc.json(),
    value.map((each) => JSON.stringify(each)),
    fc.record({ model: fc.constant(IMAGE), input: value }).map((each) => JSON.stringify(each)),
  )
  const type = fc.constantFrom(
    'application/json',
    'text/plain',
    ';;;',
    'multipart/form-data',
    'application/json; charset=x',
  )
  await fc.assert(
    fc.asyncProperty(body, type, async (sent, contentType) => {
      await service.clock.advance(10_000)
      const answer = await ask(service, 'POST', RUNS, sent, { headers: { 'content-type': contentType } })
      expect([201, 400]).toContain(answer.status)
    }),
    { numRuns: 150 },
  )
  expect(service.complaints).toEqual([])
})

test.each<[name: string, asking: Asking, code: string]>([
  ['no header', { authorization: '' }, 'missing_api_key'],
  ['no scheme', { authorization: 'rk_123' }, 'missing_api_key'],
  ['another scheme', { authorization: 'Basic cms6' }, 'missing_api_key'],
  ['no key', { authorization: 'Bearer ' }, 'missing_api_key'],
  ['two words', { authorization: 'Bearer a b' }, 'missing_api_key'],
  ['an unknown key', { key: 'rk_unknown' }, 'invalid_api_key'],
])('401: %s', async (_name, asking, code) => {
  const service = await createTestService()
  for (const [method, path] of [
    ['POST', RUNS],
    ['GET', `${RUNS}/run_x`],
  ] as const) {
    const answer = await ask(service, method, path, method === 'POST' ? '{' : undefined, asking)
    expect(answer.status).toBe(401)
    expect(answer.body.error.code).toBe(code)
  }
})

test('the scheme may be written in any case, and spaces may follow it', async () => {
  const service = await createTestService()
  for (const authorization of [`bearer ${service.apiKey}`, `BEARER   ${service.apiKey} `])
    expect((await ask(service, 'POST', RUNS, good, { authorization })).status).toBe(201)
})

test('a disabled key, and one from the instant it expires, is invalid', async () => {
  const service = await createTestService()
  const disabled = await addAccount(service, 'one', { disabled: true })
  const expiring = await addAccount(service, 'two', { expiresAtMs: service.clock.now() + 5_000 })
  const answer = (key: string) => ask(service, 'POST', RUNS, good, { key })
  expect((await answer(disabled)).body.error.code).toBe('invalid_api_key')
  await service.clock.advance(4_999)
  expect((await answer(expiring)).status).toBe(201)
  await service.clock.advance(1)
  expect((await answer(expiring)).body.error.code).toBe('invalid_api_key')
})

test('a run is there for its account alone, whichever key asks', async () => {
  const service = await createTestService()
  const [stranger, first] = [await addAccount(service, 'stranger'), await addAccount(service, 'default')]
  const { body } = await ask(service, 'POST', RUNS, good)
  const look = (path: string, key?: string) =>
    ask(service, 'GET', path, undefined, { key: key ?? service.apiKey })
  const path = `${RUNS}/${body.id}`
  expect((await look(path, first)).status).toBe(200)
  const hidden = await look(path, stranger)
  expect(hidden.status).toBe(404)
  expect(hidden.body.error.code).toBe('run_not_found')
  expect(hidden.body).toEqual((await look(`${RUNS}/run_never`)).body)
  for (const odd of ['%20', '%2e%2e%2fx', '%00', 'a'.repeat(3_000), 'run_%F0%9F%A6%8A'])
    expect((await look(`${RUNS}/${odd}`)).body.error.code).toBe('run_not_found')
})

test('checks run in order: key, rate, body', async () => {
  const service = await createTestService({ bodyLimitBytes: 100 })
  const large = 'x'.repeat(101)
  const codes = async (asking?: Asking) => (await ask(service, 'POST', RUNS, large, asking)).body.error.code
  expect(await codes({ authorization: '' })).toBe('missing_api_key')
  for (let count = 0; count < 20; count++) expect(await codes()).toBe('payload_too_large')
  expect(await codes()).toBe('RATE_LIMITED')
  expect(await codes({ key: 'rk_unknown' })).toBe('invalid_api_key')
})

test('a key with a rate of its own has that limit, from its next request on', async () => {
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

test('20 requests in 10 s for each key, both endpoints together; what was refused does not count', async () => {
  const service = await createTestService({ rendering: false })
  const other = await addAccount(service, 'default')
  const create = (key?: string) => ask(service, 'POST', RUNS, good, { key: key ?? service.apiKey })
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
  ['GET', '/api/v1/run', 404, 'not_found'],
  ['GET', `${RUNS}/a/b`, 404, 'not_found'],
  ['GET', `${RUNS}/%zz`, 404, 'run_not_found'],
  ['GET', `${RUNS}/%ff`, 404, 'run_not_found'],
  ['GET', '/%zz', 404, 'not_found'],
  ['GET', RUNS, 405, 'method_not_allowed'],
  ['POST', `${RUNS}/run_x`, 405, 'method_not_allowed'],
  ['POST', '/outputs/a/b', 405, 'method_not_allowed'],
] as const)('%s %s is %d %s', async (method, path, status, code) => {
  const service = await createTestService()
  const answer = await ask(service, method, path)
  expect([answer.status, answer.body.error.code]).toEqual([status, code])
  expect(answer.header('allow') !== undefined).toBe(status === 405)
})

test('an error of the service’s own says nothing of its inside', async () => {
  const service = await createTestService({ rendering: false })
  await runSql(service, 'ALTER TABLE runs RENAME TO lost')
  const answer = await ask(service, 'POST', RUNS, good)
  expect(answer.status).toBe(500)
  expect(answer.body).toEqual({
    error: { code: 'internal_error', message: 'Internal error of the service.' },
  })
  expect(String(service.complaints[0])).toMatch(
    usesPostgres ? /relation "runs" does not exist/ : /no such table/,
  )
})
