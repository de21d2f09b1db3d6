/** What a session of `rushes mcp` sees of documents and manifests that change while it runs. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Fetch } from '../../../src/host/http.js'
import { asksForList, createCliService, scriptedList } from '../../support/cli.js'
import { createCommandedEngine } from '../../support/engines.js'
import { openMcp } from '../../support/mcp.js'

const IMAGE = 'rushes/preview-image'

describe('the list of models of a session', () => {
  async function openListed(words: readonly string[] = []) {
    const service = await createCliService()
    const list = { price: 1, steps: 10 }
    const fetch: Fetch = (request) => {
      if (!asksForList(request)) return service.counting(request)
      const input = { steps: { type: 'integer', maximum: list.steps } }
      const models = [{ name: IMAGE, kind: 'image', input, price: { run: list.price } }]
      return scriptedList({ status: 200, body: { models } }).fetch(request)
    }
    const mcp = await openMcp(service, { fetch, words })
    const posts = () => service.requests.filter(({ method }) => method === 'POST').length
    return { service, mcp, list, posts }
  }

  it('is that of list_models from then on, in the tools too', async () => {
    const { service, mcp, list } = await openListed()
    const args = { prompt: 'a fox', steps: 20 }
    await mcp.call('list_models')
    expect((await mcp.call('create_image', args)).isError).toBe(true)
    Object.assign(list, { steps: 50, price: 3 })
    await service.clock.advance(60_000)
    const shown = await mcp.call('list_models', { model: IMAGE })
    expect(shown.structured.model).toMatchObject({ price: { run: 3 } })
    const { tools } = await service.clock.runUntil(mcp.client.listTools())
    const { properties } =
      tools.find(({ name }) => name === 'create_image')?.inputSchema ?? expect.unreachable()
    expect(properties?.steps).toMatchObject({ maximum: 50 })
    expect((await mcp.call('create_image', args)).structured.estimate).toBe(3)
  })

  it('is requested again after a day, before --max-cost is checked', async () => {
    const { service, mcp, list, posts } = await openListed(['--max-cost', '10'])
    writeFileSync(join(mcp.folder, 'shots.yaml'), '- {name: a, kind: image, prompt: a fox}')
    service.clock.jump(86_400_000)
    list.price = 100
    const refusal = /^The estimate is 100 credits, but --max-cost allows 10 credits/
    const created = await mcp.call('create_image', { prompt: 'a fox' })
    expect(created.structured.error.message).toMatch(refusal)
    const planned = await mcp.call('plan_batch', { manifest: 'shots.yaml' })
    expect(planned.text).toContain('estimate 100 credits')
    const batch = await mcp.call('run_batch', { manifest: 'shots.yaml' })
    expect(batch.structured.error.message).toMatch(refusal)
    expect(posts()).toBe(0)
  })
})

it('run_batch says that it joins a batch of an older manifest, and then creates the new rows', async () => {
  const engine = createCommandedEngine()
  const service = await createCliService({ engine })
  const mcp = await openMcp(service)
  const write = (...names: readonly string[]) =>
    writeFileSync(
      join(mcp.folder, 'shots.yaml'),
      names.map((name) => `- {name: ${name}, kind: image, prompt: ${name}}\n`).join(''),
    )
  const batch = () => mcp.call('run_batch', { manifest: 'shots.yaml' })
  write('fox')
  const first = await batch()
  expect(first.structured).toMatchObject({ is_running: true, warnings: [] })
  write('fox', 'hen')
  const joined = await batch()
  expect(joined.structured).toMatchObject({
    is_running: true,
    warnings: [expect.stringContaining('The manifest has changed since this batch started')],
  })
  engine.finish()
  expect((await batch()).structured).toMatchObject({ is_running: false, summary: { created: 1, total: 1 } })
  const next = mcp.begin('run_batch', { manifest: 'shots.yaml' })
  await service.clock.advance(3_000)
  engine.finish()
  expect((await service.clock.runUntil(next)).structured).toMatchObject({
    summary: { created: 1, up_to_date: 1 },
    warnings: [],
  })
})
