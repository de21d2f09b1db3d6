/**
 * The engine `comfyui` against a server of today and one that ignores ids, as read in their sources. The slots that are found
 * in workflows: test/engines/real-workflows.
 */
import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { placeIn } from '../../../src/service/engines/comfyui/index.js'
import type { RenderJob } from '../../../src/service/engines/engine.js'
import { testEngine } from '../../contract/engine.js'
import { temporaryFolder, until } from '../../support/index.js'
import { type ComfyOptions, createComfyServer } from '../../support/model-servers/comfyui.js'
import {
  createEngineOf,
  type EngineDocument,
  jobOf,
  openEngine,
  readEngineOf,
  savedFile,
} from '../../support/model-servers/engine.js'
import { pngOf } from '../../support/model-servers/pictures.js'
import { IMAGE_WORKFLOW, VIDEO_WORKFLOW } from './comfyui-workflows.js'

function fileOf(content: unknown): string {
  const path = join(temporaryFolder(), 'flow.json')
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
  return path
}

testEngine({
  name: 'comfyui',
  createServer: () => createComfyServer(),
  document: (url) => ({ engine: { type: 'comfyui', url, workflow: fileOf(IMAGE_WORKFLOW) } }),
  creates: 'POST /prompt',
  results: 'GET /view',
  findsLostJobs: true,
  hasKey: true,
})

interface OpenOptions extends ComfyOptions {
  readonly workflow?: unknown
  readonly document?: Partial<EngineDocument>
  readonly env?: Readonly<Record<string, string>>
}

async function open({ workflow = IMAGE_WORKFLOW, document = {}, env = {}, ...options }: OpenOptions = {}) {
  const server = await createComfyServer(options)
  const engine = { type: 'comfyui', url: server.url, workflow: fileOf(workflow), ...document.engine }
  const opened = openEngine({ ...document, engine }, env)
  /** As another process of the service would. */
  const createEngine = () => createEngineOf({ ...document, engine }, { clock: opened.clock, env })
  const graph = () => server.graphs.at(-1) ?? {}
  /** Renders until so many jobs are in the queue of the server. */
  const queued = async (jobs = 1, more?: Partial<RenderJob>) => {
    const rendering = opened.render(more)
    await opened.clock.runUntil(until('the job', () => server.queue().length === jobs))
    return { rendering }
  }
  return { server, createEngine, graph, queued, ...opened }
}

const TWO_REFERENCES = {
  ...IMAGE_WORKFLOW,
  '12:3': { class_type: 'LoadImage', inputs: { image: 'example.png' } },
  11: { class_type: 'LoadImage', inputs: { image: 'example.png' } },
}

const SLOTS: Partial<EngineDocument> = {
  engine: {
    slots: {
      prompt: ['6.inputs.text'],
      width: '5.inputs.width',
      height: '5.inputs.height',
      seed: '3.inputs.seed',
      steps: '3.inputs.steps',
      references: ['12:3.inputs.image', '11.inputs.image'],
    },
    sizes: { '16:9': '1360x768' },
  },
  input: { steps: { type: 'integer' }, seed: { type: 'integer' } },
}

test('each slot gets its value, and everything else stays as it was exported', async () => {
  const { server, run, graph } = await open({ workflow: TWO_REFERENCES, document: SLOTS })
  const pictures = [pngOf(8, 8, 'one'), pngOf(8, 8, 'other')]
  const input = { prompt: 'a fox', aspect_ratio: '16:9', steps: 30, seed: 7, negative: 'ignored' }
  await run({ input, references: pictures.map(savedFile) })
  const names = pictures.map((bytes) => `rushes/${createHash('sha256').update(bytes).digest('hex')}.png`)
  expect(graph()).toEqual({
    ...TWO_REFERENCES,
    3: { ...IMAGE_WORKFLOW[3], inputs: { ...IMAGE_WORKFLOW[3].inputs, seed: 7, steps: 30 } },
    5: { ...IMAGE_WORKFLOW[5], inputs: { ...IMAGE_WORKFLOW[5].inputs, width: 1360, height: 768 } },
    6: { ...IMAGE_WORKFLOW[6], inputs: { ...IMAGE_WORKFLOW[6].inputs, text: 'a fox' } },
    '12:3': { class_type: 'LoadImage', inputs: { image: names[0] } },
    11: { class_type: 'LoadImage', inputs: { image: names[1] } },
  })
  expect([...server.uploads]).toEqual(
    names.map((name, index) => [name, new Uint8Array(pictures[index] ?? [])]),
  )
})

test('overwrites no file of the server, and uploads a reference once', async () => {
  const { server, run, clock, render, graph } = await open({ workflow: TWO_REFERENCES, document: SLOTS })
  const [one, other] = [pngOf(8, 8, 'one'), pngOf(8, 8, 'other')]
  const [first, second] = [one, other].map((bytes) => createHash('sha256').update(bytes).digest('hex'))
  server.uploads.set(`rushes/${first}.png`, other)
  await run({ references: [one, other].map(savedFile) })
  await clock.runUntil(
    render({ run: { id: 'run_8', model: 'm' }, references: [other, other].map(savedFile) }),
  )
  expect([...server.uploads.keys()]).toEqual([
    `rushes/${first}.png`,
    `rushes/(1) ${first}.png`,
    `rushes/${second}.png`,
  ])
  expect(server.uploads.get(`rushes/${first}.png`)).toEqual(other)
  expect(graph()[11]?.inputs).toEqual({ image: `rushes/${second}.png` })
})

test('uploads other media, and writes their names into their slots', async () => {
  const { run, graph } = await open({
    workflow: { ...IMAGE_WORKFLOW, 12: { class_type: 'LoadImage', inputs: { image: 'old.png' } } },
    document: {
      engine: { slots: { prompt: '6.inputs.text', mask: '12.inputs.image' } },
      input: { mask: { type: 'string' } },
    },
  })
  const mask = pngOf(8, 8, 'mask')
  const media = { mask: [savedFile(mask)] }
  await run({ input: { prompt: 'a fox', mask: 'sha256:x' }, media })
  const sha256 = createHash('sha256').update(mask).digest('hex')
  expect(graph()[12]?.inputs).toEqual({ image: `rushes/${sha256}.png` })
})

test.each([
  [IMAGE_WORKFLOW, {}, 1, 'takes exactly 0 reference images; the run has 1.'],
  [TWO_REFERENCES, SLOTS, 1, 'takes exactly 2 reference images; the run has 1.'],
  [TWO_REFERENCES, SLOTS, 0, 'takes exactly 2 reference images; the run has 0.'],
])(
  'never draws the picture of the export in place of a reference',
  async (workflow, document, count, expected) => {
    const { server, run } = await open({ workflow, document })
    const references = Array.from({ length: count }, () => savedFile(pngOf(8, 8, 'one')))
    await expect(run({ references })).rejects.toThrow(expected)
    expect(server.count('POST')).toBe(0)
  },
)

test('a run without a seed gets another one each time', async () => {
  const { server, run } = await open()
  await run({ run: { id: 'run_1', model: 'acme/model' } })
  await run({ run: { id: 'run_2', model: 'acme/model' } })
  const seeds = server.graphs.map((graph) => graph[3]?.inputs.seed)
  expect(new Set([...seeds, IMAGE_WORKFLOW[3].inputs.seed]).size).toBe(3)
  for (const seed of seeds) expect(Number.isSafeInteger(seed)).toBe(true)
})

test('a workflow that the server has rendered before has its outputs again', async () => {
  const { server, run } = await open()
  for (const id of ['run_1', 'run_2']) {
    const job = { run: { id, model: 'acme/model' }, input: { prompt: 'a fox', seed: 7 } }
    expect(await run(job)).toHaveLength(1)
  }
  expect(server.rendered).toHaveLength(2)
})

test('a film has the frames of the run', async () => {
  const document = {
    kind: 'video',
    engine: { slots: { prompt: '6.inputs.text', frames: '5.inputs.length' } },
    input: { frames: { type: 'integer' } },
  } as const
  const { run, graph } = await open({ workflow: VIDEO_WORKFLOW, document })
  const job = { kind: 'video', input: { prompt: 'a fox', frames: 81 } } as const
  expect(await run(job)).toEqual([{ name: 'video.mp4', contentType: 'video/mp4' }])
  expect(graph()[5]?.inputs).toEqual({ width: 832, height: 480, length: 81, batch_size: 1 })
})

test('without slots, the workflow keeps its own size, steps and guidance', async () => {
  const { run, graph } = await open()
  const own = { aspect_ratio: '16:9', steps: 4, guidance: 1.5, negative_prompt: 'text' }
  await run({ input: { prompt: 'a fox', ...own } })
  expect(graph()[5]?.inputs).toMatchObject({ width: 512, height: 512 })
  expect(graph()[3]?.inputs).toMatchObject({ steps: 20, cfg: 8 })
  expect(graph()[6]?.inputs).toMatchObject({ text: 'a fox' })
  expect(graph()[7]?.inputs).toMatchObject({ text: 'blurry' })
})

test('a node with the title "size" gets that of the run, as in sizes', async () => {
  const workflow = { ...IMAGE_WORKFLOW, 5: { ...IMAGE_WORKFLOW[5], _meta: { title: 'Size' } } }
  const { run, graph } = await open({ workflow, document: { engine: { sizes: { '16:9': '704x384' } } } })
  await run({ input: { prompt: 'a fox', aspect_ratio: '16:9' } })
  expect(graph()[5]?.inputs).toMatchObject({ width: 704, height: 384 })
})

test('outputs come in the order of nodes, without previews', async () => {
  const second = { class_type: 'SaveImage', inputs: { images: ['8', 0], filename_prefix: 'second' } }
  const preview = { class_type: 'PreviewImage', inputs: { images: ['8', 0] } }
  const workflow = { ...IMAGE_WORKFLOW, 10: second, 2: preview }
  const { server, run } = await open({ workflow })
  const files = await run()
  expect(files.map(({ name }) => name)).toEqual(['image-1.png', 'image-2.png'])
  const views = server.requests
    .filter(({ path }) => path === '/view')
    .map(({ query }) => query.get('filename'))
  expect(views).toEqual(['9_00001_.png', '10_00001_.png'])
})

describe('many outputs', () => {
  async function finished(count: number) {
    const opened = await open({ isQuick: false })
    const { rendering } = await opened.queued()
    const images = Array.from({ length: count }, (_, index) => ({ filename: `${index}.png`, type: 'output' }))
    opened.server.finish({ outputs: { 9: { images } } })
    return { ...opened, rendering }
  }

  test('fail the run when there are more than 64', async () => {
    const { server, clock, rendering } = await finished(65)
    await expect(clock.runUntil(rendering)).rejects.toThrow(
      'The result has 65 files; a run may have at most 64.',
    )
    expect(server.count('GET /view')).toBe(0)
    const most = await finished(64)
    expect(await most.clock.runUntil(most.rendering)).toHaveLength(64)
  })

  test('have at most 512 MiB together', async () => {
    const { server, clock, rendering } = await finished(3)
    server.fault('GET /view', { body: pngOf(8, 8, 'one') })
    server.fault('GET /view', { headers: { 'content-length': `${512 * 2 ** 20}` }, body: 'x' })
    await expect(clock.runUntil(rendering)).rejects.toThrow('sent a result of more than 512 MiB.')
    expect(server.count('GET /view')).toBe(2)
  })
})

describe('errors', () => {
  const { inputs, ...sampler } = IMAGE_WORKFLOW[3]
  const cut = { class_type: 'SaveImage', inputs: { images: ['8', 0], filename_prefix: '' } }
  test.each([
    [
      'refused',
      { 3: { ...sampler, inputs: { ...inputs, sampler_name: 'eular' } } },
      "ComfyUI refused the workflow. KSampler (node 3): Value not in list: sampler_name: 'eular' not in (list of length 2)",
    ],
    ['rendered in part', { 10: cut }, 'SaveImage (node 10): Required input is missing: filename_prefix'],
  ])(
    'a workflow that would be %s fails with the name of the node, and leaves no job',
    async (_, node, message) => {
      const { server, run } = await open({ workflow: { ...IMAGE_WORKFLOW, ...node } })
      await expect(run()).rejects.toThrow(message)
      expect(server.queue()).toEqual([])
    },
  )

  const failed = (message: string, detail: object) => ({
    outputs: {},
    status: {
      status_str: 'error',
      completed: false,
      messages: [
        ['execution_start', {}],
        [message, detail],
      ],
    },
  })
  test.each([
    [
      failed('execution_error', {
        node_id: '3',
        node_type: 'KSampler',
        exception_type: 'torch.OutOfMemoryError',
        exception_message: 'Allocation on device\n',
        traceback: ['File "/srv/ComfyUI/execution.py"'],
      }),
      'KSampler (node 3): Allocation on device',
    ],
    [failed('execution_interrupted', {}), 'The job was canceled in ComfyUI.'],
    [
      { outputs: { 4: { latents: [{ filename: 'a.latent', subfolder: '', type: 'output' }], text: ['x'] } } },
      'finished the workflow without an image or a video',
    ],
  ])('%j fails the run, also when another worker takes it over', async (entry, expected) => {
    const { server, clock, queued, createEngine } = await open({ isQuick: false })
    const { rendering } = await queued()
    server.finish(entry)
    for (const render of [() => rendering, () => createEngine().render(jobOf())]) {
      const error = await clock.runUntil(render().catch((reason: Error) => reason))
      expect((error as Error).message).toContain(expected)
      expect((error as Error).message).not.toContain('execution.py')
    }
    expect(server.count('POST /prompt')).toBe(1)
  })

  test('a server that was restarted has lost the job', async () => {
    const { server, clock, queued } = await open({ isQuick: false })
    const { rendering } = await queued()
    server.restart()
    await expect(clock.runUntil(rendering)).rejects.toThrow(
      "The model's server no longer knows this job: it was probably restarted. Run it again.",
    )
    expect(server.count('POST /prompt')).toBe(1)
  })
})

describe('the answer to a workflow', () => {
  test.each([
    { status: 504, body: '<html>' },
    { status: 200, body: '<html>' },
  ])('is %j from a proxy: the job is looked for, and cancelled in case it still comes', async (answer) => {
    const { server, run } = await open()
    server.fault('POST /prompt', answer)
    await expect(run()).rejects.toThrow(/answered 504 with a web page|is not JSON/)
    expect(server.count('POST /queue')).toBe(1)
  })

  test('names an id that is not of this job alone', async () => {
    const { server, run } = await open()
    server.fault('POST /prompt', { body: { prompt_id: '12345678-0000-0000-0000-000000000001' } })
    await expect(run()).rejects.toThrow('so it is not ComfyUI')
    expect(server.count('POST /')).toBe(1)
  })
})

test('polls survive what a proxy answers, long answers, and a queue that is too long to be read', async () => {
  const { server, clock, queued } = await open({ isQuick: false })
  const { rendering } = await queued()
  server.fault('GET /history/', { body: '<html>' }, 5)
  server.fault('GET /queue', { bytes: 5, ending: 'reset' })
  server.fault('GET /queue', { body: {} })
  const entry = {
    queue_running: [[0, server.queue()[0], { text: 'x'.repeat(5_000_000) }]],
    queue_pending: [],
  }
  server.fault('GET /queue', { body: entry })
  server.fault('GET /queue', { body: { queue_running: [], queue_pending: Array(1_000_000).fill(0) } })
  await clock.runUntil(until('the queue', () => server.count('GET /queue') >= 6))
  server.finish()
  expect(await clock.runUntil(rendering)).toHaveLength(1)
})

test('the place of a job in the queue is that of its number, and no text of a workflow counts', () => {
  const job = (id: string, number = 3, text = '') => [number, id, { 6: { inputs: { text } } }, {}, []]
  const queueOf = (running: unknown[], pending: unknown[]) => ({
    queue_running: running,
    queue_pending: pending,
  })
  const trap = job('other', 3, JSON.stringify(queueOf([job('own')], [])))
  const others = [1, 2, 3, 4].map((number) => job(`other-${number}`, number))
  const place = (queue: object) => placeIn({ ...queue }, 'own')
  expect(place(queueOf([job('own')], [trap]))).toEqual({ state: 'running' })
  expect(place(queueOf([job('other', 2)], [trap, job('own'), trap]))).toEqual({
    state: 'waiting',
    position: 0,
  })
  // The list is a heap: only its first job is in its place.
  expect(place(queueOf([], [...others.toReversed(), job('own'), trap]))).toEqual({
    state: 'waiting',
    position: 2,
  })
  expect(place(queueOf([trap], [trap]))).toEqual({ state: 'missing' })
  for (const answer of [{}, { queue_running: [] }])
    expect(() => place(answer)).toThrow('its queue in an unknown format')
})

describe('a run that another worker takes over', () => {
  test('finds its job, waiting or running, and shows how many jobs run before it', async () => {
    const { server, clock, queued, createEngine } = await open({ isQuick: false })
    server.addForeign()
    server.addForeign()
    // The first worker is killed: nobody reads what it renders.
    await queued(3)
    const places: number[] = []
    const onPosition = (position: number) => void places.push(position)
    const rendering = createEngine().render(jobOf({ onPosition }))
    await clock.runUntil(until('the place', () => places.length > 0))
    server.finish({ outputs: {} })
    await clock.runUntil(until('the next place', () => places.includes(0)))
    server.finish({ outputs: {} })
    server.finish()
    expect(await clock.runUntil(rendering)).toHaveLength(1)
    expect([server.count('POST /prompt'), server.rendered.length]).toEqual([1, 3])
    expect([...new Set(places)]).toEqual([1, 0])
  })

  test('finds the result of a job that is done', async () => {
    const { server, run, clock, createEngine } = await open()
    await run()
    const job = jobOf()
    // It ends between the first look into the history and that into the queue.
    server.fault('GET /history/', { body: {} })
    expect(await clock.runUntil(createEngine().render(job))).toHaveLength(1)
    expect(server.count('POST /prompt')).toBe(1)
    expect(readFileSync(join(job.folder, 'image.png')).byteLength).toBeGreaterThan(0)
  })
})

describe.each([false, true])('a server that ignores ids: %s', (isOld) => {
  async function started(isBehindAnother: boolean) {
    const opened = await open({ isOld, isQuick: false })
    const { server, clock, queued } = opened
    const other = isBehindAnother ? server.addForeign() : ''
    const stop = new AbortController()
    const job = jobOf({ signal: stop.signal })
    const { rendering } = await queued(isBehindAnother ? 2 : 1, job)
    const cancel = async () => {
      stop.abort(new Error('cancelled'))
      await expect(clock.runUntil(rendering)).rejects.toThrow('cancelled')
      expect(readdirSync(job.folder)).toEqual([])
    }
    return { ...opened, other, cancel }
  }

  test('cancels the run that it renders', async () => {
    const { server, cancel } = await started(false)
    const [own] = server.queue()
    const other = server.addForeign()
    await cancel()
    expect(server.interrupted).toEqual([own])
    expect(server.queue()).toEqual([other])
  })

  test('takes a cancelled run out of the queue, and leaves the job of another user alone', async () => {
    const { server, other, cancel } = await started(true)
    await cancel()
    expect([server.queue(), server.interrupted]).toEqual([[other], []])
    expect(server.count('POST /interrupt')).toBe(0)
  })

  test('leaves a job alone that has just started in place of the cancelled run', async () => {
    const { server, cancel } = await started(false)
    const other = server.addForeign()
    server.finish()
    await cancel()
    expect([server.queue(), server.interrupted]).toEqual([[other], []])
  })
})

describe('a document', () => {
  const problemsOf = (workflow: unknown, { engine, ...document }: Partial<EngineDocument> = {}) =>
    readEngineOf({
      ...document,
      engine: { type: 'comfyui', url: 'http://127.0.0.1:1', workflow: fileOf(workflow), ...engine },
    }).problems

  test.each([
    ['{', 'workflow: is not a JSON file'],
    ['[]', 'workflow: is not a workflow: it has no nodes'],
    [
      { nodes: [], links: [], version: 0.4 },
      'workflow: has the format of the editor. In ComfyUI, choose Workflow > Export (API)',
    ],
    [
      { 1: { inputs: {} } },
      'workflow: is not a workflow for the API: "1" has no "class_type" or no "inputs"',
    ],
  ])('with the workflow %j', (workflow, problem) => {
    expect(problemsOf(workflow, SLOTS)).toEqual([problem])
  })

  test('takes the seeds of ComfyUI, up to 64 bits', () => {
    const engine = { type: 'comfyui', url: 'http://a', workflow: fileOf(IMAGE_WORKFLOW) }
    expect(readEngineOf({ engine }).schema.properties.seed).toMatchObject({
      minimum: 0,
      maximum: 18_446_744_073_709_551_615n,
    })
  })

  test('without slots names everything that is ambiguous in one problem', () => {
    const { 6: text } = IMAGE_WORKFLOW
    const workflow = {
      ...IMAGE_WORKFLOW,
      16: { ...text, inputs: { ...text.inputs, text: 'a dog' } },
      13: { class_type: 'KSampler', inputs: { seed: 1, positive: ['16', 0], image: ['11', 0] } },
      11: { class_type: 'LoadImage', inputs: { image: 'one.png' } },
      12: { class_type: 'LoadImage', inputs: { image: 'other.png' } },
      14: { class_type: 'ImageBlend', inputs: { image1: ['12', 0] } },
    }
    expect(problemsOf(workflow)).toEqual([
      'workflow: has more than one node for the prompt (candidates: 6 CLIPTextEncode, 16 CLIPTextEncode), and has more than ' +
        'one node for the reference image (candidates: 11 LoadImage, 12 LoadImage). ' +
        'Give the right node a title in ComfyUI, such as prompt or reference 1, or name the inputs in a model file: ' +
        'slots: { prompt: 6.inputs.text, … }',
    ])
  })

  test('with a workflow in which no prompt is found', () => {
    const { 3: _, ...workflow } = IMAGE_WORKFLOW
    expect(problemsOf(workflow)).toEqual([
      'slots: has none for the property "prompt". Give its node the title "prompt" in ComfyUI, or add it',
    ])
  })

  test.each([
    [
      { prompt: '6.inputs.texts' },
      ['slots.prompt: is not an input of CLIPTextEncode (node 6), which has 6.inputs.text, 6.inputs.clip'],
    ],
    [
      { prompt: '99.inputs.text' },
      [
        'slots.prompt: names no node of the workflow (it has 3 KSampler, 4 CheckpointLoaderSimple, 5 EmptyLatentImage, 6 CLIPTextEncode, 7 CLIPTextEncode, 8 VAEDecode, 9 SaveImage, 11 LoadImage, 12:3 LoadImage)',
      ],
    ],
    [
      { references: ['11.inputs.image', '11.inputs.x'] },
      ['slots.references.1: is not an input of LoadImage (node 11), which has 11.inputs.image'],
    ],
    [
      { image_urls: '11.inputs.image', cfg: '3.inputs.steps' },
      ['image_urls', 'cfg'].map(
        (name) =>
          `slots.${name}: is neither a property of the input nor one of width, height, seed, references`,
      ),
    ],
    [
      { width: undefined, height: undefined },
      [
        'sizes: has no effect: give the node with the size of the picture the title "size", or add the slots width and height',
      ],
    ],
    [{ height: undefined }, ['slots: needs both "width" and "height", or neither']],
    [
      { steps: undefined },
      ['slots: has none for the property "steps". Add it, or remove the property from the input'],
    ],
  ])('with the slots %j', (slots, problems) => {
    const given = Object.entries({ ...(SLOTS.engine?.slots as object), ...slots })
    const document = {
      ...SLOTS,
      engine: { ...SLOTS.engine, slots: Object.fromEntries(given.filter(([, slot]) => slot !== undefined)) },
    }
    expect(problemsOf(TWO_REFERENCES, document)).toEqual(problems)
  })

  test('a list of the run cannot become a link between nodes', () => {
    const { slots, ...engine } = { slots: {}, ...SLOTS.engine }
    const document = {
      engine: { ...engine, slots: { ...slots, tags: '3.inputs.cfg', extra: '3.inputs.model' } },
      input: {
        ...SLOTS.input,
        tags: { type: 'array', items: { type: 'string' } },
        extra: { type: 'object' },
      },
    }
    const problem = 'needs a property of type string, integer, number or boolean'
    expect(problemsOf(TWO_REFERENCES, document)).toEqual([
      `slots.tags: ${problem}`,
      `slots.extra: ${problem}`,
    ])
  })

  test('finds an input whose name contains dots', async () => {
    const node = { class_type: 'CLIPTextEncode', inputs: { 'texts.text0': 'a cat' } }
    const { run, graph } = await open({
      workflow: { ...IMAGE_WORKFLOW, 6: node },
      document: {
        engine: { slots: { prompt: '6.inputs.texts.text0' } },
        input: { aspect_ratio: false, quality: false, image_urls: false },
      },
    })
    await run()
    expect(graph()[6]?.inputs).toEqual({ 'texts.text0': 'a fox' })
  })
})
