/** Images inside a request, as data: URLs (RFC 2397). */
import { createHash } from 'node:crypto'
import type { StoredImage, StoredInput } from '../stored-run.js'
import { Refusal } from './refusal.js'

export interface EmbeddedImage extends StoredImage {
  readonly data: Uint8Array
}

export interface ExtractedImages {
  readonly input: StoredInput
  readonly images: readonly EmbeddedImage[]
}

/** Replaces the data: URLs in `image_urls`, and nowhere else: a prompt that looks like one stays text. */
export function extractImages(input: Readonly<Record<string, unknown>>): ExtractedImages {
  const sources = input.image_urls
  if (!Array.isArray(sources)) return { input, images: [] }
  const images: EmbeddedImage[] = []
  const image_urls = sources.map((source: string, index) => {
    if (!/^data:/i.test(source)) return source
    const image = imageOf(source, `input.image_urls/${index}`)
    images.push(image)
    const { sha256, bytes, content_type } = image
    return { sha256, bytes, content_type }
  })
  return { input: { ...input, image_urls }, images }
}

function imageOf(url: string, parameter: string): EmbeddedImage {
  const comma = url.indexOf(',')
  if (comma < 0) throw new Refusal('invalid_input', `${parameter} is a data: URL without a comma.`)
  const [type = '', ...attributes] = url.slice('data:'.length, comma).split(';')
  const isBase64 = attributes.at(-1)?.trim().toLowerCase() === 'base64'
  const text = url.slice(comma + 1)
  const data = isBase64 ? fromBase64(text) : fromPercent(text)
  if (data === undefined)
    throw new Refusal(
      'invalid_input',
      `${parameter} is a data: URL whose ${isBase64 ? 'base64' : 'percent encoding'} is not valid.`,
    )
  return {
    sha256: createHash('sha256').update(data).digest('hex'),
    bytes: data.byteLength,
    content_type: contentTypeOf(type),
    data,
  }
}

/** `text/plain` is the default of RFC 2397. */
const contentTypeOf = (type: string): string =>
  /^[\w.+-]{1,100}\/[\w.+-]{1,100}$/.test(type.trim()) ? type.trim().toLowerCase() : 'text/plain'

/** Both alphabets, with or without padding. Node itself would skip invalid characters. */
function fromBase64(text: string): Uint8Array | undefined {
  const plain = text.includes('%') ? fromPercent(text)?.toString('latin1') : text
  const digits = plain?.replace(/\s+/g, '').replace(/={1,2}$/, '')
  // Search for an invalid character: matching the valid ones would backtrack through 64 MiB.
  if (digits === undefined || /[^A-Za-z0-9+/_-]/.test(digits) || digits.length % 4 === 1) return undefined
  return Buffer.from(digits, 'base64')
}

const PERCENT = 0x25

function fromPercent(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'utf8')
  let length = 0
  for (let index = 0; index < bytes.length; index++, length++) {
    const byte = bytes[index] ?? 0
    if (byte !== PERCENT) {
      bytes[length] = byte
      continue
    }
    const digits = bytes.toString('latin1', index + 1, index + 3)
    if (!/^[0-9a-f]{2}$/i.test(digits)) return undefined
    bytes[length] = Number.parseInt(digits, 16)
    index += 2
  }
  return bytes.subarray(0, length)
}
