/** The OpenAPI document: whether it is valid, whether it is served, and whether it says what the service does. */
import { Validator } from '@seriousme/openapi-schema-validator'
import { beforeAll, expect, test } from 'vitest'
import { OPENAPI_PATH, RUNS_PATH } from '../../src/protocol/id.js'
import { RUNS_LIMIT } from '../../src/protocol/limits.js'
import { PROBLEMS } from '../../src/protocol/problems.js'
import { LOCAL_MODELS } from '../../src/service/rules/names.js'
import { runObject, type StoredRun } from '../../src/service/store/run.js'
import { addAccount, ask, createTestService, FOX, ONE_PIXEL_URL, type TestService } from '../support/index.js'
import { createDocumentCheck } from './openapi-check.js'

const BOAT = {
  model: LOCAL_MODELS.video,
  input: {
    prompt: 'a boat',
    duration: '10',
    image_urls: ['http://x.test/a.png', ONE_PIXEL_URL],
    mood: 'calm',
  },
}

const check = createDocumentCheck()
const { document } = check

test('the OpenAPI document is valid OpenAPI 3.1, and all its references resolve', async () => {
  const validator = new Validator()
  expect(await validator.validate(structuredClone(document) as never)).toEqual({ valid: true })
  expect(validator.version).toBe('3.1')
  expect(validator.resolveRefs()).toHaveProperty(['paths', RUNS_PATH, 'post', 'responses', '201'])
})

test('the OpenAPI document has every error code of the interface, and the rate limit', () => {
  const codes = check.codes()
  expect(Object.keys(PROBLEMS).filter((code) => !codes.has(code))).toEqual([])
  const { requests, windowMs } = RUNS_LIMIT
  expect(JSON.stringify(document)).toContain(`${requests} in any ${windowMs / 1_000} seconds`)
})

test('the run of the OpenAPI document has the fields of the run object, and no other', () => {
  const run: StoredRun = {
    id: 'run_x',
    accountId: 1,
    model: LOCAL_MODELS.image,
    kind: 'image',
    input: { prompt: 'a fox' },
    status: 'processing',
    outputs: [],
    failure: undefined,
    createdAtMs: 0,
    startedAtMs: 0,
    finishedAtMs: undefined,
  }
  const { Run } = document.components.schemas as { Run: { required: string[]; properties: object } }
  expect(Run.required).toEqual(Object.keys(runObject(run, '')))
  const whole = runObject(run, '', { progress: 0.5, queue_position: 1 })
  expect(Object.keys(Run.properties).sort()).toEqual(Object.keys(whole).sort())
})

test('the examples of the OpenAPI document match its schemas', () => {
  const contents = Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.entries(operations).flatMap(([method, { responses }]) =>
      Object.entries(responses).map(([status, response]) => ({ path, method, status, response })),
    ),
  )
  const problems = contents.flatMap(({ path, method, status, response }) =>
    examplesOf(response).flatMap((body) =>
      check.problemsOf({ method: method.toUpperCase(), path, status: Number(status), body }),
    ),
  )
  expect(problems).toEqual([])
  const body = document.paths[RUNS_PATH]?.post?.requestBody?.content['application/json'] ?? {}
  const creates = examplesOf({ content: { 'application/json': body } })
  expect(creates.map((each) => check.accepts(RUNS_PATH, each))).toEqual([true, true, true])
})

function examplesOf({ content = {} }: { readonly content?: object }): readonly unknown[] {
  const { 'application/json': json } = content as {
    'application/json'?: { examples?: Record<string, { value: unknown }> }
  }
  return Object.values(json?.examples ?? {}).map(({ value }) => value)
}

test('serves its OpenAPI document without a key or limit, with its URL', async () => {
  const service = await createTestService({
    publicUrl: 'https://media.example/rushes/',
  })
  const get = () => ask(service, 'GET', OPENAPI_PATH, undefined, { authorization: '' })
  const { status, body, header } = await get()
  expect([status, header('content-type'), header('cache-control')]).toEqual([
    200,
    'application/json; charset=utf-8',
    'no-cache',
  ])
  expect(body.servers).toEqual([{ url: 'https://media.example/rushes' }])
  for (let count = 0; count < 30; count++) expect((await get()).status).toBe(200)
})

/** Renders nothing, and has no limit to speak of. */
let shared: TestService
let key: string
beforeAll(async () => {
  shared = await createTestService({ rendering: false })
  key = await addAccount(shared, 'often', { rate: { requests: 10_000, windowMs: 1_000 } })
})

const image = (input: object) => ({ ...FOX, input: { prompt: 'x', ...input } })
const urls = (count: number) => Array.from({ length: count }, (_, at) => `http://x.test/${at}`)

test.each([
  ['an image', FOX, true],
  ['a video with everything', BOAT, true],
  ['an unknown field', image({ seed: 7, more: { a: [null] } }), true],
  ['an empty prompt', image({ prompt: '' }), true],
  ['14 images', image({ image_urls: urls(14) }), true],
  ['a long data: URL', image({ image_urls: [`DATA:,${'x'.repeat(9_000)}`] }), true],
  ['the longest URL', image({ image_urls: [`http://x/${'y'.repeat(8_183)}`] }), true],
  ['the longest prompt', image({ prompt: 'x'.repeat(100_000) }), true],
  ['15 images', image({ image_urls: urls(15) }), false],
  ['15 images for a video', { ...BOAT, input: { prompt: 'x', image_urls: urls(15) } }, false],
  ['a longer URL', image({ image_urls: [`http://x/${'y'.repeat(8_184)}`] }), false],
  ['a longer prompt', image({ prompt: 'x'.repeat(100_001) }), false],
  ['null for a parameter', image({ quality: null }), false],
  ['no prompt', { ...FOX, input: {} }, false],
  ['a number for a prompt', image({ prompt: 7 }), false],
  ['a parameter of the other model', image({ resolution: 7 }), true],
  ['an unknown model', { ...FOX, model: 'acme/none' }, false],
  ['no input', { model: FOX.model }, false],
  ['a list', [FOX], false],
])('the OpenAPI document and the service agree on %s', async (_name, body, accepted) => {
  const { status } = await ask(shared, 'POST', RUNS_PATH, JSON.stringify(body), { key })
  expect([status === 201, check.accepts(RUNS_PATH, body)]).toEqual([accepted, accepted])
})
