/** `rushes batch` and `rushes mcp` with models whose documents are known, or that the service knows. */
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { HttpFailure } from '../../src/host/http.js'
import {
  type CliService,
  createCliService,
  ONE_PIXEL_PNG,
  outputOf,
  scripted,
  scriptedList,
  temporaryFolder,
  usageErrorOf,
  withListOf,
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

function add({ run, home }: CliService, document: object) {
  const path = join(home, 'model.json')
  writeFileSync(path, JSON.stringify(document))
  return run(`models add ${path}`)
}

/** The service, with a list of models, and the number of requests for it. */
async function withList(models: readonly object[]) {
  const service = await createCliService()
  const list = scriptedList({ status: 200, body: { models } })
  const path = join(temporaryFolder(), 'm.yaml')
  const batch = (text: string, flag = '', fetch = withListOf(list.fetch, service.counting)) => {
    writeFileSync(path, text)
    return service.run(`batch ${path} ${flag}`, { fetch })
  }
  return { service, batch, asked: () => list.requests.length }
}
const ROW = '- {name: a, model: rushes/preview-image, prompt: a fox, steps: 8}\n'

it.each([
  ['--check', 10],
  ['--dry-run', 0],
])('a batch requests the list of the service once, with %s', async (flag, code) => {
  const { batch, asked } = await withList([STILL])
  for (let again = 0; again < 2; again++) expect(await batch(ROW, flag)).toMatchObject({ code })
  expect(asked()).toBe(1)
})

it('a batch that cannot reach the service checks and plans with what the manifest has', async () => {
  const { batch } = await withList([STILL])
  const offline = scripted(new HttpFailure('connect ECONNREFUSED', { sent: false }))
  expect(usageErrorOf(await batch(ROW, '--check', offline.fetch))).toContain(
    ':1: the parameters of rushes/preview-image are not known here: `rushes models --refresh` asks the service.',
  )
})

it('a batch checks and sends its rows with the documents of the service, and requests the list again before an error', async () => {
  const { service, batch, asked } = await withList([STILL])
  outputOf(await batch(ROW))
  expect(service.creates()).toEqual([{ model: 'rushes/preview-image', input: { prompt: 'a fox', steps: 8 } }])
  expect((await batch(ROW.replace('steps: 8', 'steps: 99'), '--check')).stderr).toContain(
    ':1: steps of rushes/preview-image must be a whole number from 1 to 50, not 99',
  )
  expect(asked()).toBe(2)
})

it.each([
  ['without a key', { RUSHES_API_KEY: '' }],
  ['with --local', { RUSHES_LOCAL: '1' }],
])('no command requests a list %s', async (_, env) => {
  const service = await createCliService()
  const list = scriptedList({ status: 200, body: { models: [STILL] } })
  const path = join(temporaryFolder(), 'm.yaml')
  writeFileSync(path, ROW)
  for (const line of [`batch ${path} --check`, `batch ${path} --dry-run`, 'run image x --dry-run', 'models'])
    await service.run(line, { env, fetch: withListOf(list.fetch, service.counting) })
  expect(list.requests).toEqual([])
})

const SEEDED = { name: 'rushes/preview-image', kind: 'image', input: { seed: { type: 'integer' } } }
const SEEDS = '- {name: "{seed}", kind: image, prompt: x, matrix: {seed: [1, 2]}}'

it('a run that was paid before its document was known is not paid again', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), 'm.yaml')
  writeFileSync(path, SEEDS)
  const batch = (flag = '') => service.run(`batch ${path} ${flag}`)
  // A document that knows only the built-in parameters.
  await add(service, { ...SEEDED, input: {} })
  outputOf(await batch())
  await add(service, SEEDED)
  outputOf(await batch('--check'))
  const sent = service.requests.length
  outputOf(await batch())
  expect(service.requests).toHaveLength(sent)
  // An edit still counts.
  writeFileSync(path, SEEDS.replace('prompt: x', 'prompt: y'))
  expect(await batch('--check')).toMatchObject({ code: 10 })
})

it('a batch on a machine that does not know a document yet requests the list before it would pay again', async () => {
  const service = await createCliService()
  const path = join(temporaryFolder(), 'm.yaml')
  writeFileSync(path, SEEDS)
  await add(service, SEEDED)
  outputOf(await service.run(`batch ${path}`))
  for (const folder of ['config', 'state'])
    rmSync(join(service.home, folder, 'models'), { recursive: true, force: true })
  const list = scriptedList({ status: 200, body: { models: [SEEDED] } })
  const fetch = withListOf(list.fetch, service.counting)
  const sent = service.requests.length
  outputOf(await service.run(`batch ${path}`, { fetch }))
  expect(list.requests).toHaveLength(1)
  expect(service.requests).toHaveLength(sent)
})

it('an MCP server sends the parameters of a document, and images of its folder to any model that takes them', async () => {
  const service = await createCliService()
  for (const each of [STILL, UPSCALE]) await add(service, each)
  const mcp = await openMcp(service)
  writeFileSync(join(mcp.folder, 'a.png'), ONE_PIXEL_PNG)
  const style = { ink: [1, { deep: null }] }
  await mcp.call('create_image', { prompt: 'x', steps: 8, style })
  await mcp.call('create_model_run', { model: 'acme/upscale', input: { image_urls: ['a.png'], factor: 2 } })
  const image = `data:image/png;base64,${ONE_PIXEL_PNG.toString('base64')}`
  expect(service.creates()).toEqual([
    { model: 'rushes/preview-image', input: { prompt: 'x', steps: 8, style } },
    { model: 'acme/upscale', input: { image_urls: [image], factor: 2 } },
  ])
})

describe('the list of models of a session', () => {
  async function openListed(words: readonly string[] = []) {
    const service = await createCliService()
    const list = { price: 1, steps: 10 }
    const answer = () => {
      const input = { steps: { type: 'integer', maximum: list.steps } }
      const models = [{ name: STILL.name, kind: 'image', input, price: { run: list.price } }]
      return { status: 200, body: { models } }
    }
    const fetch = withListOf(scriptedList(answer).fetch, service.counting)
    const mcp = await openMcp(service, { fetch, words })
    return { service, mcp, list }
  }

  it('is that of list_models from then on, in the tools too', async () => {
    const { service, mcp, list } = await openListed()
    const args = { prompt: 'a fox', steps: 20 }
    await mcp.call('list_models')
    expect((await mcp.call('create_image', args)).isError).toBe(true)
    for (const dry_run of [true, false]) {
      const { error } = await mcp.call('create_model_run', { model: STILL.name, input: args, dry_run })
      expect(error.message).toMatch(/steps must be a whole number up to 10, not 20/)
    }
    expect(service.creates()).toEqual([])
    Object.assign(list, { steps: 50, price: 3 })
    await service.clock.advance(60_000)
    const shown = await mcp.call('list_models', { model: STILL.name })
    expect(shown.structured.model).toMatchObject({ price: { run: 3 } })
    const { tools } = await service.clock.runUntil(mcp.client.listTools())
    const { properties } =
      tools.find(({ name }) => name === 'create_image')?.inputSchema ?? expect.unreachable()
    expect(properties?.steps).toMatchObject({ maximum: 50 })
    expect((await mcp.call('create_image', args)).structured.estimate).toBe(3)
  })

  it('is requested again after a day, before --max-cost is checked', async () => {
    const { service, mcp, list } = await openListed(['--max-cost', '10'])
    writeFileSync(join(mcp.folder, 'shots.yaml'), '- {name: a, kind: image, prompt: a fox}')
    service.clock.jump(86_400_000)
    list.price = 100
    const refusal = /^The estimate is 100 credits, but --max-cost allows 10 credits/
    const created = await mcp.call('create_image', { prompt: 'a fox' })
    expect(created.error.message).toMatch(refusal)
    const planned = await mcp.call('plan_batch', { manifest: 'shots.yaml' })
    expect(planned.structured.summary.estimate).toBe(100)
    const batch = await mcp.call('run_batch', { manifest: 'shots.yaml' })
    expect(batch.error.message).toMatch(refusal)
    expect(service.creates()).toEqual([])
  })
})
