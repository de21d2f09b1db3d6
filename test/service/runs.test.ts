import { expect, test } from 'vitest'
import type { Engine } from '../../src/service/engines/engine.js'
import { LOCAL_MODELS } from '../../src/service/rules/names.js'
import {
  ask,
  createCommandedEngine,
  created,
  createInstantEngine,
  createTestService,
  ended,
  FOX,
  finished,
} from '../support/index.js'

const RUNS = '/api/v1/runs'

test('a run is accepted, rendered and shown', async () => {
  const engine = createCommandedEngine()
  const service = await createTestService({ engine })
  const { status, body } = await ask(service, 'POST', RUNS, FOX)
  expect(status).toBe(201)
  expect(body).toEqual({
    id: expect.stringMatching(/^run_[0-9a-z]{20}$/),
    model: 'rushes/preview-image',
    status: 'queued',
    input: { prompt: 'a fox', seed: expect.any(Number) },
    output: null,
    error: null,
    created_at: '2026-01-01T00:00:00.000Z',
    started_at: null,
    finished_at: null,
  })
  const path = `${RUNS}/${body.id}`

  await service.clock.advance(1_500)
  expect((await ask(service, 'GET', path)).body).toMatchObject({
    status: 'processing',
    output: null,
    started_at: '2026-01-01T00:00:00.000Z',
    finished_at: null,
  })

  engine.finish()
  const run = await ended(service, body.id)
  expect(run).toMatchObject({ model: FOX.model, input: FOX.input, status: 'succeeded', error: null })
  expect(run.output).toEqual({
    urls: [
      expect.stringMatching(new RegExp(`^http://service.test/outputs/${run.id}\\.[\\w-]{40}/image.png$`)),
    ],
  })
  expect(Date.parse(run.finished_at)).toBeGreaterThanOrEqual(Date.parse('2026-01-01T00:00:01.500Z'))
  expect(service.complaints).toEqual([])
})

test('the engine gets declared fields and defaults, and the run shows what was sent', async () => {
  const engine = createInstantEngine()
  const service = await createTestService({ engine })
  const image = await finished(service, FOX)
  const video = await finished(service, {
    model: LOCAL_MODELS.video,
    input: { prompt: 'a boat', resolution: '1080p', mood: { calm: true } },
  })
  const seed = expect.any(Number)
  expect(image.input).toEqual({ prompt: 'a fox', seed })
  expect(video.input).toEqual({
    prompt: 'a boat',
    resolution: '1080p',
    mood: { calm: true },
    seed,
  })
  expect(engine.jobs.map(({ kind, input }) => ({ kind, input }))).toEqual([
    { kind: 'image', input: { prompt: 'a fox', aspect_ratio: '1:1', quality: 'basic', seed } },
    {
      kind: 'video',
      input: {
        prompt: 'a boat',
        aspect_ratio: '16:9',
        resolution: '1080p',
        duration: '5',
        seed,
      },
    },
  ])
})

test.each([
  ['its own words', () => Promise.reject(new Error('no paint left')), 'no paint left.'],
  ['an output that is not there', async () => [{ name: 'a.png', contentType: 'image/png' }], /ENOENT/],
])('a run fails if its engine gives %s', async (_what, render, message) => {
  const service = await createTestService({ engine: { render } })
  expect(await finished(service, FOX)).toMatchObject({
    status: 'failed',
    output: null,
    error: {
      code: 'render_failed',
      message:
        message instanceof RegExp ? expect.stringMatching(message) : `${message} Its price was refunded.`,
    },
    finished_at: expect.any(String),
  })
})

test.each([
  ['waits for the disk, and follows its job', { id: 'job_1' }, 'succeeded', [undefined, { id: 'job_1' }]],
  ['fails', undefined, 'failed', [undefined]],
])('a run on a full disk %s, with the job %o', async (_, handle, status, followed) => {
  const { render } = createInstantEngine()
  const stored: unknown[] = []
  const engine: Engine = {
    async render(job) {
      stored.push(job.stored?.handle)
      if (stored.length > 1) return await render(job)
      if (handle !== undefined) await job.save?.({ handle })
      throw Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' })
    },
  }
  const service = await createTestService({ engine })
  expect(await finished(service, FOX)).toMatchObject({ status })
  expect(stored).toEqual(followed)
})

test('a render that exceeds its time limit is stopped and frees its slot', async () => {
  const engine = createCommandedEngine()
  const service = await createTestService({ engine, concurrency: 1 })
  const [long, next] = [await created(service), await created(service)]
  await service.clock.advance(3_600_000)
  expect(await ended(service, long)).toMatchObject({
    status: 'failed',
    error: { message: 'The engine took longer than an hour. Its price was refunded.' },
  })
  await service.clock.advance(1_000)
  engine.finish()
  expect(await ended(service, next)).toMatchObject({ status: 'succeeded' })
})
