import { expect, test } from 'vitest'
import { ask, created, createTestService, ended, runOf, temporaryFolder } from '../support/index.js'

test('an API node leaves accepted runs queued, and a worker on the same data renders them', async () => {
  const dataFolder = temporaryFolder()
  const api = await createTestService({ role: 'api', dataFolder })
  const id = await created(api)
  await api.clock.advance(60_000)
  expect((await runOf(api, id)).status).toBe('queued')
  // On the same clock, which moves for both.
  await createTestService({ role: 'worker', dataFolder, clock: api.clock })
  expect(await ended(api, id)).toMatchObject({ status: 'succeeded' })
})

test('a worker answers only health checks', async () => {
  const worker = await createTestService({ role: 'worker' })
  expect((await ask(worker, 'GET', '/healthz')).status).toBe(200)
  expect((await ask(worker, 'GET', '/readyz')).status).toBe(200)
  for (const [method, path] of [
    ['POST', '/api/v1/runs'],
    ['GET', '/api/v1/runs/run_x'],
    ['GET', '/api/v1/openapi.json'],
    ['GET', '/outputs/a/b.png'],
  ] as const)
    expect(await ask(worker, method, path, method === 'POST' ? {} : undefined)).toMatchObject({
      status: 404,
      body: { error: { code: 'not_found' } },
    })
})

test('a worker that starts first creates no key, so the first API node still shows one', async () => {
  const dataFolder = temporaryFolder()
  const worker = await createTestService({ role: 'worker', dataFolder })
  expect(worker.apiKey).toBe('')
  expect((await createTestService({ role: 'api', dataFolder })).apiKey).toMatch(/^rk_/)
})
