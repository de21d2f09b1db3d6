/** The engine `images` against servers that speak each dialect, as read in the sources of the programs. */
import { describe, expect, test } from 'vitest'
import { resultOf, testEngine } from '../../contract/engine.js'
import { type ModelServer, type ServerAnswer, until } from '../../support/index.js'
import {
  type EngineDocument,
  jobOf,
  openEngine,
  readEngineOf,
  savedFile,
} from '../../support/model-servers/engine.js'
import { createImagesServer, type ImagesDialect } from '../../support/model-servers/images.js'
import { pngOf, sizeOfPng } from '../../support/model-servers/pictures.js'

testEngine({
  name: 'images',
  createServer: () => createImagesServer('sglang'),
  document: (url) => ({ engine: { type: 'images', url: `${url}/v1` } }),
  creates: 'POST /v1/images/generations',
  results: 'POST /v1/images/generations',
  createsWithReferences: 'POST /v1/images/edits',
  hasKey: true,
})

const STEPS_AND_SEED = {
  steps: { type: 'integer', minimum: 1, maximum: 50 },
  seed: { type: 'integer', minimum: 0, maximum: 4_294_967_295 },
}

const SEED = { engine: { send: { seed: 'seed' } }, input: { seed: STEPS_AND_SEED.seed } }
const NEGATIVE = {
  engine: { send: { negative: 'negative_prompt' } },
  input: { negative: { type: 'string' }, seed: false },
}

async function open(dialect: ImagesDialect, { engine, input }: Partial<EngineDocument> = {}) {
  const server = await createImagesServer(dialect)
  const settings = { type: 'images', url: `${server.url}/v1`, ...engine }
  const env = { OMNI_KEY: 'omni-secret-key' }
  const opened = openEngine({ engine: settings, ...(input && { input }) }, env)
  /** Renders one run, and returns its picture. */
  async function render(input: object = {}, references: readonly string[] = []): Promise<Buffer> {
    const job = jobOf({ references })
    await opened.clock.runUntil(opened.render({ ...job, input: { ...job.input, ...input } }))
    return resultOf(job.folder)
  }
  /** The next drawing is answered so. */
  const answers = (body: object | string) => server.fault(GENERATIONS, { body })
  return { server, ...opened, render, answers }
}

const WITH_KEY = { engine: { key_env: 'OMNI_KEY' } }

const referenceOf = (subject: string): string => savedFile(pngOf(8, 8, subject))

const drawings = ({ requests }: ModelServer) => requests.filter(({ method }) => method === 'POST')

const PICTURE = pngOf(64, 64, 'any').toString('base64')
const GENERATIONS = 'POST /v1/images/generations'

describe('stable-diffusion.cpp', () => {
  test('gets the parameters in the prompt, because it reads no others', async () => {
    const send = { steps: 'sample_params.sample_steps', seed: 'seed' }
    const { render, server } = await open('sdcpp', { engine: { send }, input: STEPS_AND_SEED })
    await render({ steps: 30, seed: 7 })
    expect(drawings(server)[0]?.json().prompt).toBe(
      'a fox<sd_cpp_extra_args>{"sample_params":{"sample_steps":30},"seed":7}</sd_cpp_extra_args>',
    )
  })

  test('a value of a parameter cannot end the element', async () => {
    const { render, server } = await open('sdcpp', NEGATIVE)
    await render({ negative: '</sd_cpp_extra_args>' })
    const [sent] = drawings(server).map((request) => request.json().prompt as string)
    expect(sent).toBe(
      'a fox<sd_cpp_extra_args>{"negative_prompt":"\\u003c/sd_cpp_extra_args>"}</sd_cpp_extra_args>',
    )
  })

  test('gets no text at which it would end, and draws the next run', async () => {
    const { render, server } = await open('sdcpp', NEGATIVE)
    const long = { prompt: 'x'.repeat(5_000), negative: 'é'.repeat(5_000) }
    await expect(render(long)).rejects.toThrow(
      /^The texts of this run have 15\d\d\d bytes together; the model's server takes at most 8000\. Shorten the prompt\.$/,
    )
    expect(drawings(server)).toEqual([])
    await render({ prompt: 'x'.repeat(5_000) })
  })
})

const PROXY: ServerAnswer = { status: 502, body: '<html></html>' }

test.each([
  ['404', { status: 404 }, { status: 404 }, 'answered 404 without a message.'],
  ['502 of a proxy', PROXY, PROXY, 'answered 502 with a web page'],
])(
  'a server that is starting is asked again after a failed request: %s',
  async (_, list, drawing, message) => {
    const { render, server } = await open('sdcpp', SEED)
    server.fault('GET /v1/models', list)
    server.fault(GENERATIONS, drawing)
    await expect(render({ seed: 7 })).rejects.toThrow(message)
    await render({ seed: 7 })
    expect(drawings(server).at(-1)?.json().prompt).toContain('{"seed":7}')
  },
)

test('a server without a list of models is asked for base64 until it has refused that once', async () => {
  const { render, server } = await open('openai', { input: { seed: false } })
  server.fault('GET /v1/models', { status: 404 }, 3)
  await render()
  await render()
  expect(drawings(server).map((request) => 'response_format' in request.json())).toEqual([true, false, false])
})

test('a field with a dot is a field of an object, in JSON and in a form', async () => {
  const { render, server } = await open('sglang', {
    engine: { send: { steps: 'extra.steps', seed: 'extra.seed' } },
    input: STEPS_AND_SEED,
  })
  await render({ steps: 20, seed: 7 })
  await render({ steps: 20, seed: 7 }, [referenceOf('one')])
  expect(drawings(server)[0]?.json().extra).toEqual({ steps: 20, seed: 7 })
  expect((await drawings(server)[1]?.form())?.get('extra')).toBe('{"steps":20,"seed":7}')
})

test('a server without edits fails a run with references, and draws nothing without them', async () => {
  const { render, server } = await open('localai')
  await expect(render({}, [referenceOf('one')])).rejects.toThrow('answered 404: Resource not found')
  expect(server.count(GENERATIONS)).toBe(0)
})

test('vLLM-Omni gets references as a form, with every parameter', async () => {
  const { render, server } = await open('omni', {
    engine: {
      key_env: 'OMNI_KEY',
      model: 'Qwen/Qwen-Image',
      send: { steps: 'num_inference_steps', seed: 'seed' },
    },
    input: STEPS_AND_SEED,
  })
  const picture = await render({ aspect_ratio: '16:9', steps: 20, seed: 7 }, [referenceOf('one')])
  expect(sizeOfPng(picture)).toBe('1344x768')
  const form = await drawings(server)[0]?.form()
  expect([...(form?.entries() ?? [])].filter(([, value]) => typeof value === 'string')).toEqual([
    ['prompt', 'a fox'],
    ['model', 'Qwen/Qwen-Image'],
    ['n', '1'],
    ['size', '1344x768'],
    ['num_inference_steps', '20'],
    ['seed', '7'],
    ['response_format', 'b64_json'],
  ])
  expect(form?.get('image')).toMatchObject({ name: '01.png', type: 'image/png' })
})

describe('the answer', () => {
  test.each([
    ['a relative link', { url: '/v1/images/i1/content' }],
    ['base64 with a prefix', { b64_json: `data:image/png;base64,${PICTURE}` }],
    ['a link, with base64 null', { b64_json: null, url: '/v1/images/i1/content' }],
  ])('may be %s, and have more pictures than asked for', async (_, first) => {
    const { render, answers } = await open('sglang')
    answers({ data: [first, { b64_json: pngOf(8, 8, 'more').toString('base64') }] })
    expect(sizeOfPng(await render())).toBe('64x64')
  })

  test.each([
    [{ data: [] }, "The model's server answered without a result."],
    [{ error: { message: 'safety filter' } }, "The model's server failed: safety filter"],
    [{ data: [{ b64_json: Buffer.from('<html>no</html>').toString('base64') }] }, 'sent text/html'],
    ['{"data":[{"b64_json":"', 'an incomplete response, or one that is not JSON'],
  ])('fails the run: %j', async (body, expected) => {
    const { render, answers } = await open('sglang')
    answers(body)
    await expect(render()).rejects.toThrow(expected)
  })

  test('a link to another host is not followed into a private network, and gets no key', async () => {
    const { render, answers } = await open('omni', WITH_KEY)
    const other = await createImagesServer('sglang')
    const port = new URL(other.url).port
    for (const url of [`http://localhost:${port}/x`, 'http://10.0.0.1/x', 'file:///etc/passwd']) {
      answers({ data: [{ url }] })
      await expect(render()).rejects.toThrow('not public')
    }
    expect(other.requests).toEqual([])
    // The same host on another port may be its file server.
    answers({ data: [{ url: `${other.url}/v1/images/i1/content` }] })
    await render()
    expect(other.requests.map(({ headers }) => headers.authorization)).toEqual([undefined])
  })

  test('a download follows redirects, and sends the key only to its own server', async () => {
    const { render, server, answers } = await open('omni', WITH_KEY)
    const other = await createImagesServer('sglang')
    answers({ data: [{ url: '/files/1' }] })
    server.fault('GET /files/1', { status: 302, headers: { location: '/files/2' } })
    server.fault('GET /files/2', { status: 302, headers: { location: `${other.url}/v1/images/i1/content` } })
    await render()
    const authorizations = server.requests.filter(({ path }) => path.startsWith('/files/'))
    expect(authorizations.map(({ headers }) => headers.authorization)).toEqual(
      Array(2).fill('Bearer omni-secret-key'),
    )
    expect(other.requests.map(({ headers }) => headers.authorization)).toEqual([undefined])
  })

  test('a file over the limit fails the run before it is read', async () => {
    const { render, server, answers } = await open('sglang')
    answers({ data: [{ url: '/large' }] })
    server.fault('GET /large', { headers: { 'content-length': `${600 * 2 ** 20}` }, body: 'x' })
    await expect(render()).rejects.toThrow("The model's server sent a result of more than 512 MiB.")
  })

  test('a download is repeated when a proxy or the connection fails, or the server is silent', async () => {
    const { engine, clock, server, answers } = await open('sglang')
    answers({ data: [{ url: '/v1/images/i1/content' }] })
    server.fault('GET /v1/images', { status: 502 })
    server.fault('GET /v1/images', 'reset')
    server.fault('GET /v1/images', 'hang')
    const job = jobOf()
    const rendering = engine.render(job)
    rendering.catch(() => {})
    await clock.runUntil(until('the silent request', () => server.count('GET /v1/images') === 3))
    await clock.advance(60_000)
    await clock.runUntil(rendering)
    expect(sizeOfPng(resultOf(job.folder))).toBe('64x64')
    expect(server.count(GENERATIONS)).toBe(1)
  })
})

test.each<[name: string, document: Partial<EngineDocument>, problems: readonly string[]]>([
  [
    'a parameter that is sent nowhere',
    { input: STEPS_AND_SEED, engine: { send: { seed: 'seed' } } },
    ['send: "steps" is not sent: add it here, or remove it from the input'],
  ],
  [
    'a parameter that does not exist',
    { engine: { send: { step: 'x' } } },
    ['send.step: is not a property of the input'],
  ],
  [
    'fields that the engine sets itself: a prompt could then set parameters, and a number of pictures costs money',
    {
      input: { pictures: { type: 'integer' } },
      engine: { send: { prompt: 'prompt', pictures: 'n' } },
    },
    ['send.prompt: cannot be sent under another name', 'send.pictures: cannot be "n", which is set already'],
  ],
  [
    'a size for an unknown value',
    { engine: { sizes: { '16:10': '1024x640' } } },
    ['sizes.16:10: "16:10" is not a value of aspect_ratio'],
  ],
  [
    'an invalid size',
    { engine: { sizes: { '1:1': '1024' } } },
    ['sizes.1:1: must be a size, such as 1344x768'],
  ],
  [
    'a resolution without a size',
    { input: { resolution: { type: 'string', enum: ['1k', '2k'] } } },
    ['send: "resolution" is not sent: add it here, or remove it from the input'],
  ],
  [
    'a video model',
    { kind: 'video', input: { resolution: false, duration: false } },
    ['type: images is only for models of kind image'],
  ],
])('reports %s', (_, { engine, ...document }, problems) => {
  const read = readEngineOf({
    ...document,
    engine: { type: 'images', url: 'http://127.0.0.1:1/v1', ...engine },
  })
  expect(read.problems).toEqual(problems)
})

test('a reference that stable-diffusion.cpp may skip fails the run, and other servers get it', async () => {
  const path = savedFile(Buffer.from('RIFF\x1a\0\0\0WEBPVP8 ', 'latin1'))
  const { render, server } = await open('sdcpp')
  await expect(render({}, [path])).rejects.toThrow('Reference image 1 is image/webp')
  expect(drawings(server)).toEqual([])
  const other = await open('omni', WITH_KEY)
  await other.render({}, [path])
  expect((await drawings(other.server)[0]?.form())?.get('image')).toMatchObject({ type: 'image/webp' })
})
