/** What fal, Replicate and OpenRouter publish of a model, and the requests for it. A key is sent only to the API of its provider. */
import { EXIT, messageOf, RushesError, usageError } from '../../errors.js'
import { BodyTooLarge, readText } from '../../host/response-body.js'
import { writeJson } from '../../protocol/json.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { isObject, parseErrorBody, parseJson } from '../../protocol/parse.js'
import { printable, shortened } from '../../protocol/text.js'
import { PROVIDERS, type Provider } from '../../service/engines/hosted/providers.js'
import type { Context } from '../context/context.js'
import { imageCost, readOpenRouter } from './openrouter.js'

type Json = Readonly<Record<string, unknown>>

export interface ModelAddress {
  readonly provider: 'fal' | 'replicate' | 'openrouter'
  /** The endpoint of fal, or `owner/name`. */
  readonly model: string
  readonly version: string | undefined
}

const EXAMPLES =
  'Examples: fal:fal-ai/flux/dev, replicate:black-forest-labs/flux-schnell, openrouter:google/veo-3.1.'

/** Reads `fal:<endpoint>`, `replicate:<owner/name[:version]>` or `openrouter:<id>`. Throws `usage`. */
export function parseAddress(word: string): ModelAddress {
  const [, fal] = /^fal:([\w.-]+(?:\/[\w.-]+)+)$/.exec(word) ?? []
  if (fal !== undefined) return { provider: 'fal', model: fal, version: undefined }
  const [, model, version] = /^replicate:([\w.-]+\/[\w.-]+)(?::([\w.-]+))?$/.exec(word) ?? []
  if (model !== undefined) return { provider: 'replicate', model, version }
  const [, id] = /^openrouter:([\w.-]+\/[\w.-]+(?::[\w.-]+)?)$/.exec(word) ?? []
  if (id !== undefined) return { provider: 'openrouter', model: id, version: undefined }
  throw usageError(
    `"${shortened(printable(word), 200)}" is not a model to import: use fal:<endpoint>, replicate:<owner/name[:version]> or openrouter:<id>.`,
    EXAMPLES,
  )
}

export const addressText = ({ provider, model, version }: ModelAddress): string =>
  `${provider}:${model}${version === undefined ? '' : `:${version}`}`

export const keyOf = (env: Context['env'], { keyVariable = '' }: Provider): string | undefined =>
  env[keyVariable]?.trim() || undefined

const MAX_BYTES = 8 * 1_048_576

/** Resolves with the JSON; undefined for 404. Throws `network`, `bad_response`, `service_error`, or that the key was refused. */
export async function getJson(ctx: Context, url: URL): Promise<unknown> {
  const provider = Object.values(PROVIDERS).find(
    ({ api }) => api !== undefined && new URL(api).origin === url.origin,
  )
  const key = provider && keyOf(ctx.env, provider)
  const headers = { accept: 'application/json', ...(key && { authorization: `${provider?.scheme} ${key}` }) }
  const { first: signal } = ctx.interrupts
  const send = await ctx.fetch()
  let status: number
  let text: string
  try {
    const response = await send({ method: 'GET', url, headers, signal })
    status = response.status
    text = await readText(response, MAX_BYTES)
  } catch (error) {
    signal.throwIfAborted()
    const code = error instanceof BodyTooLarge ? 'bad_response' : 'network'
    throw new RushesError(code, `${url.origin}: ${messageOf(error)}.`, { cause: error })
  }
  if (status === 404) return undefined
  const json = parseJson(text)
  if (status === 200 && json.ok) return json.value
  const reason = status === 200 ? 'the response is not JSON' : (parseErrorBody(text).message ?? '')
  const words = shortened(printable(key === undefined ? reason : reason.replaceAll(key, '[key]')), 200)
  const message = `${url.origin} answered ${status}${words === '' ? '' : `: ${words}`}`.replace(/\.?$/, '.')
  if (status === 401 || status === 403) {
    const hint = provider && `${key === undefined ? 'Set' : 'Check'} the key in ${provider.keyVariable}.`
    throw new RushesError('no_api_key', message, { httpStatus: status, hint })
  }
  const hint = 'Run the command again later.'
  if (status === 429)
    throw new RushesError('RATE_LIMITED', message, { httpStatus: status, exitCode: EXIT.rateLimited, hint })
  if (status >= 500) throw new RushesError('service_error', message, { httpStatus: status, hint })
  throw new RushesError('bad_response', message, { httpStatus: status })
}

/** A published schema. */
export interface Published {
  /** The document that `$ref` points into. */
  readonly root: Json
  readonly input: unknown
  /** fal: `text-to-image`. */
  readonly category: string | undefined
  readonly description: string | undefined
  readonly version: string | undefined
  /** Replicate: an official model has no versions to pin. */
  readonly isOfficial: boolean
  /** Output of the provider's example. */
  readonly example: unknown
  /** What a run costs, if the provider publishes that. */
  readonly cost?: Json | undefined
}

/**
 * Reads an OpenAPI document of fal, of Replicate or of a Cog server, or the object of the provider's API that has one.
 * Undefined if there is none in it.
 */
export function readPublished(value: unknown, { provider, model }: ModelAddress): Published | undefined {
  if (provider === 'openrouter') return readOpenRouter(value, model)
  const found = isObject(value) && Array.isArray(value.models) ? (value.models[0] as unknown) : value
  const outer = isObject(found) ? found : {}
  const version = isObject(outer.latest_version) ? outer.latest_version : outer
  const root = [version.openapi_schema, outer.openapi, outer].find(isObject) ?? {}
  const input = provider === 'fal' ? falInput(root, model) : schemasIn(root).Input
  if (!isObject(input)) return undefined
  const info = isObject(root.info) ? root.info : {}
  const falInfo = isObject(info['x-fal-metadata']) ? info['x-fal-metadata'] : {}
  const metadata = isObject(outer.metadata) ? outer.metadata : {}
  const example = isObject(outer.default_example) ? outer.default_example.output : undefined
  const textOf = (text: unknown) => (typeof text === 'string' && text !== '' ? printable(text) : undefined)
  return {
    ...{ root, input, example },
    category: textOf(metadata.category ?? falInfo.category),
    description: textOf(metadata.description ?? outer.description),
    version: provider === 'fal' ? undefined : textOf(version.id),
    isOfficial: outer.is_official === true,
  }
}

const schemasIn = ({ components }: Json): Json =>
  isObject(components) && isObject(components.schemas) ? components.schemas : {}

/** The schema of the endpoint's own request, else one that is named so. */
function falInput(root: Json, endpoint: string): unknown {
  const own = [
    'paths',
    `/${endpoint}`,
    'post',
    'requestBody',
    'content',
    'application/json',
    'schema',
  ].reduce<unknown>((at, step) => (isObject(at) ? at[step] : undefined), root)
  return own ?? Object.entries(schemasIn(root)).find(([name]) => name.endsWith('Input'))?.[1]
}

const FILES: Readonly<Record<Kind, RegExp>> = {
  video: /\.(mp4|webm|mov|m4v)\b/i,
  image: /\.(png|jpe?g|webp|gif|avif)\b/i,
}

/** Returns what a model creates, by its category or by the files of its example. Undefined for anything else. */
export function kindOf({ category, example }: Published): Kind | undefined {
  if (category !== undefined) return KINDS.find((kind) => category.endsWith(`-to-${kind}`))
  const shown = writeJson(example ?? null)
  return KINDS.find((kind) => FILES[kind].test(shown))
}

/** Asks the provider for the schema. Throws `usage` for a model that it does not have. */
export async function fetchPublished(ctx: Context, address: ModelAddress): Promise<Published> {
  const { provider, model, version } = address
  const { title, api } = PROVIDERS[provider] as Provider
  const urls = {
    fal: [
      `https://fal.ai/api/openapi/queue/openapi.json?endpoint_id=${encodeURIComponent(model)}`,
      `${api}/models?endpoint_id=${encodeURIComponent(model)}&expand=openapi-3.0`,
    ],
    replicate: [`${api}/models/${model}${version === undefined ? '' : `/versions/${version}`}`],
    openrouter: [`${api}/videos/models`, `${api}/images/models`],
  }
  for (const url of urls[provider]) {
    const published = readPublished(await getJson(ctx, new URL(url)), address)
    if (published === undefined) continue
    if (!url.endsWith('/images/models')) return published
    return { ...published, cost: imageCost(await getJson(ctx, new URL(`${url}/${model}/endpoints`))) }
  }
  throw usageError(
    `${title} has no schema of ${model}${version === undefined ? '' : ` in version ${version}`}. Is the name complete?`,
    EXAMPLES,
  )
}
