/** Media in inputs and outputs: its types, the forms of its sources, and a summary that replaces its bytes. */

import { isHttpUrl, isObject } from './parse.js'

/** `file`: a file of any other type, such as the weights of a model. */
export type MediaType = 'image' | 'video' | 'audio' | 'file'
export const MEDIA_TYPES: readonly MediaType[] = ['image', 'video', 'audio', 'file']

export const MEDIA_NOUNS = {
  image: 'an image',
  video: 'a video',
  audio: 'an audio file',
  file: 'a file',
} as const

/** Summary that replaces an image which was sent as a data: URL. */
export interface SentImage {
  readonly sha256: string
  readonly bytes: number
  readonly content_type: string
}

export const isSentImage = (value: unknown): value is SentImage =>
  isObject(value) &&
  typeof value.sha256 === 'string' &&
  typeof value.bytes === 'number' &&
  typeof value.content_type === 'string'

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

/**
 * Decodes Base64 in both alphabets, with or without padding. Returns undefined for other characters, which Node would
 * skip.
 */
export function fromBase64(payload: string): Buffer | undefined {
  const plain = payload.includes('%') ? fromPercent(payload).toString('latin1') : payload
  return fromDigits(plain) ?? fromDigits(plain.replace(/\s+/g, ''))
}

/**
 * Decodes the characters of either alphabet; undefined if another character is among them. Node skips such characters, so
 * the bytes are then too few: counting them is faster than a pattern over 64 MiB.
 */
function fromDigits(text: string): Buffer | undefined {
  const padding = /={0,2}$/.exec(text.slice(-2))?.[0].length ?? 0
  const digits = text.length - padding
  // Node uses only the low byte of a character beyond Latin-1, which may be a valid one.
  if (digits % 4 === 1 || Buffer.byteLength(text) > text.length) return undefined
  const bytes = Buffer.from(text, 'base64')
  return bytes.length === Math.floor((digits * 3) / 4) ? bytes : undefined
}

const PERCENT = 0x25

/** Decodes percent escapes like in URLs: a percent sign without two hexadecimal digits stays. */
export function fromPercent(payload: string): Buffer {
  const bytes = Buffer.from(payload, 'utf8')
  let length = 0
  for (let at = 0; at < bytes.length; at++, length++) {
    const byte = bytes[at] ?? 0
    const [high, low] = byte === PERCENT ? [digitOf(bytes[at + 1]), digitOf(bytes[at + 2])] : []
    const isEscape = high !== undefined && low !== undefined
    bytes[length] = isEscape ? high * 16 + low : byte
    if (isEscape) at += 2
  }
  return bytes.subarray(0, length)
}

function digitOf(byte = 0): number | undefined {
  const digit = '0123456789abcdef'.indexOf(String.fromCharCode(byte).toLowerCase())
  return digit < 0 ? undefined : digit
}

/** Signatures of the files that can be sent with a request. `head`: the first bytes as latin1. */
const SIGNATURES: readonly { readonly type: string; matches(head: string): boolean }[] = [
  { type: 'image/png', matches: (head) => head.startsWith('\x89PNG\r\n\x1a\n') },
  { type: 'image/jpeg', matches: (head) => head.startsWith('\xff\xd8\xff') },
  { type: 'image/webp', matches: (head) => head.startsWith('RIFF') && head.slice(8, 12) === 'WEBP' },
  { type: 'image/gif', matches: (head) => /^GIF8[79]a/.test(head) },
  {
    type: 'image/avif',
    matches: (head) => head.slice(4, 8) === 'ftyp' && /^(.{4})*?(avif|avis)/s.test(head.slice(8, 64)),
  },
  { type: 'image/heic', matches: (head) => /^.{4}ftyp(hei[cfmsx]|hev[cmsx]|mif1|msf1)/s.test(head) },
  { type: 'audio/mp4', matches: (head) => /^.{4}ftypM4[AB]/s.test(head) },
  { type: 'video/quicktime', matches: (head) => head.slice(4, 12) === 'ftypqt  ' },
  { type: 'video/mp4', matches: (head) => head.slice(4, 8) === 'ftyp' },
  { type: 'video/webm', matches: (head) => /^\x1aE\xdf\xa3.*webm/s.test(head) },
  { type: 'video/x-matroska', matches: (head) => head.startsWith('\x1aE\xdf\xa3') },
  { type: 'video/x-msvideo', matches: (head) => head.startsWith('RIFF') && head.slice(8, 12) === 'AVI ' },
  { type: 'audio/wav', matches: (head) => head.startsWith('RIFF') && head.slice(8, 12) === 'WAVE' },
  { type: 'audio/mpeg', matches: (head) => /^(ID3|\xff[\xe2\xe3\xf1-\xf3\xf9-\xfd])/.test(head) },
  { type: 'audio/flac', matches: (head) => head.startsWith('fLaC') },
  { type: 'audio/ogg', matches: (head) => head.startsWith('OggS') },
]

/** What servers read of an image. HEIC is converted by hardly any. */
export const IMAGE_TYPES: readonly string[] = SIGNATURES.flatMap(({ type }) =>
  type.startsWith('image/') && type !== 'image/heic' ? [type] : [],
)

const typeOf = (bytes: Uint8Array): string | undefined => {
  const head = String.fromCharCode(...bytes.subarray(0, 64))
  return SIGNATURES.find(({ matches }) => matches(head))?.type
}

/** Returns the content type of a file by its first bytes; undefined if a parameter for `media` cannot have it. */
export function mediaContentType(bytes: Uint8Array, media: MediaType): string | undefined {
  const type = typeOf(bytes)
  if (media === 'file') return type ?? 'application/octet-stream'
  return type?.startsWith(media) && type !== 'image/heic' ? type : undefined
}

const NAMES = {
  ...MEDIA_NOUNS,
  image: 'a PNG, JPEG, WebP, GIF or AVIF image',
  video: 'an MP4, MOV, WebM, MKV or AVI video',
  audio: 'an MP3, WAV, FLAC, Ogg or M4A file',
}

/** Returns why bytes cannot be sent as such media: the end of a sentence that begins with the name of the file. */
export function mediaProblem(bytes: Uint8Array, media: MediaType): string {
  if (media !== 'image' || typeOf(bytes) !== 'image/heic') return `is not ${NAMES[media]}`
  const commands = '`magick photo.heic photo.jpg`, on macOS `sips -s format jpeg photo.heic --out photo.jpg`'
  return `is a HEIC image. Convert it to JPEG first (${commands})`
}

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

export type SourceForm = 'blank' | 'data' | 'url' | 'invalid url' | 'run' | 'row' | 'standard input' | 'path'

/** Returns the form of a source of media, as typed: the same for flags, manifests and tools. */
export function sourceFormOf(text: string): SourceForm {
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
