/** Media in inputs and outputs: the parameters that hold it, its types, and its identity in place of its bytes. */
import { kindsWith, PARAMETER_NAMES, parametersOf } from './parameters.js'

/**
 * Parameters that hold images, as http(s) or data: URLs: in the schemas, those that are lists. A text in any other
 * parameter is a text, even if it looks like a data: URL. Models without a schema are read by the same names.
 */
export const MEDIA_PARAMETERS: readonly string[] = PARAMETER_NAMES.filter((name) =>
  kindsWith(name).some((kind) => parametersOf(kind)[name]?.type === 'array'),
)

/**
 * Identifies media by its content. Only what rushes has read becomes an instance: an object with the same fields
 * can also be a part of the input itself, and is a different input.
 */
export class MediaSummary {
  /** 64 hexadecimal digits, of the decoded bytes. */
  readonly sha256: string
  readonly bytes: number
  readonly content_type: string
  // Makes the type nominal.
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

/** A `Buffer`: the console's page compiles this file without the types of Node.js. */
interface NodeBuffer {
  equals(other: Uint8Array): boolean
  toString(encoding: 'base64'): string
}

/** An image as it is sent inside an input. */
export const dataUrl = (bytes: NodeBuffer, contentType: string): string =>
  `data:${contentType};base64,${bytes.toString('base64')}`

/** Images that can be sent with a request. `head`: the first bytes as latin1. */
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

/** The content type of an image by its first bytes; undefined when it is not one that is sent. */
export function imageTypeOf(bytes: Uint8Array): string | undefined {
  const head = String.fromCharCode(...bytes.subarray(0, 64))
  return SIGNATURES.find(({ matches }) => matches(head))?.type
}

export type MediaType = 'image' | 'video' | 'audio' | 'file'

/**
 * A browser shows these and runs nothing in them. Others are only downloaded: they would run as a page of the
 * service.
 */
const IMAGES: readonly string[] = ['png', 'jpeg', 'webp', 'gif', 'avif', 'bmp']

/** How an output is shown. */
export function mediaTypeOf(contentType: string): MediaType {
  const [type = '', subtype = ''] = contentType.toLowerCase().split(';')[0]?.trim().split('/') ?? []
  if (type === 'image') return IMAGES.includes(subtype) ? 'image' : 'file'
  return type === 'video' || type === 'audio' ? type : 'file'
}
