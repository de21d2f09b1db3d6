/** What fal, Replicate and OpenRouter publish of a model, and the requests for it. A key is sent only to the API of its provider. */
import { EXIT, messageOf, RushesError, usageError } from '../../errors.js'
import type { HttpResponse } from '../../host/http.js'
import { BodyTooLarge, readText } from '../../host/receive-text.js'
import { writeJson } from '../../protocol/json.js'
import type { Kind } from '../../protocol/models.js'
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
  let response: HttpResponse
  let text: string
  try {
    response = await send({ method: 'GET', url, headers, signal })
    text = await readText(response, MAX_BYTES)
  } catch (error) {
    signal.throwIfAborted()
    const code = error instanceof BodyTooLarge ? 'bad_response' : 'network'
    throw new RushesError(code, `${url.origin}: ${messageOf(error)}.`, { cause: error })
  }
  const { status } = response
  if (status === 404) return undefined
  if (status === 200) {
    const json = parseJson(text)
    if (json.ok) return json.value
    throw new RushesError('bad_response', `${url.origin} sent a response that is not JSON.`, {
      httpStatus: status,
    })
  }
  const reason = parseErrorBody(text).message ?? ''
  const words = shortened(printable(key === undefined ? reason : reason.replaceAll(key, '[key]')), 200)
  const message = `${url.origin} answered ${status}${words === '' ? '' : `: ${words}`}`.replace(/\.?$/, '.')
  const about = { httpStatus: status }
  if (status === 401 || status === 403)
    throw new RushesError('no_api_key', message, {
      ...about,
      hint: provider && `${key === undefined ? 'Set' : 'Check'} the key in ${provider.keyVariable}.`,
    })
  if (status !== 429) throw new RushesError(status >= 500 ? 'service_error' : 'bad_response', message, about)
  throw new RushesError('RATE_LIMITED', message, {
    ...{ ...about, exitCode: EXIT.rateLimited },
    hint: 'Wait a minute, then run the command again.',
  })
}

/** A published schema. */
export interface Published {
  /** The document that `$ref` points into. */
  readonly root: Json
  readonly input: unknown
  readonly output: unknown
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
  const schemas =
    isObject(root.components) && isObject(root.components.schemas) ? root.components.schemas : {}
  const { input, output } =
    provider === 'fal' ? falSchemas(root, schemas, model) : { input: schemas.Input, output: schemas.Output }
  if (!isObject(input)) return undefined
  const info = isObject(root.info) ? root.info : {}
  const falInfo = isObject(info['x-fal-metadata']) ? info['x-fal-metadata'] : {}
  const metadata = isObject(outer.metadata) ? outer.metadata : {}
  const example = isObject(outer.default_example) ? outer.default_example.output : undefined
  const textOf = (text: unknown) => (typeof text === 'string' && text !== '' ? printable(text) : undefined)
  return {
    ...{ root, input, output, example },
    category: textOf(metadata.category ?? falInfo.category),
    description: textOf(metadata.description ?? outer.description),
    version: provider === 'fal' ? undefined : textOf(version.id),
    isOfficial: outer.is_official === true,
  }
}

/** The schema of the endpoint's own request, else those that are named so. */
function falSchemas(
  root: Json,
  schemas: Json,
  endpoint: string,
): { readonly input: unknown; readonly output: unknown } {
  const posts = Object.entries(isObject(root.paths) ? root.paths : {}).flatMap(([path, at]) =>
    isObject(at) && at.post !== undefined ? [{ path, post: at.post }] : [],
  )
  const { post } = posts.find(({ path }) => path === `/${endpoint}`) ?? posts[0] ?? {}
  const input = ['requestBody', 'content', 'application/json', 'schema'].reduce<unknown>(
    (at, step) => (isObject(at) ? at[step] : undefined),
    post,
  )
  const named = (end: string) => Object.entries(schemas).find(([name]) => name.endsWith(end))?.[1]
  return { input: input ?? named('Input'), output: named('Output') }
}

const VIDEO = /\.(mp4|webm|mov|m4v)(\?|$)/i
const IMAGE = /\.(png|jpe?g|webp|gif|avif)(\?|$)/i

/** Returns what a model creates; undefined if that cannot be read from its schema, and `other` for sound, text and so on. */
export function kindOf({ category, output, example }: Published): Kind | 'other' | undefined {
  if (category !== undefined) return kindOfCategory(category)
  const shown = example === undefined || example === null ? '' : writeJson(example).replaceAll('"', ' ')
  const urls = shown.split(/[\s,\]}]+/)
  if (urls.some((url) => VIDEO.test(url))) return 'video'
  if (urls.some((url) => IMAGE.test(url))) return 'image'
  if (urls.some((url) => /\.(wav|mp3|flac|ogg|glb|zip|safetensors)(\?|$)/i.test(url))) return 'other'
  const names = isObject(output) && isObject(output.properties) ? Object.keys(output.properties) : []
  if (names.some((name) => /^videos?$/.test(name))) return 'video'
  if (names.some((name) => /^images?$/.test(name))) return 'image'
  // Without the URL of a file, it is text or numbers.
  return /"uri"|"\$ref"/.test(writeJson(output ?? { $ref: '' })) ? undefined : 'other'
}

function kindOfCategory(category: string): Kind | 'other' {
  const [, target] = /-to-(\w+)$/.exec(category) ?? []
  return target === 'image' || target === 'video' ? target : 'other'
}

/** Asks the provider for the schema. Throws `usage` for a model that it does not have. */
export async function fetchPublished(ctx: Context, address: ModelAddress): Promise<Published> {
  const { provider, model, version } = address
  const { title, api, keyVariable } = PROVIDERS[provider] as Provider
  if (provider === 'replicate' && keyOf(ctx.env, PROVIDERS.replicate as Provider) === undefined)
    throw new RushesError(
      'no_api_key',
      `Replicate publishes schemas only to its users, and ${keyVariable} is not set.`,
      {
        hint:
          `Set ${keyVariable} to your API token. Or save the schema of the model in a file, and use ` +
          `\`rushes models import ${addressText(address)} --from schema.json\`.`,
      },
    )
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
