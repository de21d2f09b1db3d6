/** Media in inputs and outputs: the parameters that contain media, its types, and a summary that replaces its bytes. */

import { isHttpUrl } from './parse.js'

/**
 * The parameter that contains images, as http(s) or data: URLs, in the inputs of all models. Text in any other parameter
 * is plain text, even if it looks like a data: URL.
 */
export const MEDIA_PARAMETERS: readonly string[] = ['image_urls']

/**
 * Identifies media by its content. Only media that rushes has read becomes an instance. An input may itself contain an
 * object with the same fields, which is a different input.
 */
export class MediaSummary {
  /** SHA-256 of the decoded bytes, 64 hexadecimal digits. */
  readonly sha256: string
  readonly bytes: number
  readonly content_type: string
  // Makes the type nominal: an object with the same fields is not a `MediaSummary`.
  readonly #isSummary = true

  constructor(sha256: string, bytes: number, contentType: string) {
    this.sha256 = sha256
    this.bytes = bytes
    this.content_type = contentType
  }

  static is(value: unknown): value is MediaSummary {
    return typeof value === 'object' && value !== null && #isSummary in value
  }
}

/** Returns an image as a data: URL, the form inside an input. */
export const dataUrl = (bytes: Buffer, contentType: string): string =>
  `data:${contentType};base64,${bytes.toString('base64')}`

/** Signatures of the images that can be sent with a request. `head`: the first bytes as latin1. */
const SIGNATURES: readonly { readonly type: string; matches(head: string): boolean }[] = [
  { type: 'image/png', matches: (head) => head.startsWith('\x89PNG\r\n\x1a\n') },
  { type: 'image/jpeg', matches: (head) => head.startsWith('\xff\xd8\xff') },
  { type: 'image/webp', matches: (head) => head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP' },
  { type: 'image/gif', matches: (head) => /^GIF8[79]a/.test(head) },
  {
    type: 'image/avif',
    matches: (head) => head.slice(4, 8) === 'ftyp' && /^(.{4})*?(avif|avis)/s.test(head.slice(8, 64)),
  },
]

export const IMAGE_TYPES: readonly string[] = SIGNATURES.map(({ type }) => type)

/** Returns the content type of an image by its first bytes; undefined if it is not one of these types. */
export function imageTypeOf(bytes: Uint8Array): string | undefined {
  const head = String.fromCharCode(...bytes.subarray(0, 64))
  return SIGNATURES.find(({ matches }) => matches(head))?.type
}

/** The brands of HEIC and HEIF. An AVIF image may also have `mif1`. */
const isHeic = (head: string): boolean =>
  head.slice(4, 8) === 'ftyp' && /^(hei[cfmsx]|hev[cmsx]|mif1|msf1)/.test(head.slice(8))

/** Returns why bytes cannot be sent as an image: the end of a sentence that begins with the name of the file. */
export function imageProblem(bytes: Uint8Array): string {
  const isPhoto = isHeic(String.fromCharCode(...bytes.subarray(0, 64)))
  if (!isPhoto) return 'is not a PNG, JPEG, WebP, GIF or AVIF image'
  const commands = '`magick photo.heic photo.jpg`, on macOS `sips -s format jpeg photo.heic --out photo.jpg`'
  return `is a HEIC image. Convert it to JPEG first (${commands})`
}

export type MediaType = 'image' | 'video' | 'audio' | 'file'

/**
 * Image types that a browser can show without running code in them. Other types are only downloaded, because they could
 * run as a page of the service.
 */
const IMAGES: readonly string[] = ['png', 'jpeg', 'webp', 'gif', 'avif', 'bmp']

/** Returns how an output is shown. */
export function mediaTypeOf(contentType: string): MediaType {
  const [type = '', subtype = ''] = contentType.toLowerCase().split(';')[0]?.trim().split('/') ?? []
  if (type === 'image') return IMAGES.includes(subtype) ? 'image' : 'file'
  return type === 'video' || type === 'audio' ? type : 'file'
}

export type ImageSource = 'blank' | 'data' | 'url' | 'invalid url' | 'run' | 'row' | 'standard input' | 'path'

/** Returns the form of an entry of `image_urls`, as typed: the same for flags, manifests and tools. */
export function imageSourceOf(text: string): ImageSource {
  if (text.trim() === '') return 'blank'
  if (text === '-') return 'standard input'
  const [, scheme = ''] = /^(data|https?|run|row):/i.exec(text) ?? []
  const name = scheme.toLowerCase()
  if (name.startsWith('http')) return isHttpUrl(text) ? 'url' : 'invalid url'
  // Other letter cases are names of files, as `run:` alone is.
  if (scheme === 'run') return text === 'run:' ? 'path' : 'run'
  return name === 'data' || name === 'row' ? name : 'path'
}

/** A file of a run: one entry of `files` in the JSON output, and in the journal. */
export interface DownloadedFile {
  /** In the journal absolute; else as the user wrote it. `-` for standard output. */
  readonly path: string
  readonly bytes: number
  /** 64 hexadecimal digits. */
  readonly sha256: string
  /** The link of the download that succeeded: a fresh link if the first one had expired. */
  readonly url: string
  readonly content_type: string
}

/** Final path of a complete file. */
export interface Destination {
  readonly path: string
  readonly mayReplace: boolean
}
