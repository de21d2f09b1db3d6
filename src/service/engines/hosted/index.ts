/**
 * Models of hosted providers (`fal`, `replicate`, `openrouter`) and of Cog servers. The input is sent with the names that the provider
 * publishes; only `image_urls` has another name there (`references`).
 */
import type { Clock } from '../../../host/clock.js'
import { IMAGE_URLS, type MediaParameters, mediaParameters } from '../../../protocol/media-parameters.js'
import type { Kind, ModelDocument } from '../../../protocol/models.js'
import { isObject } from '../../../protocol/parse.js'
import { mayCost } from '../../../protocol/price.js'
import { isPrivateHost } from '../../rules/networks.js'
import type { Engine, RenderedFile, RenderJob } from '../engine.js'
import type { EngineSettings, ReadEngine } from '../settings.js'
import { createUpstream, type Upstream } from '../upstream/index.js'
import { fetchFiles, publishOutputs, saveBase64 } from '../upstream/outputs.js'
import { asDataUri, checkCount, mediaFileOf, referenceOf, type SourceFile } from '../upstream/request-body.js'
import { missingResult } from '../upstream/upstream-error.js'
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

export interface SentFiles {
  /** Larger files are uploaded. */
  readonly maxDataBytes?: number
  /** Resolves with the URL of the uploaded file. */
  upload?(file: SourceFile, signal: AbortSignal): Promise<string>
}

/** Resolves with the input as it is sent, with the provider's names, after the upload of large files. */
export async function sentInput(
  job: RenderJob,
  { references, media, fixed }: HostedModel,
  files: SentFiles = {},
): Promise<Readonly<Record<string, unknown>>> {
  const { [IMAGE_URLS]: images, ...own } = job.input
  checkCount(job, references?.isList === false ? 1 : undefined)
  const sentFiles = (paths: RenderJob['references'], source: unknown, name?: string): Promise<unknown[]> =>
    Promise.all(
      paths.map(async (path, index) => {
        const given: unknown = Array.isArray(source) ? source[index] : source
        if (isPublicUrl(given)) return given
        const file = await (name === undefined
          ? referenceOf(path, index)
          : mediaFileOf(path, name, media.get(name) ?? 'file', index))
        if (files.upload === undefined || file.bytes <= (files.maxDataBytes ?? 0)) return asDataUri(file)
        return await files.upload(file, job.signal)
      }),
    )
  const sent: Record<string, unknown> = { ...own, ...fixed }
  const asSent = (values: readonly unknown[], isList: boolean) => (isList ? values : values[0])
  if (references !== undefined && job.references.length > 0)
    sent[references.field] = asSent(await sentFiles(job.references, images), references.isList)
  for (const [name, paths] of Object.entries(job.media ?? {}))
    sent[name] = asSent(await sentFiles(paths, own[name], name), Array.isArray(own[name]))
  return sent
}

const isPublicUrl = (value: unknown): value is string =>
  typeof value === 'string' &&
  /^https?:/i.test(value) &&
  URL.canParse(value) &&
  !isPrivateHost(new URL(value).hostname)

interface Link {
  readonly link: string
  /** `image`, `video` … Undefined if neither the result nor the name tells it. */
  readonly type: string | undefined
}

/**
 * Downloads the files of a result, which is a link, a list or an object in the answer, and makes them the outputs of the
 * run.
 */
export async function publishResult(
  answer: unknown,
  result: unknown,
  upstream: Upstream,
  job: RenderJob,
): Promise<readonly RenderedFile[]> {
  // Some results repeat the input.
  const given = new Set(linksIn(job.input).map(({ link }) => link))
  const all = linksIn(result).filter(({ link }) => !given.has(link))
  const ofKind = all.filter(({ type }) => type === job.kind)
  const ofAnyKind = all.filter(({ type }) => type === undefined)
  const links = [ofKind, ofAnyKind, all].find(({ length }) => length > 0) ?? []
  if (links.length === 0) throw missingResult(answer, upstream.clean)
  const paths = await fetchFiles(links, ({ link }, maxBytes) =>
    /^https?:/i.test(link) ? upstream.download(link, job, maxBytes) : saveBase64(link, job),
  )
  return await publishOutputs(job, paths)
}

const FILE = /^(https?:\/\/\S+$|data:[^,]{0,200};base64,)/i

function linksIn(value: unknown): readonly Link[] {
  const found = new Map<string, string | undefined>()
  const visit = (each: unknown, contentType?: unknown): void => {
    if (typeof each === 'string' && FILE.test(each)) {
      if (!found.has(each)) found.set(each, typeOf(each, contentType))
    } else if (Array.isArray(each)) for (const one of each) visit(one)
    else if (isObject(each)) for (const one of Object.values(each)) visit(one, each.content_type)
  }
  visit(value)
  return [...found].map(([link, type]) => ({ link, type }))
}

const EXTENSIONS: readonly (readonly [type: string, names: RegExp])[] = [
  ['image', /\.(png|jpe?g|webp|gif|avif|bmp|svg)$/i],
  ['video', /\.(mp4|webm|mov|mkv)$/i],
  ['other', /\.(mp3|wav|flac|ogg|m4a|json|txt|zip|tar|glb|obj|ply|safetensors)$/i],
]

function typeOf(link: string, contentType: unknown): string | undefined {
  const [, declared] =
    /^(?:data:)?([a-z]+)\/(?!octet-stream)/i.exec(link.startsWith('data:') ? link : `${contentType}`) ?? []
  if (declared !== undefined) return declared.toLowerCase()
  const path = URL.canParse(link) ? new URL(link).pathname : ''
  return EXTENSIONS.find(([, names]) => names.test(path))?.[0]
}
