/** The list of models of a server: `{"data":[{"id"}]}`, or AUTOMATIC1111's `[{"title"}]`. */
import { isObject } from '../../../protocol/parse.js'
import { didYouMean, shortened } from '../../../protocol/text.js'
import type { Upstream } from './index.js'
import { ModelNotListed, UpstreamError } from './upstream-error.js'

/** Resolves with undefined if the answer is no list. */
export async function listModels(
  upstream: Upstream,
  { path = 'models', once = false }: { readonly path?: string; readonly once?: boolean },
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  const answer = await upstream.value({ method: 'GET', path, once }, signal)
  const list = isObject(answer) ? answer.data : answer
  if (!Array.isArray(list)) return undefined
  const names = list.map((each) => (isObject(each) ? (each.id ?? each.title) : undefined))
  return names.filter((name) => typeof name === 'string')
}

const MAX_LISTED = 8

/** Describes the list. Throws when `model` is not in it. */
export async function describeModels(
  upstream: Upstream,
  model: string | undefined,
  signal: AbortSignal,
  path = 'models',
): Promise<string> {
  const names = await listModels(upstream, { path, once: true }, signal)
  if (names === undefined)
    throw new UpstreamError(`The server sent no list of models at <url>/${path}. Is the url complete?`)
  const listed = shortened(names.slice(0, MAX_LISTED).join(', '), 300)
  const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : ''
  // The title of a checkpoint ends with a hash: `flux1-dev.safetensors [a1b2c3]`.
  if (model !== undefined && !names.some((name) => name === model || name.startsWith(`${model} [`)))
    throw new ModelNotListed(
      upstream.clean(
        `The server does not list the model "${model}".${didYouMean(model, names)} It lists ${listed || 'none'}${more}.`,
      ),
    )
  return names.length === 0 ? 'lists no models' : upstream.clean(`models ${listed}${more}`)
}
