/** The engine `sdcpp` against the own interface of stable-diffusion.cpp's server, as read in its source. */
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { resultOf, testEngine } from '../../contract/engine.js'
import { temporaryFolder, until } from '../../support/index.js'
import {
  type EngineDocument,
  openEngine,
  readEngineOf,
  savedFile,
} from '../../support/model-servers/engine.js'
import { pngOf, sizeOfPng } from '../../support/model-servers/pictures.js'
import { createSdcppServer, type SdcppOptions } from '../../support/model-servers/sdcpp.js'

testEngine({
  name: 'sdcpp',
  createServer: () => createSdcppServer(),
  document: (url) => ({ engine: { type: 'sdcpp', url } }),
  creates: 'POST /sdcpp/v1/img_gen',
  results: 'GET /sdcpp/v1/jobs/',
  createsWithReferences: 'POST /sdcpp/v1/img_gen',
  keepsRequestMs: 2_500,
  hasKey: true,
})

const SENT: EngineDocument['engine'] = {
  send: {
    negative_prompt: 'negative_prompt',
    steps: 'sample_params.sample_steps',
    guidance: 'sample_params.guidance.txt_cfg',
  },
}
const SENT_INPUT: EngineDocument['input'] = {
  negative_prompt: { type: 'string' },
  steps: { type: 'integer' },
  guidance: { type: 'number' },
}

async function open(
  engine: EngineDocument['engine'] = {},
  options: SdcppOptions = {},
  document: Partial<EngineDocument> = {},
) {
  const server = await createSdcppServer(options)
  return { server, ...openEngine({ ...document, engine: { type: 'sdcpp', url: server.url, ...engine } }) }
}

const picture = (name: string): string => savedFile(pngOf(8, 8, name))
const base64Of = (path: string): string => readFileSync(path).toString('base64')

test('sends typed parameters, and fetches the picture of the job', async () => {
  const { server, clock, render } = await open(SENT, {}, { input: SENT_INPUT })
  const own = { seed: 7, steps: 8, guidance: 3.5, negative_prompt: 'text' }
  const folder = temporaryFolder()
  const files = await clock.runUntil(
    render({ folder, input: { prompt: 'a fox', aspect_ratio: '16:9', ...own } }),
  )
  expect(files).toEqual([{ name: 'image.png', contentType: 'image/png' }])
  expect(sizeOfPng(resultOf(folder))).toBe('1344x768')
  expect(server.jobs.map(({ fields }) => fields)).toEqual([
    {
      ...{ prompt: 'a fox', width: 1344, height: 768, output_format: 'png', batch_count: 1 },
      ...{ negative_prompt: 'text', seed: 7 },
      sample_params: { sample_steps: 8, guidance: { txt_cfg: 3.5 } },
    },
  ])
})

test('sends references in both fields, so that no model ignores them', async () => {
  const { server, run } = await open()
  const [one, other] = [picture('one'), picture('other')]
  await run({ references: [one, other] })
  expect(server.jobs[0]?.fields).toMatchObject({
    init_image: base64Of(one),
    ref_images: [base64Of(one), base64Of(other)],
  })
})

test('a cancel takes a job that waits out of the queue, and one that is drawn ends by itself', async () => {
  const { server, clock, engine, render } = await open({}, { isQuick: false })
  for (const id of ['one', 'two']) void render({ run: { id, model: 'm' } })
  await clock.runUntil(until('the jobs', () => server.jobs.length === 2))
  for (const [at, job] of server.jobs.entries()) {
    if (at > 0) job.status = 'generating'
    const stored = { handle: { id: job.id } }
    expect(await engine.cancel?.({ id: 'run_7', model: 'm', stored })).toBe(
      at > 0 ? 'not canceled' : 'not charged',
    )
  }
  expect(server.jobs.map(({ status }) => status)).toEqual(['cancelled', 'generating'])
})

test('shows the place in the queue', async () => {
  const { server, clock, render } = await open({}, { isQuick: false })
  const positions: number[] = []
  const rendering = render({ onPosition: (position) => void positions.push(position) })
  await clock.runUntil(until('the place is shown', () => positions.length > 0))
  for (const job of server.jobs) job.status = 'generating'
  await clock.runUntil(rendering)
  expect(new Set(positions)).toEqual(new Set([0]))
})

test('fails with the words of the server', async () => {
  const { server, run } = await open()
  const error = { code: 'generation_failed', message: 'CUDA out of memory' }
  server.fault('GET', { body: { id: 'job_1', status: 'failed', error } })
  await expect(run()).rejects.toThrow('CUDA out of memory')
})

test('refuses texts that end the server, before anything is sent', async () => {
  const { server, render } = await open(SENT, {}, { input: SENT_INPUT })
  const input = { prompt: 'a fox', negative_prompt: 'x'.repeat(9_000) }
  await expect(render({ input })).rejects.toThrow('takes at most 8000')
  expect(server.requests).toEqual([])
})

test('has a seed beside the built-in parameters, and those that are sent', () => {
  const engine = { type: 'sdcpp', url: 'http://127.0.0.1:1234' }
  const builtIn = ['prompt', 'aspect_ratio', 'quality', 'image_urls']
  expect(readEngineOf({ engine }).parameters).toEqual([...builtIn, 'seed'])
  const sent = readEngineOf({ engine: { ...engine, ...SENT }, input: SENT_INPUT })
  expect(sent.parameters).toEqual([...builtIn, 'negative_prompt', 'steps', 'guidance', 'seed'])
  const unknown = { engine, input: { x: { type: 'string' } } }
  expect(readEngineOf(unknown).problems).toEqual([
    'send: "x" is not sent: add it here, or remove it from the input',
  ])
  expect(readEngineOf({ kind: 'video', engine }).problems).toEqual([
    'type: sdcpp is only for models of kind image',
  ])
})
