/** What a session of `rushes mcp` sees of keys, settings, documents and manifests that change while it runs. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Fetch } from '../../../src/host/http.js'
import { asksForList, createCliService, scriptedList } from '../../support/cli.js'
import { createCommandedEngine } from '../../support/engines.js'
import { openMcp } from '../../support/mcp.js'
import { temporaryFolder } from '../../support/temporary-folder.js'

const IMAGE = 'rushes/preview-image'

describe('a session', () => {
  it('uses a key that was stored after a call that found none', async () => {
    const service = await createCliService()
    const env = { RUSHES_API_KEY: '' }
    const mcp = await openMcp(service, { env })
    const before = await mcp.call('create_image', { prompt: 'a fox' })
    expect(before.structured.error.code).toBe('no_api_key')
    expect((await service.run(['login'], { env, stdin: service.apiKey })).code).toBe(0)
    expect((await mcp.call('create_image', { prompt: 'a fox' })).structured.runs[0].state).toBe('succeeded')
  })

  it('uses a key that replaced a refused one, from a file and from a command', async () => {
    const service = await createCliService()
    const path = join(temporaryFolder(), 'key')
    const sources = [{ RUSHES_API_KEY_FILE: path }, { RUSHES_API_KEY_COMMAND: `cat "${path}"` }]
    for (const source of sources) {
      writeFileSync(path, 'rk_no_such_key', { mode: 0o600 })
      const mcp = await openMcp(service, { env: { RUSHES_API_KEY: '', ...source } })
      const before = await mcp.call('create_image', { prompt: 'a fox' })
      expect(before.structured.error.exit_code).toBe(4)
      writeFileSync(path, service.apiKey)
      const after = await mcp.call('create_image', { prompt: 'a fox' })
      expect(after.structured.runs?.[0].state).toBe('succeeded')
    }
  })

  it('uses a changed setting, and keeps its limits', async () => {
    const service = await createCliService()
    const mcp = await openMcp(service, { env: { RUSHES_IMAGE_MODEL: '' }, words: ['--max-runs', '1'] })
    const before = await mcp.call('create_image', { prompt: 'a fox' })
    expect(before.structured.error.message).toBe('Not set: image model.')
    await service.run(['config', 'set', 'models.image', IMAGE])
    expect((await mcp.call('create_image', { prompt: 'a fox' })).structured.runs[0].state).toBe('succeeded')
    const second = await mcp.call('create_image', { prompt: 'a hen' })
    expect(second.structured.error.message).toMatch(/^This session may create 1 run in all; 0 left/)
  })

  it('creates nothing under a limit in another currency than the prices have now', async () => {
    const service = await createCliService()
    const set = (key: string, value: string) => service.run(['config', 'set', key, value])
    await set('prices', JSON.stringify({ [IMAGE]: { run: 1 } }))
    const mcp = await openMcp(service, { words: ['--max-cost', '5'] })
    expect((await mcp.call('create_image', { prompt: 'a fox' })).structured.estimate_left_in_session).toBe(4)
    await set('currency', 'USD')
    const { structured } = await mcp.call('create_image', { prompt: 'a hen' })
    expect(structured.error.message).toBe(
      'The limit of this session is in credits, but the prices are in USD now. Nothing was sent.',
    )
  })
})

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
    return { service, mcp, list, fetch, posts }
  }

  it('follows a refresh by another command, in the tools too', async () => {
    const { service, mcp, list, fetch } = await openListed()
    const args = { prompt: 'a fox', steps: 20 }
    expect((await mcp.call('create_image', args)).isError).toBe(true)
    Object.assign(list, { steps: 50, price: 3 })
    await service.run(['models', '--refresh'], { fetch })
    const { tools } = await service.clock.runUntil(mcp.client.listTools())
    const { properties } =
      tools.find(({ name }) => name === 'create_image')?.inputSchema ?? expect.unreachable()
    expect(properties?.steps).toMatchObject({ maximum: 50 })
    const shown = await mcp.call('list_models', { model: IMAGE })
    expect(shown.structured.model).toMatchObject({ price: { run: 3 } })
    expect((await mcp.call('create_image', args)).structured.estimate).toBe(3)
  })

  it('is requested again after a day, before --max-cost is checked', async () => {
    const { service, mcp, list, posts } = await openListed(['--max-cost', '10'])
    writeFileSync(join(mcp.folder, 'shots.yaml'), '- {name: a, kind: image, prompt: a fox}')
    service.clock.jump(86_400_000)
    list.price = 100
    const refusal = /^The estimate is 100 credits, but only 10 credits of 10 credits is left/
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
