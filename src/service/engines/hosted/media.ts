/** Files of hosted providers: media in their requests, and links or data URIs in their results. */
import { IMAGE_URLS } from '../../../protocol/media-parameters.js'
import { isObject } from '../../../protocol/parse.js'
import { isPrivateHost } from '../../rules/networks.js'
import type { RenderedFile, RenderJob } from '../engine.js'
import type { Upstream } from '../upstream/index.js'
import { fetchFiles, publishOutputs, saveBase64 } from '../upstream/outputs.js'
import { asDataUri, checkCount, mediaFileOf, referenceOf, type SourceFile } from '../upstream/request-body.js'
import { missingResult } from '../upstream/upstream-error.js'
import type { HostedModel } from './index.js'

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
