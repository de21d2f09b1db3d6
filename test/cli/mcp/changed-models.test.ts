/** What a session of `rushes mcp` sees of documents and manifests that change while it runs. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { createCliService, scriptedList, withListOf } from '../../support/index.js'
import { openMcp } from '../../support/mcp.js'

const IMAGE = 'rushes/preview-image'

describe('the list of models of a session', () => {
  async function openListed(words: readonly string[] = []) {
    const service = await createCliService()
    const list = { price: 1, steps: 10 }
    const answer = () => {
      const input = { steps: { type: 'integer', maximum: list.steps } }
      const models = [{ name: IMAGE, kind: 'image', input, price: { run: list.price } }]
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
      const { error } = await mcp.call('create_model_run', { model: IMAGE, input: args, dry_run })
      expect(error.message).toMatch(/steps must be a whole number up to 10, not 20/)
    }
    expect(service.creates()).toEqual([])
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
