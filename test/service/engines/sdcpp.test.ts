/** The engine `sdcpp` against the own interface of stable-diffusion.cpp's server, as read in its source. */
import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { type RenderJob, RunCanceled } from '../../../src/service/engines/engine.js'
import { resultOf } from '../../contract/engine.js'
import {
  type EngineDocument,
  jobOf,
  openEngine,
  readEngineOf,
  savedFile,
} from '../../support/model-servers/engine.js'
import { pngOf, sizeOfPng } from '../../support/model-servers/pictures.js'
import { createSdcppServer, type SdcppOptions } from '../../support/model-servers/sdcpp.js'
import { until } from '../../support/until.js'

async function open(document: Partial<EngineDocument> = {}, options: SdcppOptions = {}) {
  const server = await createSdcppServer(options)
  const settings = { type: 'sdcpp', url: server.url, ...document.engine }
  const { render: renderJob, ...opened } = openEngine({ ...document, engine: settings })
  const render = (more: Partial<RenderJob> = {}) => {
    const job = jobOf(more)
    return { job, rendering: renderJob(job) }
  }
  return { server, render, ...opened }
}

const picture = (name: string): string => savedFile(pngOf(8, 8, name))
const base64Of = (path: string): string => readFileSync(path).toString('base64')

test('sends typed parameters, and fetches the picture of the job', async () => {
  const { server, clock, render } = await open()
  const own = { seed: 7, steps: 8, guidance: 3.5, negative_prompt: 'text' }
  const { job, rendering } = render({ input: { prompt: 'a fox', aspect_ratio: '16:9', ...own } })
  expect(await clock.runUntil(rendering)).toEqual([{ name: 'image.png', contentType: 'image/png' }])
  expect(sizeOfPng(resultOf(job.folder))).toBe('1344x768')
  expect(server.jobs.map(({ fields }) => fields)).toEqual([
    {
      ...{ prompt: 'a fox', width: 1344, height: 768, output_format: 'png', batch_count: 1 },
      ...{ negative_prompt: 'text', seed: 7 },
      sample_params: { sample_steps: 8, guidance: { txt_cfg: 3.5 } },
    },
  ])
})

test.each<[references: string | undefined, fields: readonly string[]]>([
  [undefined, ['init_image', 'ref_images']],
  ['ref_images', ['ref_images']],
  ['init_image', ['init_image']],
])(
  'sends references by the setting %s in %j, so that no model ignores them by default',
  async (field, fields) => {
    const { server, clock, render } = await open({ engine: { ...(field && { references: field }) } })
    const one = picture('one')
    await clock.runUntil(render({ references: [one] }).rendering)
    const sent = Object.entries(server.jobs[0]?.fields ?? {}).filter(([name]) => /image/.test(name))
    const values = { init_image: base64Of(one), ref_images: [base64Of(one)] }
    expect(sent).toEqual(Object.entries(values).filter(([name]) => fields.includes(name)))
  },
)

test('sends several references as the list of an edit, and refuses them for an image to start from', async () => {
  const [one, other] = [picture('one'), picture('other')]
  const edit = await open()
  await edit.clock.runUntil(edit.render({ references: [one, other] }).rendering)
  expect(edit.server.jobs[0]?.fields.ref_images).toEqual([one, other].map(base64Of))
  const start = await open({ engine: { references: 'init_image' } })
  await start.clock.runUntil(start.render({ references: [one] }).rendering)
  expect(start.server.jobs[0]?.fields).toMatchObject({ init_image: base64Of(one) })
  const { rendering } = start.render({ references: [one, other] })
  await expect(rendering).rejects.toThrow('takes at most 1 reference image; the run has 2.')
})

test('a canceled run that waits is taken out of the queue, and one that is drawn ends by itself', async () => {
  const { server, clock, engine, render } = await open({}, { isQuick: false })
  for (const status of ['queued', 'generating'] as const) {
    const controller = new AbortController()
    const { rendering } = render({ run: { id: status, model: 'm' }, signal: controller.signal })
    await clock.runUntil(until('the job is polled', () => (server.jobs.at(-1)?.looks ?? 0) > 0))
    const [job] = server.jobs.slice(-1)
    if (job !== undefined) job.status = status
    controller.abort(new RunCanceled())
    await expect(clock.runUntil(rendering)).rejects.toThrow('canceled')
    await engine.cancel?.({ id: status, model: 'm', stored: { handle: { id: job?.id ?? '' } } })
  }
  expect(server.jobs.map(({ status }) => status)).toEqual(['cancelled', 'generating'])
  expect(server.count('POST /sdcpp/v1/jobs/')).toBe(2)
})

test('waits while the queue is full, and shows the place in it', async () => {
  const { server, clock, render } = await open({}, { isQuick: false })
  server.fault('POST /sdcpp', { status: 429, body: { error: 'job queue is full' } }, 2)
  const positions: number[] = []
  const { rendering } = render({ onPosition: (position) => void positions.push(position) })
  await clock.runUntil(until('the place is shown', () => positions.length > 0))
  for (const job of server.jobs) job.status = 'generating'
  await clock.runUntil(rendering)
  expect(server.count('POST')).toBe(3)
  expect(new Set(positions)).toEqual(new Set([0]))
})

test('fails with the words of the server', async () => {
  const { server, clock, render } = await open()
  server.failWith('CUDA out of memory')
  await expect(clock.runUntil(render().rendering)).rejects.toThrow('CUDA out of memory')
})

test('a result that breaks off is fetched again', async () => {
  const { server, clock, render } = await open({}, { isQuick: false })
  const { job, rendering } = render()
  await until('the job exists', () => server.jobs.length === 1)
  for (const each of server.jobs) each.status = 'completed'
  server.fault('GET /sdcpp/v1/jobs', { bytes: 60, ending: 'reset' }, 2)
  await clock.runUntil(rendering)
  expect(readdirSync(job.folder).filter((name) => !name.startsWith('.'))).toEqual(['image.png'])
})

test('refuses texts that end the server, before anything is sent', async () => {
  const { server, render } = await open()
  const input = { prompt: 'a fox', negative_prompt: 'x'.repeat(9_000) }
  await expect(render({ input }).rendering).rejects.toThrow('takes at most 8000')
  expect(server.requests).toEqual([])
})

test('offers the parameters of the server, with its bounds, unless the document has its own', () => {
  const engine = { type: 'sdcpp', url: 'http://127.0.0.1:1234' }
  const builtIn = ['prompt', 'aspect_ratio', 'quality', 'image_urls', 'seed']
  expect(readEngineOf({ engine }).parameters).toEqual([...builtIn, 'negative_prompt', 'steps', 'guidance'])
  const input = { guidance: false, strength: { type: 'number', minimum: 0, maximum: 1 } }
  expect(readEngineOf({ engine, input }).parameters).toEqual([
    ...['prompt', 'aspect_ratio', 'quality', 'image_urls', 'strength', 'seed', 'negative_prompt', 'steps'],
  ])
  const unknown = { engine: { ...engine, references: 'images' }, input: { x: { type: 'string' } } }
  expect(readEngineOf(unknown).problems).toEqual([
    'references: must be one of ref_images, init_image',
    'send: "x" is not sent: add it here, or remove it from the input',
  ])
  expect(readEngineOf({ kind: 'video', engine }).problems).toEqual([
    'type: sdcpp is only for models of kind image',
  ])
})
