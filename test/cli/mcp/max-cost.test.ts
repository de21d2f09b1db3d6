/** Estimates and the limit of a session (`--max-cost`) of `rushes mcp`: in process, with the real service. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Engine } from '../../../src/service/engines/engine.js'
import { withFaults } from '../../support/faults.js'
import { createCliService, createCommandedEngine } from '../../support/index.js'
import { type McpOptions, type McpProcess, openMcp } from '../../support/mcp.js'

const PRICES = {
  'rushes/preview-image': { run: 0.4, factors: { quality: { high: 1.5 } } },
  'no/such': { run: 0.4 },
}

const createPriced = (options: Parameters<typeof createCliService>[0] = {}) =>
  createCliService({ config: { prices: PRICES, currency: 'USD' }, ...options })

async function open(maxCost?: string, { engine, ...options }: McpOptions & { engine?: Engine } = {}) {
  const service = await createPriced(engine && { engine })
  const words = maxCost === undefined ? [] : ['--max-cost', maxCost]
  return { service, mcp: await openMcp(service, { words, ...options }) }
}

const MANIFEST = `runs:
  - { name: a, kind: image, prompt: a fox }
  - { name: b, kind: image, prompt: a bear, quality: high }
`
const write = ({ folder }: McpProcess, text: string) => writeFileSync(join(folder, 'shots.yaml'), text)

describe('an estimate', () => {
  it('comes with dry_run, and enters the response, the list and the journal of the create', async () => {
    const { service, mcp } = await open('5')
    const args = { prompt: 'a fox', quality: 'high', request_id: 'fox' }
    const dry = await mcp.call('create_image', { ...args, dry_run: true })
    const money = { estimate: 0.6, currency: 'USD' }
    expect(dry.structured).toEqual({ runs: [], ...money, warnings: [] })
    expect(service.requests).toEqual([])
    // A repeated create, also in a later session, is counted once.
    for (const _ of [1, 2]) {
      const { structured } = await mcp.call('create_image', args)
      expect(structured).toMatchObject({ ...money, runs: [{ status: 'succeeded' }] })
    }
    await mcp.end()
    const later = await openMcp(service)
    const repeated = await later.call('create_image', args)
    expect(repeated.structured).toMatchObject(money)
    expect(service.creates()).toHaveLength(1)
    expect((await later.call('list_runs')).runs).toMatchObject([money])
    const shown = await later.call('show_run', { id: repeated.run.id })
    expect(shown.structured.run).toMatchObject(money)
  })

  it('stays unknown without a price', async () => {
    const { mcp } = await open()
    const dry = await mcp.call('create_video', { prompt: 'it runs', dry_run: true })
    expect(dry.structured).toMatchObject({ estimate: null, currency: null })
  })
})

describe('--max-cost', () => {
  it('refuses what passes it, before anything is sent, and counts what was not accepted no longer', async () => {
    const { service, mcp } = await open('0.5')
    const { tools } = await mcp.client.listTools()
    expect(tools.find(({ name }) => name === 'create_image')?.description).toContain(
      'At most 20 runs and estimates of 0.5 USD in all per session.',
    )
    const refused = await mcp.call('create_image', { prompt: 'x', model: 'no/such' })
    expect(refused.error.code).toBe('model_not_found')
    const high = await mcp.call('create_image', { prompt: 'x', quality: 'high' })
    expect(high.error).toMatchObject({
      code: 'usage',
      message: 'The estimate is 0.6 USD, but --max-cost allows 0.5 USD. Nothing was sent.',
      hint: 'Ask the user. A new session, or `rushes mcp` with a higher limit, allows more.',
    })
    const video = await mcp.call('create_video', { prompt: 'x', model: 'no/film' })
    expect(video.error.message).toBe(
      '1 run has no price in USD (no/film), so --max-cost cannot be checked. Nothing was sent.',
    )
    expect(service.creates()).toHaveLength(1)
    // Both calls fit alone.
    const both = [mcp.begin('create_image', { prompt: 'x' }), mcp.begin('create_image', { prompt: 'y' })]
    const answers = await service.clock.runUntil(Promise.all(both))
    expect(answers.map(({ isError }) => isError).sort()).toEqual([false, true])
    expect(service.creates()).toHaveLength(2)
  })

  it('counts a create whose outcome is unknown', async () => {
    const service = await createPriced()
    const fetch = withFaults(service.counting, ['create:lose'], service.clock)
    const mcp = await openMcp(service, { fetch, words: ['--max-cost', '0.4'] })
    await mcp.call('create_image', { prompt: 'x' })
    const { error } = await mcp.call('create_image', { prompt: 'y' })
    expect(error.message).toMatch(/^The estimate is 0.4 USD, but only 0 USD of 0.4 USD/)
    expect(service.creates()).toHaveLength(1)
  })

  it('refuses a batch that passes what is left, and the plan shows both', async () => {
    const { service, mcp } = await open(undefined, { env: { RUSHES_MAX_COST: '1.2' } })
    write(mcp, MANIFEST)
    await mcp.call('create_image', { prompt: 'x' })
    const planned = await mcp.call('plan_batch', { manifest: 'shots.yaml' })
    expect(planned.structured).toMatchObject({
      summary: { estimate: 1, currency: 'USD', without_price: 0 },
    })
    const { error } = await mcp.call('run_batch', { manifest: 'shots.yaml' })
    expect(error.message).toBe(
      'The estimate is 1 USD, but only 0.8 USD of 1.2 USD is left in this session. Nothing was sent.',
    )
    write(mcp, `${MANIFEST}  - { name: c, kind: video, model: no/film, prompt: it runs }\n`)
    const unpriced = await mcp.call('plan_batch', { manifest: 'shots.yaml' })
    expect(unpriced.structured.summary).toMatchObject({ estimate: 1, without_price: 1 })
    const video = await mcp.call('run_batch', { manifest: 'shots.yaml', only: ['c'] })
    expect(video.error.message).toMatch(/^1 run has no price/)
    expect(service.creates()).toHaveLength(1)
  })

  it('hides no missing model of a batch', async () => {
    const { mcp } = await open('5', { env: { RUSHES_IMAGE_MODEL: '' } })
    write(mcp, MANIFEST)
    const { error } = await mcp.call('run_batch', { manifest: 'shots.yaml' })
    expect(error.message).toBe('Not set: image model.')
  })

  it('reserves the estimate of a batch while it runs, and gets back what was not created', async () => {
    const engine = createCommandedEngine()
    const { service, mcp } = await open('1.2', { engine })
    write(mcp, MANIFEST.replace('quality: high', "quality: high, image_urls: ['row:a']"))
    const batch = () => mcp.call('run_batch', { manifest: 'shots.yaml' })
    expect((await batch()).structured).toMatchObject({ is_running: true })
    const meanwhile = await mcp.call('create_image', { prompt: 'x' })
    expect(meanwhile.error.message).toMatch(/^The estimate is 0.4 USD, but only 0.2 USD/)
    engine.fail(new Error('no ink'))
    const { structured } = await batch()
    expect(service.creates()).toHaveLength(1)
    const afterwards = await mcp.call('create_image', { prompt: 'x', dry_run: true })
    expect(afterwards.isError).toBe(false)
    expect(structured).toMatchObject({
      summary: { failed: 1, blocked: 1, estimate: 0.4, currency: 'USD', without_price: 0 },
    })
  })

  it('allows 0 with --local, which is free', async () => {
    const mcp = await openMcp(await createPriced(), {
      env: { RUSHES_BASE_URL: '' },
      words: ['--local', '--max-cost', '0'],
    })
    expect(JSON.stringify(await mcp.client.listTools())).not.toContain('COSTS MONEY')
    const { structured } = await mcp.call('create_image', { prompt: 'x', dry_run: true })
    expect(structured).toMatchObject({ estimate: 0, currency: 'credits' })
  })
})
