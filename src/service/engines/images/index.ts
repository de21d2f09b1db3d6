/**
 * Models behind OpenAI's images interface: `/images/generations`, and `/images/edits` when there are references. One
 * request per run, for one picture. The servers differ, and what an answer shows about a server is remembered
 * (dialect.ts).
 */
import { writeJson } from '../../../protocol/json.js'
import { isObject } from '../../../protocol/parse.js'
import type { Engine, RenderJob } from '../engine.js'
import { renderedOnce } from '../outcome.js'
import type { ReadEngine } from '../read-engine.js'
import { nested, readSentParameters } from '../sent-parameters.js'
import { readSizes, sizeText } from '../sizes.js'
import { createUpstream, type Upstream, type UpstreamRequest } from '../upstream/index.js'
import type { JsonAnswer } from '../upstream/json-answer.js'
import { describeModels, isSdcppList, listModels } from '../upstream/model-list.js'
import { publishOutputs } from '../upstream/outputs.js'
import { type FormField, referencesOf, type SourceFile } from '../upstream/request-body.js'
import { missingResult, UpstreamError } from '../upstream/upstream-error.js'
import {
  checkSdcppReferences,
  lacksEdits,
  refusesResponseFormat,
  sdcppPrompt,
  withoutExtraArguments,
} from './dialect.js'

const FIXED_FIELDS = ['prompt', 'n', 'response_format', 'image', 'ref_images']

export const readImages: ReadEngine = (settings, document) => {
  const url = settings.url('url')
  const model = settings.text('model')
  const key = settings.secret('key_env')
  const sent = readSentParameters(settings, document, FIXED_FIELDS)
  const sizes = readSizes(settings, document, sent.names)
  sent.checkRest(['prompt', 'image_urls', ...sizes.parameters])
  if (document.kind !== 'image') settings.report(['type'], 'images is only for models of kind image')
  return (parts) => {
    // Only a document without problems is rendered, and it has a URL.
    const upstream = createUpstream({ url: url as URL, key, hasCost: document.cost !== undefined, parts })
    const send = createSend(upstream)
    const engine: Engine = {
      async render(job) {
        const references = await referencesOf(job)
        const size = sent.has('size') ? {} : { size: sizeText(sizes.sizeOf(job.input)) }
        const fields = Object.entries({ ...(model !== undefined && { model }), n: 1, ...size })
        const prompt = withoutExtraArguments(String(job.input.prompt ?? ''))
        const answer = await send(prompt, [...fields, ...sent.fieldsOf(job.input)], references, job)
        return await publishOutputs(job, [await pictureOf(answer, upstream, job)])
      },
      check: (signal) => describeModels(upstream, model, signal),
      close: () => upstream.close(),
    }
    return renderedOnce(engine, { costs: upstream.costs, endpoint: 'images', clock: parts.clock })
  }
}

type Fields = readonly (readonly [field: string, value: unknown])[]
type Send = (
  prompt: string,
  fields: Fields,
  references: readonly SourceFile[],
  job: RenderJob,
) => Promise<JsonAnswer>

/** Sends the request in the server's dialect. What an answer shows about the dialect holds until the process ends. */
function createSend(upstream: Upstream): Send {
  /** Undefined: not known yet. False only until the next failed request, which another server may answer. */
  let knownSdcpp: boolean | undefined
  let takesResponseFormat = true
  let takesEdits = true

  const detectSdcpp = async (signal: AbortSignal): Promise<boolean | undefined> => {
    try {
      const names = await listModels(upstream, {}, signal)
      return names && isSdcppList(names)
    } catch (error) {
      const status = error instanceof UpstreamError ? error.status : undefined
      // The server was never ready.
      if (status === undefined || status === 503 || status === 429) throw error
      // Other servers may have no list of models, or hide it. So may a server that is starting.
      return undefined
    }
  }

  return async function send(prompt, fields, references, job) {
    const isSdcpp = knownSdcpp ?? (await detectSdcpp(job.signal))
    knownSdcpp ??= isSdcpp
    if (isSdcpp) checkSdcppReferences(references)
    const hasEdits = takesEdits
    const format: Fields = takesResponseFormat && !isSdcpp ? [['response_format', 'b64_json']] : []
    const all: Fields = isSdcpp
      ? [['prompt', sdcppPrompt(prompt, fields)], ...fields]
      : [['prompt', prompt], ...fields, ...format]
    try {
      const answer = await upstream.json(requestOf(nested(all), references, hasEdits), job)
      knownSdcpp ??= false
      return answer
    } catch (error) {
      if (!isSdcpp) knownSdcpp = undefined
      if (!(error instanceof UpstreamError)) throw error
      // The server refused the request, so it drew nothing: another form of the request is no repetition.
      if (format.length > 0 && refusesResponseFormat(error)) takesResponseFormat = false
      else if (hasEdits && references.length > 0 && lacksEdits(error, isSdcpp === false)) takesEdits = false
      else throw error
      return await send(prompt, fields, references, job)
    }
  }
}

function requestOf(
  json: Readonly<Record<string, unknown>>,
  references: readonly SourceFile[],
  takesEdits: boolean,
): UpstreamRequest {
  if (references.length === 0) return { method: 'POST', path: 'images/generations', json }
  // LocalAI takes references here, and drops those with a `data:` prefix without a word.
  if (!takesEdits)
    return { method: 'POST', path: 'images/generations', json: { ...json, ref_images: references } }
  const name = references.length === 1 ? 'image' : 'image[]'
  const form = [
    ...Object.entries(json).map(([field, value]): FormField => [field, textOf(value)]),
    ...references.map((file): FormField => [name, file]),
  ]
  return { method: 'POST', path: 'images/edits', form }
}

const textOf = (value: unknown): string => (typeof value === 'string' ? value : writeJson(value))

/** Resolves with the file of the first picture: a server may send more than one, or fewer. */
async function pictureOf(answer: JsonAnswer, upstream: Upstream, job: RenderJob): Promise<string> {
  const data = isObject(answer.value) && Array.isArray(answer.value.data) ? answer.value.data : []
  const [entry] = data.filter(isObject)
  const { b64_json: base64, url } = entry ?? {}
  if (typeof base64 === 'string' && base64 !== '') return await answer.file(base64)
  if (typeof url === 'string' && url !== '')
    return answer.hasFile(url) || /^data:/i.test(url)
      ? await answer.file(url)
      : await upstream.download(url, job)
  throw missingResult(answer.value, upstream.clean)
}
