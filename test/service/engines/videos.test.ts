/** The engine `videos` against servers that speak each dialect, as read in the sources of the programs. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { RenderJob } from '../../../src/service/engines/engine.js'
import { testEngine } from '../../contract/engine.js'
import { createGate, temporaryFolder, until } from '../../support/index.js'
import {
  type EngineDocument,
  openEngine,
  readEngineOf,
  savedFile,
} from '../../support/model-servers/engine.js'
import { pngOf } from '../../support/model-servers/pictures.js'
import { createVideosServer, FILM, type VideosOptions } from '../../support/model-servers/videos.js'

testEngine({
  name: 'videos',
  createServer: () => createVideosServer(),
  document: (url) => ({ kind: 'video', engine: { type: 'videos', url: `${url}/v1`, model: 'wan' } }),
  creates: 'POST /v1/videos',
  results: 'GET /v1/videos/video_1/content',
  keepsRequestMs: 2_500,
  hasKey: true,
})

async function open(document: Partial<EngineDocument> = {}, options: VideosOptions = {}) {
  const server = await createVideosServer(options)
  const settings = { type: 'videos', url: `${server.url}/v1`, ...document.engine }
  const { render: renderJob, clock } = openEngine({ kind: 'video', ...document, engine: settings })
  const render = (input: object = {}, more: Partial<RenderJob> = {}) =>
    renderJob({
      kind: 'video',
      input: { prompt: 'a fox', aspect_ratio: '1:1', duration: '5', ...input },
      ...more,
    })
  const run = async (...words: Parameters<typeof render>) => await clock.runUntil(render(...words))
  return { server, clock, render, run }
}

const reference = (): string => savedFile(pngOf(8, 8, 'first'))

test('sends one form, reports progress, and fetches the film', async () => {
  const { server, run } = await open({ input: { duration: { type: 'string', enum: ['5', '8'] } } })
  const seen: number[] = []
  const folder = temporaryFolder()
  const onProgress = (fraction: number) => void seen.push(fraction)
  const files = await run(
    { duration: '8', aspect_ratio: '16:9', resolution: '1080p' },
    { folder, onProgress, references: [reference()] },
  )
  expect(files).toEqual([{ name: 'video.mp4', contentType: 'video/mp4' }])
  expect(readFileSync(join(folder, 'video.mp4')).equals(FILM)).toBe(true)
  expect(server.jobs[0]?.fields).toEqual({
    prompt: 'a fox',
    seconds: '8',
    size: '1920x1088',
    input_reference: { name: '01.png', bytes: pngOf(8, 8, 'first') },
  })
  expect(seen).toEqual([0.4, 0.8])
})

test('sends every parameter under its name', async () => {
  const { server, run } = await open({
    engine: {
      model: 'wan',
      send: { frames: 'num_frames', steps: 'num_inference_steps', seed: 'seed', loop: 'loop' },
    },
    input: {
      frames: { type: 'integer' },
      duration: false,
      steps: { type: 'integer' },
      seed: { type: 'integer' },
      loop: { type: 'boolean' },
      aspect_ratio: false,
      resolution: false,
    },
  })
  await run({ frames: 80, steps: 30, seed: 7, loop: false, aspect_ratio: undefined, duration: undefined })
  expect(server.jobs[0]?.fields).toEqual({
    prompt: 'a fox',
    model: 'wan',
    num_frames: '80',
    num_inference_steps: '30',
    seed: '7',
    loop: 'false',
  })
})

test('two references are refused before anything is sent', async () => {
  const { server, run } = await open()
  await expect(run({}, { references: [reference(), reference()] })).rejects.toThrow(
    'This model takes at most 1 reference image; the run has 2.',
  )
  expect(server.requests).toEqual([])
})

describe('a job', () => {
  test.each([503, 429])(
    'fails at once when it has failed, also in a response of status %i',
    async (status) => {
      const { server, run } = await open()
      const body = { id: 'video_1', status: 'failed', error: { message: 'boom' } }
      server.fault('GET /v1/videos/video_1', { status, body }, 1_000)
      await expect(run()).rejects.toThrow(/^boom$/)
      expect([server.count('GET'), server.count('DELETE')]).toEqual([1, 0])
    },
  )

  test('is polled again while it has not ended, also after a response of another status', async () => {
    const { server, run } = await open()
    for (const status of [503, 429, 425, 422])
      server.fault('GET /v1/videos/video_1', { status, body: { id: 'video_1', status: 'in_progress' } })
    expect(await run()).toHaveLength(1)
  })

  test.each<[answer: object, expected: string]>([
    [{ id: 'video_1', status: 'CANCELLED' }, 'The job failed without a message.'],
    [{ id: 'video_1', status: 'error', error: 'bad\u001b[2J prompt' }, 'bad[2J prompt'],
  ])('may end as %j', async (body, expected) => {
    const { server, run } = await open()
    server.fault('GET /v1/videos/', { body })
    await expect(run()).rejects.toThrow(expected)
  })

  test('survives failed polls, and a film that is not there yet', async () => {
    const { server, run } = await open()
    for (const status of [404, 409])
      server.fault('GET /v1/videos/video_1/content', { status, body: { detail: 'not ready' } }, 2)
    for (const failed of [502, 408, 425]) server.fault('GET /v1/videos/video_1', { status: failed }, 3)
    expect(await run()).toHaveLength(1)
  })

  test('may have its film in a cloud storage', async () => {
    const { server, run } = await open()
    const stored = { status: 400, body: { detail: 'Video has been uploaded to cloud storage' } }
    server.fault('GET /v1/videos/video_1/content', stored)
    server.fault('GET /bucket/1.mp4', { body: FILM })
    const url = `${server.url}/bucket/1.mp4`
    server.fault('GET /v1/videos/', { body: { id: 'video_1', status: 'completed', url } })
    expect(await run()).toEqual([{ name: 'video.mp4', contentType: 'video/mp4' }])
    server.fault('GET /v1/videos/video_2/content', stored)
    await expect(run()).rejects.toThrow('answered 400: Video has been uploaded')
  })

  test('fails after twenty failed polls in a row, and is removed', async () => {
    const { server, run } = await open()
    server.fault('GET /v1/videos/video_1', { status: 502, body: '<html>' }, 100)
    await expect(run()).rejects.toThrow("The model's server answered 502 with a web page.")
    expect([server.count('GET'), server.cancelled]).toEqual([20, ['video_1']])
  })

  test.each([{}, { detail: 'starting' }])('without an id fails: %j', async (body) => {
    const { server, run } = await open()
    server.fault('POST /v1/videos', { body })
    await expect(run()).rejects.toThrow('returned no id for the job')
  })
})

test('a run that is cancelled while its job is created removes the job when its id arrives in time', async () => {
  const { server, clock, render } = await open({}, { isQuick: false })
  const { after, open: answer } = createGate()
  server.fault('POST /v1/videos', { after })
  const stop = new AbortController()
  const rendering = render({}, { signal: stop.signal })
  await until('the request arrives', () => server.count('POST') === 1)
  stop.abort(new Error('stopped by the test'))
  await clock.advance(2_499)
  answer()
  await expect(clock.runUntil(rendering)).rejects.toThrow('stopped by the test')
  expect([server.cancelled, server.count('GET')]).toEqual([['video_1'], 0])
})

test.each<[name: string, document: Partial<EngineDocument>, problems: readonly string[]]>([
  ['an image model', { kind: 'image' }, ['type: videos is only for models of kind video']],
  [
    'a parameter that is sent nowhere',
    { input: { steps: { type: 'integer' } } },
    ['send: "steps" is not sent: add it here, or remove it from the input'],
  ],
])('reports %s', (_, { engine, ...document }, problems) => {
  const settings = { type: 'videos', url: 'http://127.0.0.1:1/v1', ...engine }
  expect(readEngineOf({ kind: 'video', ...document, engine: settings }).problems).toEqual(problems)
})
