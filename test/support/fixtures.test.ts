/** The tests that README.md shows, and that it shows them as they are. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { parseDuration } from '../../src/protocol/units.js'
import {
  ask,
  createCliService,
  createManualClock,
  createModelServer,
  createPlace,
  createTestService,
  ended,
  ONE_PIXEL_PNG,
  rushes,
  serve,
  temporaryFolder,
} from './index.js'
import { createEngineOf, jobOf } from './model-servers/engine.js'

// A unit test.
it.each([
  ['90s', 90_000],
  ['15m', 900_000],
])('the duration %s has %i ms', (text, ms) => {
  expect(parseDuration(text, '--timeout')).toBe(ms)
})

// A command test.
it('a create whose response is lost is sent once, and ends with 13', async () => {
  const { run, requests } = await createCliService()
  const path = join(temporaryFolder(), 'fox.png')
  const { code, stderr } = await run(`run image "a fox" -o ${path}`, { faults: ['create:lose'] })
  expect({ code, sent: requests.length }).toEqual({ code: 13, sent: 1 })
  expect(stderr).toContain('A run may exist and cost money')
})

// A service test.
it('a run of the service ends with the URL of its output', async () => {
  const service = await createTestService()
  const create = { model: 'rushes/preview-image', input: { prompt: 'a fox' } }
  const { status, body } = await ask(service, 'POST', '/api/v1/runs', create)
  expect([status, body.status]).toEqual([201, 'queued'])
  const run = await ended(service, body.id)
  expect(run).toMatchObject({ status: 'succeeded', output: { urls: [expect.stringMatching(/\.png$/)] } })
})

// An engine test.
it('an engine of type images saves the picture of its server', async () => {
  const server = await createModelServer(() => ({
    body: { data: [{ b64_json: ONE_PIXEL_PNG.toString('base64') }] },
  }))
  const engine = createEngineOf(
    { engine: { type: 'images', url: `${server.url}/v1` } },
    { clock: createManualClock() },
  )
  expect(await engine.render(jobOf())).toMatchObject([{ contentType: 'image/png' }])
  expect(server.count('POST /v1/images/generations')).toBe(1)
})

// A test of the binary.
it('status exits 6 for an unknown run', async () => {
  const place = await serve(createPlace())
  expect(await rushes(place, ['status', 'run_none'])).toMatchObject({ code: 6, stdout: '' })
})

it('test/support/README.md shows these tests', () => {
  const own = readFileSync(new URL(import.meta.url), 'utf8')
  const page = readFileSync(new URL('README.md', import.meta.url), 'utf8')
  const blocks = [...page.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, block = '']) => block)
  expect(blocks).toHaveLength(5)
  expect(blocks.filter((block) => !own.includes(`\n${block}`))).toEqual([])
})
