/** A service with models of its own: checks, prices, the list, the OpenAPI document, and runs of models that it lost. */
import { createHash } from 'node:crypto'
import { beforeAll, expect, test } from 'vitest'
import { readModelDocument } from '../../src/protocol/model-document.js'
import type { ServedModel } from '../../src/service/models/served-model.js'
import {
  type Asking,
  addAccount,
  ask,
  created,
  createInstantEngine,
  createTestService,
  finished,
  ONE_PIXEL_PNG,
  runOf,
  type TestService,
} from '../support/index.js'

const RUNS = '/api/v1/runs'
const MODELS = '/api/v1/models'

function served(value: object): ServedModel {
  const problems: string[] = []
  const document = readModelDocument(value, (path, message) => problems.push(`${path.join('.')} ${message}`))
  if (document === undefined) throw new Error(problems.join('; '))
  return { document, concurrency: 2 }
}

const FLUX = served({
  name: 'acme/flux',
  kind: 'image',
  input: {
    aspect_ratio: false,
    quality: { type: 'string', enum: ['basic', 'high'], default: 'high' },
    steps: { type: 'integer', minimum: 1, maximum: 50, required: true },
    palette: { type: 'object', description: 'Colours' },
  },
  price: { run: 2, factors: { quality: { high: 3 }, steps: { 50: 2.5 } } },
})
/** No prompt and no images. */
const NOISE = served({
  name: 'acme/flux-2',
  kind: 'image',
  input: { type: 'object', properties: { seed: { type: 'number', default: 7 } } },
  default: true,
})
const FILM = served({ name: 'acme/film', kind: 'video', input: { image_urls: false } })
/** Parameters without `maxLength`. */
const FREE = served({
  name: 'acme/free',
  kind: 'image',
  input: {
    negative_prompt: { type: 'string' },
    words: { type: 'array', items: { type: 'string' } },
    more: { type: 'object' },
  },
})
const MANY = [FLUX, NOISE, FILM]

/** Requests of an account with 100 credits and hardly any rate limit. */
async function createPaidService(models: readonly ServedModel[] = MANY) {
  const engine = createInstantEngine()
  const service = await createTestService({ models, engine })
  const key = await addAccount(service, 'acme', { rate: { requests: 1_000, windowMs: 1_000 } })
  const create = async (model: string, input: object) =>
    await ask(service, 'POST', RUNS, { model, input }, { key })
  return { service, engine, key, create }
}

/** For creates that are refused without an effect. */
let shared: Awaited<ReturnType<typeof createPaidService>>
beforeAll(async () => {
  shared = await createPaidService([...MANY, FREE])
})

test.each([
  ['acme/flux', { prompt: 'x' }, 'input.steps is missing.'],
  ['acme/flux-2', { image_urls: ['http://x.test/a.png'] }, 'This model takes no image_urls.'],
  ['acme/film', { prompt: 'x', image_urls: [{ sha256: 'a' }] }, 'This model takes no image_urls.'],
  [
    'acme/free',
    {
      prompt: 'x',
      negative_prompt: 'x'.repeat(131_000),
      words: ['x'.repeat(131_000)],
      other: 'x'.repeat(130),
    },
    'The parameters other than prompt and media have 262176 bytes of JSON together; the limit is 262144.',
  ],
  [
    'acme/flux-2',
    { prompt: 'x'.repeat(263_000) },
    'have 263013 bytes of JSON together; the limit is 262144.',
  ],
])('%s refuses %o', async (model, input, message) => {
  const { status, body } = await shared.create(model, input)
  expect([status, body.error.code]).toEqual([400, 'invalid_input'])
  expect(body.error.message).toContain(message)
})

test('a data: URL within an object is shown as its hash, and reaches the engine as it was sent', async () => {
  const { service, engine, key } = await createPaidService()
  const image_url = `data:image/png;base64,${ONE_PIXEL_PNG.toString('base64')}`
  const input = { prompt: 'x', steps: 2, palette: { layers: [{ image_url, weight: 1 }], note: image_url } }
  const sha256 = createHash('sha256').update(ONE_PIXEL_PNG).digest('hex')
  const summary = { sha256, bytes: ONE_PIXEL_PNG.byteLength, content_type: 'image/png' }
  const run = await finished(service, { model: 'acme/flux', input }, { key })
  expect(run.input.palette).toEqual({ layers: [{ image_url: summary, weight: 1 }], note: image_url })
  const { id, model } = run
  expect(engine.jobs).toMatchObject([{ input: { ...input, quality: 'high' }, run: { id, model } }])
})

test('no text of a user reaches an engine with the element that stable-diffusion.cpp executes', async () => {
  const words = [
    'a fox<sd_cpp_extra_args>{"width":4096,"height":4096}</sd_cpp_extra_args>',
    '<SD_CPP_EXTRA_ARGS>{}</SD_CPP_EXTRA_ARGS>a fox',
    'a fox<sd_cpp_<sd_cpp_extra_args></sd_cpp_extra_args>extra_args>{"seed":1}</sd_cpp_extra_args>',
    'a fox<sd_cpp_extra_args>{"a":"<"}</sd_cpp_extra_args>',
    'a fox</sd_cpp_extra_args>',
    'a fox<sd_cpp_</sd_cpp_extra_args>extra_args>{}',
  ]
  const [text = ''] = words
  const { service, engine, key } = shared
  const input = { prompt: text, negative_prompt: text, words, more: { [text]: text } }
  const run = await finished(service, { model: 'acme/free', input }, { key })
  expect(run.input).toMatchObject(input)
  expect(JSON.stringify(engine.jobs[0]?.input)).not.toMatch(/sd_cpp_extra_args|4096/i)
})

test('the refusal of an unknown model names the nearest one', async () => {
  const { status, body } = await shared.create('acme/filn', { prompt: 'x' })
  expect([status, body.error.code]).toEqual([400, 'model_not_found'])
  expect(body.error.message).toContain('Requested: "acme/filn". Did you mean "acme/film"?')
})

test('the list of models has documents without engines, and the limits of the key', async () => {
  const service = await createTestService({ models: MANY })
  const get = (asking: Asking = {}) => ask(service, 'GET', MODELS, undefined, asking)
  const { status, body, header } = await get()
  expect([status, header('content-type'), header('cache-control')]).toEqual([
    200,
    'application/json; charset=utf-8',
    'private, no-cache',
  ])
  expect(body.models.map(({ name, default: isDefault }: never) => [name, isDefault])).toEqual([
    ['acme/flux', undefined],
    ['acme/flux-2', true],
    ['acme/film', true],
  ])
  expect(Object.keys(body.models[0])).toEqual(['name', 'kind', 'input', 'price'])
  const [read] = body.models.map((each: object) => served(each).document)
  expect(read).toEqual({ ...FLUX.document })

  expect((await get({ authorization: '' })).body.error.code).toBe('missing_api_key')
  // 401 does not count: the key has had 1 of 20 requests.
  for (let count = 1; count < 20; count++) expect((await get()).status).toBe(200)
  expect((await get()).body.error.code).toBe('RATE_LIMITED')
})

test('a queued run of an earlier version, whose model was removed, stays queued and is reported once', async () => {
  const before = await createTestService({ models: MANY, rendering: false })
  const ids = []
  for (let count = 0; count < 2; count++) ids.push(await created(before, { model: 'acme/flux-2', input: {} }))
  await before.clock.runUntil(before.service.close())
  const { dataFolder, databaseUrl, apiKey } = before
  const engine = { ...createInstantEngine(), modelOf: async () => undefined }
  for (const [role, reported] of [
    ['api', []],
    ['all', [`${ids[0]} stays queued: this service does not have its model acme/flux-2`]],
  ] as const) {
    const service = {
      ...(await createTestService({ role, engine, models: [FLUX, FILM], dataFolder, databaseUrl })),
      apiKey,
    }
    for (const id of [...ids, ...ids]) {
      await service.clock.advance(2_000)
      expect((await runOf(service, id)).status).toBe('queued')
    }
    expect(service.complaints).toEqual(reported)
    await service.clock.runUntil(service.service.close())
  }
})

test('a run without a seed gets a random one within its bounds; a repeated create returns the same run', async () => {
  const seed = { type: 'integer', minimum: 5, maximum: 9 }
  const bounded = served({ name: 'acme/bounded', kind: 'image', input: { seed } })
  const fixed = served({ name: 'acme/fixed', kind: 'image', input: { seed: { ...seed, default: 7 } } })
  const { service, key } = await createPaidService([bounded, fixed])
  const create = async (model: string, input: object, headers = {}) =>
    (await ask(service, 'POST', RUNS, { model, input: { prompt: 'x', ...input } }, { key, headers })).body
  const headers = { 'idempotency-key': 'one' }
  const first = await create('acme/bounded', {}, headers)
  expect([5, 6, 7, 8, 9]).toContain(first.input.seed)
  expect(await create('acme/bounded', {}, headers)).toMatchObject({ id: first.id, input: first.input })
  expect((await create('acme/bounded', { seed: 6 })).input.seed).toBe(6)
  expect((await create('acme/fixed', {})).input).toEqual({ prompt: 'x' })
})

test('a repeated Idempotency-Key returns its run even if the model has changed since', async () => {
  const { service, key } = await createPaidService()
  const send = (to: TestService, input: object) => {
    const headers = { 'idempotency-key': 'shot-1' }
    return ask(to, 'POST', RUNS, { model: 'acme/flux', input }, { key, headers })
  }
  const input = { prompt: 'a fox', steps: 50, palette: { sky: 'blue' } }
  const { body } = await send(service, input)
  await service.clock.runUntil(service.service.close())
  const stricter = served({
    name: 'acme/flux',
    kind: 'image',
    input: { size: { type: 'string', required: true } },
  })
  for (const models of [[stricter], [NOISE]]) {
    const { dataFolder, databaseUrl, clock } = service
    const engine = createInstantEngine()
    const changed = await createTestService({ dataFolder, databaseUrl, clock, models, engine })
    const again = await send(changed, input)
    expect([again.status, again.body.id]).toEqual([201, body.id])
    expect((await send(changed, { ...input, steps: 49 })).status).toBe(400)
    await clock.runUntil(changed.service.close())
  }
})
