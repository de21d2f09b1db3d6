/**
 * Models behind OpenAI's images interface: `/images/generations`, and `/images/edits` when there are references. One
 * request per run, for one picture.
 */
import { writeJson } from '../../../protocol/json.js'
import { isObject } from '../../../protocol/parse.js'
import type { RenderJob } from '../engine.js'
import { checkLength, nested, withExtraArguments } from '../sent-parameters.js'
import type { ReadEngine } from '../settings.js'
import { sizeText } from '../sizes.js'
import { type Answer, readServer, type Upstream, type UpstreamRequest } from '../upstream/index.js'
import { createOnceEngine } from '../upstream/outcome.js'
import { publishOutputs, saveBase64 } from '../upstream/outputs.js'
import { checkDecodable, type FormField, referencesOf, type SourceFile } from '../upstream/request-body.js'
import { errorTextOf, isUnreachable, missingResult, UpstreamError } from '../upstream/upstream-error.js'

const FIXED_FIELDS = ['prompt', 'n', 'response_format', 'image']

export const readImages: ReadEngine = (settings, document) => {
  const model = settings.text('model')
  const { sent, sizes, open } = readServer(settings, document, { kind: 'image', fixed: FIXED_FIELDS })

  return (parts) => {
    const upstream = open(parts)
    const server: ImagesServer = { upstream, takesFormat: true, isSdcpp: undefined }
    return createOnceEngine(upstream, {
      endpoint: 'images',
      clock: parts.clock,
      async send(job) {
        const references = await referencesOf(job)
        server.isSdcpp ??= await isSdcppServer(upstream, job.signal)
        const { isSdcpp } = server
        const named = sent.fieldsOf(job.input)
        const text = String(job.input.prompt ?? '')
        const prompt = isSdcpp ? withExtraArguments(text, named) : text
        if (isSdcpp) {
          checkLength(prompt)
          checkDecodable(references)
        }
        const size = sent.has('size') ? {} : { size: sizeText(sizes.sizeOf(job.input)) }
        const fields = Object.entries({ prompt, ...(model !== undefined && { model }), n: 1, ...size })
        return await draw(server, nested([...fields, ...named]), references, job)
      },
      publish: async (answer, job) => await publishOutputs(job, [await pictureOf(answer, upstream, job)]),
    })
  }
}

/** What is known about a server from its answers. */
interface ImagesServer {
  readonly upstream: Upstream
  /** Newer models of OpenAI always send base64, and refuse the field that asks for it. */
  takesFormat: boolean
  /**
   * stable-diffusion.cpp reads all parameters from the prompt: without a seed there, each run would be the same picture.
   * Undefined until the server has answered.
   */
  isSdcpp: boolean | undefined
}

/** Undefined if a server has no list of models, or hides it. */
async function isSdcppServer(upstream: Upstream, signal: AbortSignal): Promise<boolean | undefined> {
  const answer = await upstream.get('models', signal).catch((error) => {
    signal.throwIfAborted()
    // The server was never ready.
    if (!(error instanceof UpstreamError) || isUnreachable(error)) throw error
    return undefined
  })
  const data = answer?.data
  if (!Array.isArray(data)) return undefined
  return data.length === 1 && isObject(data[0]) && data[0].id === 'sd-cpp-local'
}

/** Sends a refused request again without the field that was refused: it has drawn nothing. */
async function draw(
  server: ImagesServer,
  fields: Readonly<Record<string, unknown>>,
  references: readonly SourceFile[],
  job: RenderJob,
): Promise<Answer> {
  const { upstream, takesFormat } = server
  const json = { ...fields, ...(takesFormat && { response_format: 'b64_json' }) }
  try {
    return await upstream.render(requestOf(json, references), job)
  } catch (error) {
    if (!(error instanceof UpstreamError && takesFormat && refusesFormat(error))) throw error
    server.takesFormat = false
    return await draw(server, fields, references, job)
  }
}

const refusesFormat = ({ status, answer }: UpstreamError): boolean =>
  (status === 400 || status === 422) && (errorTextOf(answer) ?? '').includes('response_format')

function requestOf(
  json: Readonly<Record<string, unknown>>,
  references: readonly SourceFile[],
): UpstreamRequest {
  if (references.length === 0) return { method: 'POST', path: 'images/generations', json }
  const name = references.length === 1 ? 'image' : 'image[]'
  const form = [
    ...Object.entries(json).map(([field, value]): FormField => [field, formText(value)]),
    ...references.map((file): FormField => [name, file]),
  ]
  return { method: 'POST', path: 'images/edits', form }
}

const formText = (value: unknown): string => (typeof value === 'string' ? value : writeJson(value))

/** Resolves with the file of the first picture: a server may send more than one, or fewer. */
async function pictureOf(answer: Answer, upstream: Upstream, job: RenderJob): Promise<string> {
  const data = Array.isArray(answer.data) ? answer.data : []
  const [{ b64_json: base64, url } = {}] = data.filter(isObject)
  if (base64) return await saveBase64(base64, job)
  if (typeof url !== 'string' || url === '') throw missingResult(answer, upstream.clean)
  return /^data:/i.test(url) ? await saveBase64(url, job) : await upstream.download(url, job)
}
