/**
 * Models of hosted providers (`fal`, `replicate`, `openrouter`) and of Cog servers. The input is sent with the names that the provider
 * publishes; only `image_urls` has another name there (`references`).
 */
import type { Clock } from '../../../host/clock.js'
import { readText } from '../../../host/receive-text.js'
import { type MediaParameters, mediaParameters } from '../../../protocol/media-parameters.js'
import type { Kind, ModelDocument } from '../../../protocol/models.js'
import { isObject, parseJson } from '../../../protocol/parse.js'
import { mayCost } from '../../../protocol/price.js'
import { printable, shortened } from '../../../protocol/text.js'
import type { Engine } from '../engine.js'
import type { EngineParts, ReadEngine } from '../read-engine.js'
import type { EngineSettings } from '../settings.js'
import { createUpstream, type Upstream } from '../upstream/index.js'
import { UpstreamError } from '../upstream/upstream-error.js'
import { PROVIDERS, type Provider } from './providers.js'

/** All that an engine of a provider needs to know of a document. */
export interface HostedSettings {
  /** fal: the endpoint. Replicate: `owner/name`, with `:version` for a model that is pinned. Empty for Cog. */
  readonly model: string
  readonly kind: Kind
  readonly url: URL
  /** Where files are uploaded. A document with its own `url` has them there. */
  readonly uploads: URL
  /** The provider's field for the reference images. Undefined: the model has no `image_urls`. */
  readonly references: { readonly field: string; readonly isList: boolean } | undefined
  readonly media: MediaParameters
  /** Fields that every request has, such as `num_images: 1`. */
  readonly fixed: Readonly<Record<string, unknown>>
}

export interface HostedParts {
  readonly clock: Clock
  /** Opens an address that gets the key of the document. */
  open(url: URL): Upstream
}

export type CreateHosted = (settings: HostedSettings, parts: HostedParts) => Engine

/** `create`: the engine that sends the requests of this provider. */
export const readHosted =
  (type: 'fal' | 'replicate' | 'openrouter' | 'cog', create: CreateHosted): ReadEngine =>
  (settings, document) => {
    const provider = PROVIDERS[type] as Provider
    const model = settings.text('model') ?? ''
    const shape =
      type === 'fal' ? /^[\w.-]+(\/[\w.-]+)+$/ : type === 'cog' ? /^/ : /^[\w.-]+\/[\w.-]+(:[\w.-]+)?$/
    if (!shape.test(model) && !settings.hasProblem(['model']))
      settings.report(
        ['model'],
        `must be ${type === 'fal' ? 'an endpoint, such as fal-ai/flux/dev' : 'owner/name'}`,
      )
    const url = settings.url('url', provider.url)
    const key = settings.secret('key_env', provider.keyVariable)
    const hosted = {
      model,
      kind: document.kind,
      references: readReferences(settings, document),
      media: mediaParameters(document.input),
      fixed: settings.map('fixed'),
    }
    return (parts) => {
      // Only a document without problems is rendered, and it has a URL.
      const address = url as URL
      // The key of another address is not sent to the provider.
      const isOwn = provider.url !== undefined && address.href === new URL(provider.url).href
      const at = (own: string | undefined): URL => (isOwn && own !== undefined ? new URL(own) : address)
      const opened: Upstream[] = []
      const scheme = provider.scheme === 'Key' ? 'key' : 'bearer'
      const hasCost = provider.isPaid || mayCost(document)
      const open = (base: URL): Upstream => {
        const upstream = createUpstream({ url: base, key, scheme, hasCost, parts })
        opened.push(upstream)
        return upstream
      }
      const addresses = { url: address, uploads: at(provider.uploads) }
      const engine = create({ ...hosted, ...addresses }, { clock: parts.clock, open })
      return {
        ...engine,
        ...(isOwn &&
          key !== undefined && { check: (signal) => describeAccount(provider, key, parts, signal) }),
        close: async () => void (await Promise.all(opened.map((each) => each.close()))),
      }
    }
  }

/** `references: image_url` for a field with one image, `references: [image_urls]` for a list. */
function readReferences(settings: EngineSettings, { input }: ModelDocument): HostedSettings['references'] {
  const value = settings.value('references')
  const field = Array.isArray(value) ? value[0] : value
  const isField =
    typeof field === 'string' && /^[\w-]+$/.test(field) && (!Array.isArray(value) || value.length === 1)
  const hasImages = Object.hasOwn(input.properties, 'image_urls')
  if (value !== undefined && !isField)
    settings.report(['references'], 'must be the name of a field, or a list of one name')
  else if (value === undefined && hasImages)
    settings.report(['references'], 'is missing: the field of the provider that gets image_urls')
  else if (value !== undefined && !hasImages)
    settings.report(['references'], 'needs the property image_urls in the input')
  return isField ? { field, isList: Array.isArray(value) } : undefined
}

const MAX_ACCOUNT_BYTES = 262_144

/**
 * Describes the account that a provider charges, for the start of `rushes serve`. Rejects if the key is refused or the
 * provider cannot be reached. Any other answer tells nothing about the key.
 */
export async function describeAccount(
  { title, api, scheme, account }: Provider,
  key: string,
  { fetch }: Pick<EngineParts, 'fetch'>,
  signal: AbortSignal,
): Promise<string> {
  const headers = { accept: 'application/json', authorization: `${scheme} ${key}` }
  const response = await fetch({ method: 'GET', url: new URL(`${api}/${account}`), headers, signal })
  const { status } = response
  const body = parseJson(await readText(response, MAX_ACCOUNT_BYTES))
  if (status === 401) throw new UpstreamError(`${title} refused the key (401).`, { status })
  if (status !== 200) return 'the key could not be checked'
  const { username, name, data } = body.ok && isObject(body.value) ? body.value : {}
  const label = username ?? name ?? (isObject(data) ? data.label : undefined)
  return typeof label === 'string' ? shortened(printable(`account ${label}`), 100) : 'the key is valid'
}
