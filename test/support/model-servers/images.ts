/**
 * Servers of the images interface, as docs/engines.md describes them, and of AUTOMATIC1111's interface. They draw nothing:
 * a picture is one colour, which depends on everything that would change it.
 */
import { createModelServer, type ModelServer, type ServerAnswer, type ServerRequest } from './http.js'
import { pngOf } from './pictures.js'

export type ImagesDialect = 'sdcpp' | 'localai' | 'omni' | 'sglang' | 'openai' | 'forge'

// biome-ignore lint/suspicious/noExplicitAny: requests of every shape
type Fields = Readonly<Record<string, any>>

interface Drawing {
  readonly size: string
  /** Everything that changes the picture. */
  readonly subject: unknown
}

function draw({ size, subject }: Drawing): Buffer {
  const [, width, height] = /^(\d+)x(\d+)$/.exec(size) ?? ['', '512', '512']
  return pngOf(Number(width), Number(height), subject)
}

const base64Picture = (drawing: Drawing): string => draw(drawing).toString('base64')

const json = (status: number, body: object): ServerAnswer => ({ status, body })

/** The answer of most servers. */
const drawn = (drawing: Drawing, more: object = {}): ServerAnswer =>
  json(200, { created: 1, data: [{ b64_json: base64Picture(drawing) }], ...more })

/** Fields of the body, JSON or a form, and the files of a form in order. */
async function fieldsOf(
  request: ServerRequest,
): Promise<{ fields: Fields; files: readonly [string, Blob][] }> {
  if (!String(request.headers['content-type']).startsWith('multipart/'))
    return { fields: request.json(), files: [] }
  const entries = [...(await request.form()).entries()]
  return {
    fields: Object.fromEntries(entries.filter(([, value]) => typeof value === 'string')),
    files: entries.flatMap(([name, value]): [string, Blob][] =>
      typeof value === 'string' ? [] : [[name, value]],
    ),
  }
}

const isEdit = ({ path }: ServerRequest): boolean => path === '/v1/images/edits'
const isDrawing = ({ method, path }: ServerRequest): boolean =>
  method === 'POST' && (path === '/v1/images/generations' || path === '/v1/images/edits')

const modelList = (...ids: readonly string[]): ServerAnswer =>
  json(200, { object: 'list', data: ids.map((id) => ({ id, object: 'model' })) })

const contents = async (files: readonly [string, Blob][]): Promise<readonly string[]> =>
  await Promise.all(files.map(async ([, file]) => Buffer.from(await file.arrayBuffer()).toString('base64')))

type Answer = (request: ServerRequest, server: ModelServer) => Promise<ServerAnswer> | ServerAnswer

/** Formats by their first bytes. A reference of another format is skipped without a word. */
const decodedBySdcpp = (base64: string): boolean => /^(iVBORw0|\/9j\/|R0lGOD|Qk)/.test(base64)
/** Its regular expressions overflow the stack at a long text: the process ends, with all requests. */
const MAX_SDCPP_BYTES = 10_000

/** Reads only prompt, n and size. Everything else comes from an element in the prompt. */
const sdcpp: Answer = async (request, server) => {
  if (request.path === '/v1/models') return modelList('sd-cpp-local')
  if (!isDrawing(request)) return { status: 404 }
  const { fields, files } = await fieldsOf(request)
  const { prompt } = fields
  if (typeof prompt !== 'string') return json(500, { error: 'server_error', message: 'type must be string' })
  if (prompt.length > MAX_SDCPP_BYTES) {
    await server.close()
    return { status: 500 }
  }
  const [element = '', extra] = /<sd_cpp_extra_args>(.*?)<\/sd_cpp_extra_args>/.exec(prompt) ?? []
  const own = { seed: 42, size: fields.size, ...(extra && JSON.parse(extra)) }
  const seed = own.seed < 0 ? Math.random() : own.seed
  const references = (await contents(files)).filter(decodedBySdcpp)
  const subject = [prompt.replace(element, ''), seed, own.sample_params, references]
  return drawn({ size: own.size, subject }, { output_format: 'png' })
}

/** Has no edits. */
const localai: Answer = (request) => {
  if (request.path === '/v1/models') return modelList('flux.1-dev', 'sd-3.5')
  if (!isDrawing(request) || isEdit(request))
    return json(404, { error: { message: 'Resource not found', code: 404 } })
  const { prompt, size, step, seed } = request.json() as Fields
  return drawn({ size, subject: [prompt, step, seed] })
}

const omni: Answer = async (request) => {
  if (request.headers.authorization !== 'Bearer omni-secret-key') return json(401, { error: 'Unauthorized' })
  if (request.path === '/v1/models') return modelList('Qwen/Qwen-Image')
  if (!isDrawing(request)) return json(404, { detail: 'Not Found' })
  const { fields, files } = await fieldsOf(request)
  const { prompt, size, seed, num_inference_steps } = fields
  return drawn({ size, subject: [prompt, seed, num_inference_steps, await contents(files)] }, { size })
}

/** Has a picture at a relative link, too. */
const sglang: Answer = async (request) => {
  if (request.path === '/v1/models') return modelList('black-forest-labs/FLUX.1-dev')
  if (request.path.startsWith('/v1/images/i1/content'))
    return { body: draw({ size: '64x64', subject: 'link' }) }
  if (!isDrawing(request)) return json(404, { detail: 'Not Found' })
  const { fields, files } = await fieldsOf(request)
  const { prompt, size, seed } = fields
  return drawn({ size, subject: [prompt, seed, await contents(files)] }, { id: 'i1' })
}

/** Newer models refuse `response_format`, and know no seed. */
const openai: Answer = async (request) => {
  if (request.path === '/v1/models') return modelList('gpt-image-2')
  if (!isDrawing(request)) return json(404, { error: { message: `Invalid URL (${request.path})` } })
  const { fields, files } = await fieldsOf(request)
  const KNOWN = ['model', 'prompt', 'n', 'size', 'quality', 'output_format', 'background', 'moderation']
  const unknown = Object.keys(fields).find((name) => !KNOWN.includes(name))
  if (unknown !== undefined)
    return json(400, {
      error: {
        message: `Unknown parameter: '${unknown}'.`,
        type: 'invalid_request_error',
        param: unknown,
        code: 'unknown_parameter',
      },
    })
  const { prompt, size, quality } = fields
  return drawn({ size, subject: [prompt, quality, await contents(files)] })
}

const forge: Answer = (request) => {
  if (!/^\/sdapi\/v1\/(txt2img|img2img)$/.test(request.path)) return json(404, { detail: 'Not Found' })
  const { prompt, width, height, steps, seed, init_images } = request.json() as Fields
  const subject = [prompt, steps, seed, init_images]
  return json(200, {
    images: [base64Picture({ size: `${width}x${height}`, subject })],
    parameters: {},
    info: '{"seed": 1}',
  })
}

export const IMAGES_DIALECTS: Readonly<Record<ImagesDialect, Answer>> = {
  sdcpp,
  localai,
  omni,
  sglang,
  openai,
  forge,
}

export async function createImagesServer(dialect: ImagesDialect): Promise<ModelServer> {
  const server: ModelServer = await createModelServer((request) => IMAGES_DIALECTS[dialect](request, server))
  return server
}
