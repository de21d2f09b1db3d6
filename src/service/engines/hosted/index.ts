/**
 * Models of hosted providers (`fal`, `replicate`, `openrouter`) and of Cog servers. The input is sent with the names that the provider
 * publishes; only `image_urls` has another name there (`references`).
 */
import type { Clock } from '../../../host/clock.js'
import { type MediaParameters, mediaParameters } from '../../../protocol/media-parameters.js'
import type { Kind, ModelDocument } from '../../../protocol/models.js'
import { mayCost } from '../../../protocol/price.js'
import type { Engine } from '../engine.js'
import type { ReadEngine } from '../read-engine.js'
import type { EngineSettings } from '../settings.js'
import { createUpstream, type Upstream } from '../upstream/index.js'
import { PROVIDERS, type Provider } from './providers.js'

/** What an engine needs from a document, with the provider's addresses. */
export interface HostedModel {
  /** fal: the endpoint. Replicate: `owner/name`, with `:version` for a model that is pinned. Empty for Cog. */
  readonly model: string
  readonly kind: Kind
  /** The provider's field for the reference images. Undefined: the model has no `image_urls`. */
  readonly references: { readonly field: string; readonly isList: boolean } | undefined
  readonly media: MediaParameters
  /** Fields that every request has, such as `num_images: 1`. */
  readonly fixed: Readonly<Record<string, unknown>>
  readonly upstream: Upstream
  /** Where files are uploaded. A document with its own `url` has them there. */
  readonly uploads: Upstream
  readonly clock: Clock
}

/** `create`: the engine that sends the requests of this provider. */
export const readHosted =
  (type: keyof typeof MODEL_NAMES, create: (model: HostedModel) => Engine): ReadEngine =>
  (settings, document) => {
    const provider = PROVIDERS[type] as Provider
    const model = settings.text('model') ?? ''
    const { shape, example } = MODEL_NAMES[type]
    if (!shape.test(model) && !settings.hasProblem(['model']))
      settings.report(['model'], `must be ${example}`)
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
      const hasCost = provider.isPaid || mayCost(document)
      const open = (at: URL) => createUpstream({ url: at, key, scheme: provider.scheme, hasCost, parts })
      const upstream = open(url)
      // The key of another address is not sent to the provider.
      const isOwn = `${url}` === `${provider.url}/`
      const uploads = isOwn && provider.uploads ? open(new URL(provider.uploads)) : upstream
      return {
        ...create({ ...hosted, upstream, uploads, clock: parts.clock }),
        close: async () => void (await Promise.all([upstream.close(), uploads.close()])),
      }
    }
  }

const OWNER_AND_NAME = { shape: /^[\w.-]+\/[\w.-]+(:[\w.-]+)?$/, example: 'owner/name' }
const MODEL_NAMES = {
  fal: { shape: /^[\w.-]+(\/[\w.-]+)+$/, example: 'an endpoint, such as fal-ai/flux/dev' },
  replicate: OWNER_AND_NAME,
  openrouter: OWNER_AND_NAME,
  cog: { shape: /^/, example: '' },
}

/** `references: image_url` for a field with one image, `references: [image_urls]` for a list. */
function readReferences(settings: EngineSettings, { input }: ModelDocument): HostedModel['references'] {
  const value = settings.value('references')
  const [field, ...others] = Array.isArray(value) ? value : [value]
  const isField = typeof field === 'string' && /^[\w-]+$/.test(field) && others.length === 0
  const hasImages = Object.hasOwn(input.properties, 'image_urls')
  if (value !== undefined && !isField)
    settings.report(['references'], 'must be the name of a field, or a list of one name')
  else if (value === undefined && hasImages)
    settings.report(['references'], 'is missing: the field of the provider that gets image_urls')
  else if (value !== undefined && !hasImages)
    settings.report(['references'], 'needs the property image_urls in the input')
  return isField ? { field, isList: Array.isArray(value) } : undefined
}
