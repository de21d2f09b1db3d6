/** Models of fal, Replicate, OpenRouter and Cog against simulated servers: their requests, and what their answers mean. */
import { describe, expect, test } from 'vitest'
import {
  JobDetached,
  OutcomeUnknown,
  type RenderJob,
  RunCanceled,
} from '../../../src/service/engines/engine.js'
import { createManualClock, ONE_PIXEL_PNG, until } from '../../support/index.js'
import { createCogServer, dataUri } from '../../support/model-servers/cog.js'
import { createEngineOf, jobOf, savedFile } from '../../support/model-servers/engine.js'
import { createFalServer, type FalOptions, SECRET } from '../../support/model-servers/fal.js'
import { createOpenRouterServer } from '../../support/model-servers/openrouter.js'
import { createReplicateServer, type ReplicateOptions } from '../../support/model-servers/replicate.js'

const INPUT = {
  type: 'object',
  properties: {
    prompt: { type: 'string' },
    image_urls: { type: 'array', items: { type: 'string' }, maxItems: 2 },
    seed: { type: 'integer' },
    enable_safety_checker: { type: 'boolean' },
  },
}
const env = { FAL_KEY: SECRET, REPLICATE_API_TOKEN: SECRET, OPENROUTER_API_KEY: SECRET }
type Json = Readonly<Record<string, unknown>>

/** Larger than what a provider takes within a request. */
const LARGE = Buffer.concat([ONE_PIXEL_PNG, Buffer.alloc(300_000)])

/** The engine of one model. */
function openModel(settings: Json) {
  const clock = createManualClock()
  const engine = createEngineOf({ engine: settings, input: INPUT }, { clock, env })
  let runs = 0
  /** Starts a run with another id and seed each time. `images`: its references, as addresses or data URIs. */
  function start(more: Json = {}, images: readonly string[] = [], id = `run_${++runs}`) {
    const stop = new AbortController()
    const references = images.map((image) => savedFile(Buffer.from(image.replace(/^.*,/, ''), 'base64')))
    const rendering = engine.render({
      ...jobOf({ run: { id, model: 'acme/model' }, references, signal: stop.signal }),
      input: { prompt: 'a fox', seed: runs, ...more, ...(images.length > 0 && { image_urls: images }) },
    })
    rendering.catch(() => {})
    const end = async (reason: Error) => {
      stop.abort(reason)
      await expect(clock.runUntil(rendering)).rejects.toBe(reason)
    }
    return { id, rendering, end }
  }
  const run = async (more?: Json, images?: readonly string[]) =>
    await clock.runUntil(start(more, images).rendering)
  /** Cancels this job, and resolves with what the provider charges. */
  const cancel = async (id: string) =>
    await engine.cancel?.({ id: 'run_1', model: 'acme/model', stored: { handle: { id } } })
  return { cancel, start, run, clock }
}

async function openFal({
  model = 'fal-ai/flux/dev',
  ...options
}: FalOptions & { readonly model?: string } = {}) {
  const server = await createFalServer(options)
  const fixed = { num_images: 1, sync_mode: false }
  const engine = { type: 'fal', url: server.url, model, references: 'image_url', fixed }
  return { server, creates: () => server.count('POST /fal-ai'), ...openModel(engine) }
}

async function openReplicate({
  model = 'acme/still',
  ...options
}: ReplicateOptions & { readonly model?: string } = {}) {
  const server = await createReplicateServer(options)
  const engine = { type: 'replicate', url: server.url, model, references: ['images'] }
  return { server, creates: () => server.count('POST /models/'), ...openModel(engine) }
}

async function openCog(options: Parameters<typeof createCogServer>[0] = {}) {
  const server = await createCogServer(options)
  const engine = { type: 'cog', url: server.url, references: 'image' }
  return { server, ...openModel(engine) }
}

describe('fal', () => {
  test('a run is a job of its endpoint, with the key and the fixed fields', async () => {
    const { server, run } = await openFal()
    expect(await run({ seed: 5 })).toHaveLength(1)
    const [create] = server.requests
    expect(create?.headers).toMatchObject({ authorization: `Key ${SECRET}` })
    for (const name of ['prefer', 'x-fal-store-io']) expect(create?.headers[name]).toBeUndefined()
    const input = { prompt: 'a fox', num_images: 1, sync_mode: false, seed: 5 }
    expect(server.jobs[0]?.input).toEqual(input)
  })

  test.each<[name: string, options: Partial<FalOptions>, message: string]>([
    ['an error in its status', { completed: { error: 'CUDA out of memory' } }, 'CUDA out of memory'],
    [
      'only a type of error in its status',
      { completed: { error_type: 'runner_disconnected' } },
      'runner_disconnected',
    ],
    [
      'an error only in its result',
      {
        result: () => ({
          status: 422,
          body: {
            detail: [
              {
                loc: ['body', 'prompt'],
                msg: `policy ${SECRET}, ${SECRET.split(':')[1]}`,
                type: 'content_policy_violation',
              },
            ],
          },
        }),
      },
      "The model's server answered 422: body.prompt: policy",
    ],
    ['a result without a file', { result: () => ({ body: { images: [] } }) }, 'without a result'],
  ])('a job that is COMPLETED with %s has failed', async (_, options, message) => {
    const { run, creates } = await openFal(options)
    const error: Error = await run().then(
      () => expect.unreachable(),
      (reason) => reason,
    )
    expect(error.message).toContain(message)
    expect(error).not.toBeInstanceOf(OutcomeUnknown)
    expect(error.message).not.toContain('key-of-the-user')
    expect(creates()).toBe(1)
  })

  const black = (flags: readonly boolean[]) => (_: unknown, url: string) => ({
    body: { images: flags.map(() => ({ url })), has_nsfw_concepts: flags },
  })

  test('a black picture of the safety filter is a failure, unless the filter is off', async () => {
    const { server, run } = await openFal({ result: black([true]) })
    await expect(run()).rejects.toThrow(/^fal's safety filter removed the picture \(has_nsfw_concepts\)/)
    expect(server.requests.filter(({ path }) => /requests\/[^/]*$/.test(path))).toHaveLength(1)
    expect(await run({ enable_safety_checker: false })).toHaveLength(1)
    const { run: next } = await openFal({ result: black([false]) })
    expect(await next()).toHaveLength(1)
  })

  test.each<[name: string, result: NonNullable<FalOptions['result']>]>([
    ['an object', (_, url) => ({ body: { image: { url, content_type: 'application/octet-stream' } } })],
    ['a text', (_, url) => ({ body: { image_url: url, prompt: 'see https://example.com/a.png there' } })],
    ['nested', (_, url) => ({ body: { outputs: { final: [[{ image: { url } }]] } } })],
    [
      'among files of other types',
      (_, url) => ({
        body: {
          mask: { url: 'https://v3.fal.media/x.glb' },
          audio: { url: 'https://v3.fal.media/x', content_type: 'audio/mpeg' },
          image: { url, content_type: 'image/png' },
        },
      }),
    ],
    [
      'a data URI',
      () => ({ body: { images: [{ url: dataUri(Buffer.concat([ONE_PIXEL_PNG, Buffer.alloc(90_000)])) }] } }),
    ],
    ['twice', (_, url) => ({ body: { image: { url }, images: [{ url }] } })],
  ])('an output can be %s', async (_, result) => {
    const { run } = await openFal({ result })
    expect(await run()).toHaveLength(1)
  })

  test('a result that is not ready, that a proxy hides, or that is not found is asked for again', async () => {
    const { server, run, creates } = await openFal()
    const path = 'GET /fal-ai/flux/requests/fal_1'
    // The status is asked for three times first.
    const { jobs } = server
    server.fault(`${path}/status`, { body: { status: 'COMPLETED' } })
    for (const fault of [
      { status: 400, body: { detail: 'Request is still in progress' } },
      { status: 202, body: { status: 'IN_PROGRESS' } },
      { status: 404, body: { detail: 'Request not found' } },
      { status: 502, body: '<html>' },
      { body: '<html>' },
    ])
      server.fault(`${path}`, fault)
    expect(await run()).toHaveLength(1)
    expect([creates(), jobs.length]).toEqual([1, 1])
  })

  test('a job without URLs is followed below the owner and the name of its endpoint', async () => {
    for (const [model, path] of [
      ['fal-ai/flux/dev', '/fal-ai/flux/requests/fal_1/status'],
      ['workflows/acme/up/scale', '/workflows/acme/up/requests/fal_1/status'],
    ] as const) {
      const { server, run } = await openFal({ model })
      const endpoint = `POST /${model}`
      server.fault(endpoint, { body: { request_id: 'fal_1' } })
      server.jobs.push({ id: 'fal_1', endpoint: model, input: {}, position: 0, polls: 0 })
      expect(await run()).toHaveLength(1)
      expect(server.count(`GET ${path}`)).toBe(3)
    }
  })

  test.each(['0.0.0.0', '[::]', '[::ffff:127.0.0.1]', 'localhost', '169.254.169.254'])(
    'a reference is not uploaded to %s, which the provider names',
    async (host) => {
      const { server, run, creates } = await openFal()
      const upload_url = `http://${host}:${new URL(server.media.url).port}/uploads/x`
      server.fault('POST /storage/upload', { body: { upload_url, file_url: 'https://v3.fal.media/x' } })
      await expect(run({}, [dataUri(LARGE)])).rejects.toThrow('an address for a file that is not public')
      expect([server.media.requests, creates()]).toEqual([[], 0])
    },
  )

  test('a reference is sent as its public URL, as a data URI if it is small, or uploaded without the key, before the job', async () => {
    const { server, run, creates } = await openFal()
    server.media.fault('PUT /uploads', { status: 403 })
    await expect(run({}, [dataUri(LARGE)])).rejects.toThrow('answered 403')
    expect(creates()).toBe(0)
    for (const image of ['https://203.0.114.9/fox.png', dataUri(ONE_PIXEL_PNG), dataUri(LARGE)])
      expect(await run({}, [image])).toHaveLength(1)
    expect(server.jobs.map(({ input }) => input.image_url)).toEqual([
      'https://203.0.114.9/fox.png',
      dataUri(ONE_PIXEL_PNG),
      'https://v3.fal.media/uploads/1-01.png',
    ])
    expect(server.uploads.get('/uploads/1-01.png')).toEqual(LARGE)
    expect(
      server.media.requests.find(({ method }) => method === 'PUT')?.headers.authorization,
    ).toBeUndefined()
  })

  test('a cancel stops the job by its own id, or tells that it has succeeded', async () => {
    const { cancel, server } = await openFal()
    server.jobs.push({ id: 'fal_1', endpoint: '', input: {}, position: 0, polls: 0 })
    expect(await cancel('fal_1')).toBe('unknown')
    expect(server.canceled).toEqual(['fal_1'])
    server.fault('PUT', { status: 400, body: { status: 'ALREADY_COMPLETED' } })
    expect(await cancel('fal_1')).toBe('succeeded')
  })
})

describe('Replicate', () => {
  test.each([
    ['acme/still', '/models/acme/still/predictions', undefined],
    ['acme/still:4f2a', '/predictions', '4f2a'],
  ])('a run of %s is a prediction', async (model, path, version) => {
    const { server, run } = await openReplicate({ model })
    expect(await run({ seed: 5 })).toHaveLength(1)
    const [create] = server.requests
    expect([create?.path, create?.headers.prefer, create?.json()]).toEqual([
      path,
      undefined,
      { ...(version && { version }), input: { prompt: 'a fox', seed: 5 } },
    ])
  })

  test.each<[status: number, body: object, message: string]>([
    [
      402,
      { title: 'Insufficient credit', detail: 'You have insufficient credit.', status: 402 },
      'insufficient credit',
    ],
    [
      422,
      {
        detail: 'Input validation failed',
        invalid_fields: [{ type: 'x', field: 'input.steps', description: 'Must be at most 4' }],
      },
      'answered 422: Input validation failed (input.steps: Must be at most 4)',
    ],
    [404, { detail: 'The requested resource could not be found.' }, 'set model: owner/name:version'],
  ])('a create that is refused with %i fails with the words of Replicate', async (status, body, message) => {
    const { server, run, creates } = await openReplicate()
    server.fault('POST /models', { status, body })
    await expect(run()).rejects.toThrow(message)
    expect(creates()).toBe(1)
  })

  test.each<[states: string, ended: object, message: string]>([
    ['failed', { error: 'NSFW content detected. Try running it again' }, 'NSFW content detected'],
    ['failed', { error: '' }, 'Replicate reports the state "failed".'],
    ['canceled', {}, 'Replicate reports the state "canceled".'],
    ['aborted', {}, 'Replicate reports the state "aborted".'],
    ['succeeded', { output: null, data_removed: true }, 'has deleted the result'],
    ['succeeded', { output: null }, 'without a result'],
  ])('a prediction that is %s with %j has failed', async (state, fields, message) => {
    const { run, creates } = await openReplicate({ states: ['starting', state], ended: () => fields })
    await expect(run()).rejects.toThrow(message)
    expect(creates()).toBe(1)
  })

  test.each([
    [{ status: 'canceled', started_at: null }, 'not charged'],
    [{ status: 'canceled', started_at: '2026-01-01T00:00:00Z' }, 'charged'],
    [{ status: 'canceled' }, 'unknown'],
    [{ status: 'aborted' }, 'not charged'],
    [{ status: 'succeeded' }, 'succeeded'],
    [{ status: 'processing' }, 'unknown'],
  ])('a cancel that is answered with %j means: %s', async (body, charge) => {
    const { server, cancel } = await openReplicate()
    server.fault('POST /predictions/r1/cancel', { body })
    expect(await cancel('r1')).toBe(charge)
  })

  test('a large reference is uploaded', async () => {
    const { server, run } = await openReplicate()
    expect(await run({}, [dataUri(ONE_PIXEL_PNG), dataUri(LARGE)])).toHaveLength(1)
    expect(server.predictions[0]?.input.images).toEqual([dataUri(ONE_PIXEL_PNG), `${server.url}/files/1`])
    expect(server.files).toEqual([LARGE])
  })
})

describe('OpenRouter', () => {
  const FILM = {
    prompt: { type: 'string' },
    duration: { type: 'integer' },
    image_urls: { type: 'array', items: { type: 'string' }, maxItems: 1 },
    last_frame: { type: 'string', media: 'image' },
  }
  const openRouter = async (options: Parameters<typeof createOpenRouterServer>[0] = {}) => {
    const clock = createManualClock()
    const server = await createOpenRouterServer(options)
    const settings = { type: 'openrouter', url: server.url }
    const film = { ...settings, model: 'acme/film', references: 'first_frame' }
    const still = { ...settings, model: 'acme/still', references: ['input_references'] }
    const input = { type: 'object', properties: FILM }
    const engineOf = (kind: 'image' | 'video') =>
      createEngineOf({ kind, engine: kind === 'video' ? film : still, input }, { clock, env })
    const render = (kind: 'image' | 'video', more: Partial<RenderJob> = {}) =>
      clock.runUntil(engineOf(kind).render(jobOf({ kind, ...more })))
    const creates = () => server.count('POST /videos') + server.count('POST /images')
    return { server, clock, render, engineOf, creates }
  }
  test('a video is a job with its frames, polled every 10 to 30 s', async () => {
    const { server, render, clock } = await openRouter()
    const startedAt = clock.monotonic()
    const files = await render('video', {
      input: {
        prompt: 'it moves',
        duration: 8,
        image_urls: ['sha256:a'],
        last_frame: 'https://203.0.114.9/z.png',
      },
      references: [savedFile(ONE_PIXEL_PNG)],
      media: { last_frame: [undefined] },
    })
    expect(files).toMatchObject([{ contentType: 'video/mp4' }])
    const image = (url: string, frame_type: string) => ({ type: 'image_url', image_url: { url }, frame_type })
    expect(server.bodies).toEqual([
      {
        ...{ model: 'acme/film', prompt: 'it moves', duration: 8 },
        frame_images: [
          image(dataUri(ONE_PIXEL_PNG), 'first_frame'),
          image('https://203.0.114.9/z.png', 'last_frame'),
        ],
      },
    ])
    expect(clock.monotonic() - startedAt).toBeGreaterThanOrEqual(25_000)
    expect(server.requests.map(({ path }) => path).at(-1)).toBe('/videos/job-1/content')
  })

  test('a video of several outputs is fetched whole', async () => {
    const { render } = await openRouter({ outputs: 2 })
    expect(await render('video')).toHaveLength(2)
  })

  test('an image is one request with its references, and its cost is never risked twice', async () => {
    const { server, render, creates } = await openRouter()
    const job = {
      input: { prompt: 'a fox', image_urls: ['sha256:a'] },
      references: [savedFile(ONE_PIXEL_PNG)],
    }
    expect(await render('image', job)).toMatchObject([{ contentType: 'image/png' }])
    expect(server.bodies).toEqual([
      {
        ...{ model: 'acme/still', prompt: 'a fox' },
        input_references: [{ type: 'image_url', image_url: { url: dataUri(ONE_PIXEL_PNG) } }],
      },
    ])
    server.fault('POST /images', { status: 502, body: 'bad gateway' })
    await expect(render('image', job)).rejects.toThrow(OutcomeUnknown)
    expect(creates()).toBe(2)
  })

  test.each([
    ['failed', 'content policy', 'content policy'],
    ['cancelled', undefined, 'the state "cancelled"'],
    ['expired', undefined, 'the state "expired"'],
  ])('a job that is %s fails with its reason', async (state, error, message) => {
    const { render } = await openRouter({ states: ['pending', state], ...(error && { error }) })
    await expect(render('video')).rejects.toThrow(message)
  })

  test('a cancel sends nothing, and the run counts as perhaps charged', async () => {
    const { server, engineOf } = await openRouter()
    const run = { id: 'run_1', model: 'acme/film', stored: { handle: { id: 'job-1' } } }
    expect(await engineOf('video').cancel?.(run)).toBe('unknown')
    expect(server.requests.filter(({ method }) => method !== 'GET')).toEqual([])
  })
})

describe('Cog', () => {
  test('a run is one request, with its id and its images as data URIs', async () => {
    const { server, start, clock } = await openCog()
    const image = dataUri(LARGE)
    const { id, rendering } = start({ seed: 5 }, [image])
    expect(await clock.runUntil(rendering)).toHaveLength(1)
    expect(server.started).toEqual([expect.stringMatching(`^${id}-`)])
    expect(server.requests[0]?.json()).toEqual({ input: { prompt: 'a fox', seed: 5, image } })
  })

  test('a failed prediction fails with its error', async () => {
    const { server, run } = await openCog()
    server.fault('PUT', { body: { status: 'failed', error: 'out of memory' } })
    await expect(run()).rejects.toThrow(/^out of memory$/)
  })

  test('a cancel stops the prediction by its own id', async () => {
    const { server, start, clock } = await openCog({ isInstant: false })
    const { end } = start()
    await clock.runUntil(until('the prediction', () => server.started.length === 1))
    await end(new RunCanceled())
    expect(server.canceled).toEqual(server.started)
  })

  test('a run whose service stopped is sent again, and waits while the server still works on it', async () => {
    const { server, start, clock } = await openCog({ isInstant: false })
    const first = start()
    await clock.runUntil(until('the prediction', () => server.started.length === 1))
    await first.end(new JobDetached('the service stops'))
    server.fault('PUT', { status: 409, body: { detail: 'Already running a prediction' } }, 2)
    const { rendering } = start({}, [], first.id)
    await clock.runUntil(until('the second prediction', () => server.started.length === 2))
    server.finish()
    expect(await clock.runUntil(rendering)).toHaveLength(1)
    // The server would start a prediction that has ended once more: no id is used again.
    expect([new Set(server.started).size, server.count('PUT')]).toEqual([2, 4])
  })

  test('a prediction that its server does not wait for is not asked for again', async () => {
    const { server, run } = await openCog()
    server.fault('PUT', { status: 202, body: { status: 'processing' } }, 5)
    await expect(run()).rejects.toThrow('did not wait for the end of the prediction')
    expect(server.count('PUT')).toBe(1)
  })
})
