/**
 * Models behind OpenAI's images interface: `/images/generations`, and `/images/edits` when there are references. One
 * request per run, for one picture. The servers differ (dialect.ts), and another one may take over an address.
 */

import { writeJson } from '../../../protocol/json.js'
import { isObject } from '../../../protocol/parse.js'
import { mayCost } from '../../../protocol/price.js'
import type { Engine, RenderJob } from '../engine.js'
import type { ReadEngine } from '../read-engine.js'
import { nested, readSentParameters } from '../sent-parameters.js'
import { readSizes, sizeText } from '../sizes.js'
import { checkLength } from '../texts.js'
import { createUpstream, type Upstream, type UpstreamRequest } from '../upstream/index.js'
import type { JsonAnswer } from '../upstream/json-answer.js'
import { describeModels, isSdcppList, listModels } from '../upstream/model-list.js'
import { renderedOnce } from '../upstream/outcome.js'
import { publishOutputs } from '../upstream/outputs.js'
import { decodableReferencesOf, type FormField, type SourceFile } from '../upstream/request-body.js'
import { missingResult, UpstreamError } from '../upstream/upstream-error.js'
import { lacksEdits, refusesResponseFormat, sdcppPrompt, withSentFields } from './dialect.js'

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
    const upstream = createUpstream({ url: url as URL, key, hasCost: mayCost(document), parts })
    const send = createSend(upstream)
    const engine: Engine = {
      async render(job) {
        const references = await decodableReferencesOf(job, parts.preview)
        const size = sent.has('size') ? {} : { size: sizeText(sizes.sizeOf(job.input)) }
        const fields = Object.entries({ ...(model !== undefined && { model }), n: 1, ...size })
        const prompt = String(job.input.prompt ?? '')
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

interface KnownServer {
  /** The names of its models: another list is another server. */
  readonly list: string
  readonly isSdcpp: boolean
  takesResponseFormat: boolean
}

/** Sends the request in the server's dialect. What a server has shown holds until its list of models changes. */
function createSend(upstream: Upstream): Send {
  let known: KnownServer | undefined

  /** Asks for the list before each run, which takes a moment of the time that a picture takes. */
  async function currentServer(signal: AbortSignal): Promise<KnownServer> {
    const names = await listModels(upstream, { once: known !== undefined }, signal).catch((error) => {
      signal.throwIfAborted()
      const { status } = error instanceof UpstreamError ? error : {}
      // The server was never ready.
      if (known === undefined && (status === undefined || status === 503 || status === 429)) throw error
      // Other servers may have no list of models, or hide it. A server may also be busy, or starting behind a proxy.
      return undefined
    })
    const list = names?.join('\n')
    if (list !== undefined && list !== known?.list)
      known = { list, isSdcpp: isSdcppList(names), takesResponseFormat: true }
    return known ?? { list: '', isSdcpp: false, takesResponseFormat: true }
  }

  return async function send(prompt, fields, references, job) {
    const server = await currentServer(job.signal)
    const { isSdcpp } = server
    const text = isSdcpp ? sdcppPrompt(prompt, fields) : prompt
    if (isSdcpp) checkLength(text)

    /** The server refused a request that is sent again in another form, so it drew nothing. */
    async function attempt(hasEdits: boolean): Promise<JsonAnswer> {
      const format: Fields = server.takesResponseFormat && !isSdcpp ? [['response_format', 'b64_json']] : []
      const all = nested([['prompt', text], ...fields, ...format])
      try {
        const answer = await upstream.json(requestOf(all, references, hasEdits), job)
        // A server without a list has shown something too.
        known ??= server
        return answer
      } catch (error) {
        if (!(error instanceof UpstreamError)) throw error
        if (format.length > 0 && refusesResponseFormat(error)) {
          server.takesResponseFormat = false
          return await attempt(hasEdits)
        }
        // Sent to the edits first by every run: what a server ignores must not be sent elsewhere.
        if (hasEdits && references.length > 0 && lacksEdits(error)) return await attempt(false)
        throw isSdcpp ? withSentFields(error, fields) : error
      }
    }
    return await attempt(true)
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
