/** `rushes batch` and `rushes mcp` with models whose documents are known, or that the service knows. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { addModel } from '../../src/cli/models/known-models.js'
import { type Fetch, HttpFailure } from '../../src/host/http.js'
import { readModelDocument } from '../../src/protocol/model-document.js'
import {
  type CliService,
  createCliService,
  ONE_PIXEL_PNG,
  scriptedList,
  temporaryFolder,
} from '../support/index.js'
import { openMcp } from '../support/mcp.js'

const STILL = {
  name: 'rushes/preview-image',
  kind: 'image',
  input: {
    steps: { type: 'integer', minimum: 1, maximum: 50, description: 'Denoising steps' },
    wait: { type: 'string' },
    style: { type: 'object', description: 'How it looks' },
  },
  price: { run: 2, factors: { quality: { high: 2 } } },
}
const UPSCALE = {
  name: 'acme/upscale',
  kind: 'image',
  input: {
    type: 'object',
    required: ['image_urls', 'factor'],
    properties: {
      image_urls: { type: 'array', items: { type: 'string' } },
      factor: { type: 'number', enum: [2, 4], pattern: '(' },
    },
  },
}

async function add({ home }: CliService, ...documents: readonly object[]): Promise<void> {
  for (const each of documents) {
    const document = readModelDocument(each, (_, message) => expect.unreachable(message))
    await addModel(join(home, 'config'), document ?? expect.unreachable())
  }
}

const bodies = ({ requests }: CliService) =>
  requests
    .filter(({ method }) => method === 'POST')
    .map(({ body }) => JSON.parse(Buffer.from(body ?? '').toString()))

/** The service, with a list of models, and the number of requests for it. */
async function withList(models: readonly object[]) {
  const service = await createCliService()
  const list = scriptedList({ status: 200, body: { models } })
  const fetch: Fetch = (request) =>
    request.url.pathname.endsWith('/models') ? list.fetch(request) : service.counting(request)
  const path = join(temporaryFolder(), 'm.yaml')
  const batch = (text: string, ...flags: readonly string[]) => {
    writeFileSync(path, text)
    return service.run(['batch', path, ...flags], { fetch })
  }
  const offline = async (text: string, ...flags: readonly string[]) => {
    writeFileSync(path, text)
    const refused: Fetch = async () => {
      throw new HttpFailure('connect ECONNREFUSED', { sent: false })
    }
    return service.run(['batch', path, ...flags], { fetch: refused })
  }
  return { service, batch, offline, asked: () => list.requests.length }
}
const ROW = '- {name: a, model: rushes/preview-image, prompt: a fox, steps: 8}\n'

it.each([
  [['--check'], 10],
  [['--dry-run'], 0],
  [[], 0],
] as const)('a batch asks the service once before it reads the manifest: %j', async (flags, code) => {
  const { batch, asked } = await withList([STILL])
  for (let again = 0; again < 2; again++) expect(await batch(ROW, ...flags)).toMatchObject({ code })
  expect(asked()).toBe(1)
})

it('a batch without a list needs no network to check or to plan, and then knows only what the manifest has', async () => {
  const { batch, asked, offline } = await withList([STILL])
  for (const flag of ['--check', '--dry-run']) {
    const { code, stderr } = await offline(ROW, flag)
    expect(code).toBe(2)
    expect(stderr).toContain(
      ':1: input is missing, and the parameters of rushes/preview-image are not known here: `rushes models --refresh` asks the service.',
    )
  }
  expect(await batch(ROW, '--dry-run')).toMatchObject({ code: 0 })
  expect(asked()).toBe(1)
})

it('a batch checks the rows with the documents of the service', async () => {
  const { service, batch, asked } = await withList([STILL])
  expect(await batch(ROW)).toMatchObject({ code: 0 })
  expect(bodies(service)).toEqual([{ model: 'rushes/preview-image', input: { prompt: 'a fox', steps: 8 } }])
  // The list is kept.
  expect(await batch(ROW, '--check')).toMatchObject({ code: 0 })
  expect(asked()).toBe(1)
  // It may have changed.
  expect((await batch(ROW.replace('steps: 8', 'steps: 99'), '--check')).stderr).toContain(
    ':1: steps of rushes/preview-image must be a whole number from 1 to 50, not 99',
  )
  expect(asked()).toBe(2)
})

it.each([
  ['without a key', { RUSHES_API_KEY: '' }],
  ['with --local', { RUSHES_LOCAL: '1' }],
])('a batch asks nothing %s', async (_, env) => {
  const { service, batch, asked } = await withList([STILL])
  await batch(ROW, '--dry-run')
  expect(asked()).toBe(1)
  rmSync(join(service.home, 'state', 'models'), { recursive: true })
  for (const flags of [['--check'], ['--dry-run']])
    await service.run(['batch', service.home, ...flags], { env })
  await service.run('run image x --dry-run', { env })
  await service.run('models', { env })
  expect(asked()).toBe(1)
})

const MATRIX = '- {name: "fox-{steps}", kind: image, prompt: a fox, matrix: {steps: [10, 20]}}\n'

it('a batch asks before a key of a matrix is dropped, which the document has as a parameter', async () => {
  const { service, batch } = await withList([STILL])
  expect(await batch(MATRIX)).toMatchObject({ code: 0 })
  expect(bodies(service).map(({ input }) => input.steps)).toEqual([10, 20])
})

it('a batch creates equal inputs of a matrix without a document', async () => {
  const { service, batch } = await withList([])
  expect(await batch(MATRIX)).toMatchObject({ code: 0 })
  expect(bodies(service)).toHaveLength(2)
  expect(await batch(MATRIX, '--check')).toMatchObject({ code: 0 })
})

const document = (input: object, kind = 'image') => ({ name: `rushes/preview-${kind}`, kind, input })

it.each([
  [
    'a key of the matrix becomes a parameter',
    '- {name: "{seed}", kind: image, prompt: x, matrix: {seed: [1, 2]}}',
    { seed: { type: 'integer' } },
  ],
  [
    'a default is no parameter',
    'defaults: {kind: image, quality: high}\nruns: [{name: a, prompt: x}]',
    { quality: false },
  ],
  [
    'a parameter has another type',
    '- {name: a, kind: video, prompt: x, duration: 5, count: 2}',
    { duration: { type: 'integer' } },
  ],
])(
  'a run that was paid before the document of its model had its parameter is not paid again: %s',
  async (_, text, input) => {
    const service = await createCliService()
    const path = join(temporaryFolder(), 'm.yaml')
    writeFileSync(path, text)
    const batch = (...flags: readonly string[]) => service.run(['batch', path, ...flags])
    // A document that knows only the built-in parameters.
    if (text.includes('seed')) await add(service, document({}))
    expect(await batch()).toMatchObject({ code: 0 })
    await add(service, document(input, text.includes('video') ? 'video' : 'image'))
    expect(await batch('--check')).toMatchObject({ code: 0 })
    const sent = service.requests.length
    expect(await batch()).toMatchObject({ code: 0 })
    expect(service.requests).toHaveLength(sent)
    // An edit still counts.
    writeFileSync(path, text.replace(/prompt: "?/, '$&new '))
    expect(await batch('--check')).toMatchObject({ code: 10 })
  },
)

it('a run that was paid before the document of its model had its parameter costs nothing again on a machine that does not know the document yet', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), 'm.yaml')
  writeFileSync(path, '- {name: "{seed}", kind: image, prompt: x, matrix: {seed: [1, 2]}}')
  const seeded = document({ seed: { type: 'integer' } })
  await add(service, seeded)
  expect(await service.run(`batch ${path}`)).toMatchObject({ code: 0 })
  for (const folder of ['config', 'state'])
    rmSync(join(service.home, folder, 'models'), { recursive: true, force: true })
  const list = scriptedList({ status: 200, body: { models: [seeded] } })
  const fetch: Fetch = (request) =>
    request.url.pathname.endsWith('/models') ? list.fetch(request) : service.counting(request)
  const sent = service.requests.length
  expect(await service.run(`batch ${path}`, { fetch })).toMatchObject({ code: 0 })
  expect(list.requests).toHaveLength(1)
  expect(service.requests).toHaveLength(sent)
})

async function open() {
  const service = await createCliService()
  await add(service, STILL, UPSCALE)
  return { service, mcp: await openMcp(service) }
}

it('an MCP server sends values of the document, and images of a folder to any model that takes them', async () => {
  const { service, mcp } = await open()
  writeFileSync(join(mcp.folder, 'a.png'), ONE_PIXEL_PNG)
  const style = { ink: [1, { deep: null }] }
  await mcp.call('create_image', { prompt: 'x', steps: 8, style })
  await mcp.call('create_model_run', { model: 'acme/upscale', input: { image_urls: ['a.png'], factor: 2 } })
  const image = `data:image/png;base64,${ONE_PIXEL_PNG.toString('base64')}`
  expect(bodies(service)).toEqual([
    { model: 'rushes/preview-image', input: { prompt: 'x', steps: 8, style } },
    { model: 'acme/upscale', input: { image_urls: [image], factor: 2 } },
  ])
  const outside = { model: 'acme/upscale', input: { image_urls: ['../a.png'], factor: 2 } }
  expect((await mcp.call('create_model_run', outside)).isError).toBe(true)
  expect(bodies(service)).toHaveLength(2)
})
