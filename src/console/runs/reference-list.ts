/** The reference images of a form: added, removed and ordered, and what keeps them from being sent. Pure. */
import { imageTypeOf } from '../../protocol/image-signatures.js'
import { MAX_BODY_BYTES } from '../../protocol/limits.js'
import { isHttpUrl } from '../../protocol/parse.js'

/** An image of the form, from a file or by its URL. */
export interface Reference {
  /** Within the form. */
  readonly id: number
  readonly name: string
  /** What is sent: a data: URL, or an http(s) URL. */
  readonly source: string
  /** For its thumbnail; undefined for a URL. */
  readonly preview?: string
  /** Of the file; 0 for a URL. */
  readonly bytes: number
  readonly isUrl: boolean
}

export const moved = (list: readonly Reference[], from: number, to: number): readonly Reference[] => {
  const item = list[from]
  if (item === undefined || to < 0 || to >= list.length) return list
  return list.toSpliced(from, 1).toSpliced(to, 0, item)
}

/** Room for the prompt and the other parameters in a body. */
const OTHER_BYTES = 512 * 1024

/** The bytes of the body that the sources take. */
export const sourceBytes = (list: readonly Reference[]): number =>
  list.reduce((sum, { source }) => sum + source.length + 3, 0)

export const isTooLarge = (list: readonly Reference[]): boolean =>
  sourceBytes(list) > MAX_BODY_BYTES - OTHER_BYTES

/** Base64 makes 4 characters of 3 bytes. */
export const MAX_FILE_BYTES = Math.floor(((MAX_BODY_BYTES - OTHER_BYTES) / 4) * 3)

/** What is wrong with a file, as a sentence; undefined when it can be sent. */
export function fileProblem(name: string, bytes: Uint8Array, size: number): string | undefined {
  if (size === 0) return `${name} is empty.`
  if (size > MAX_FILE_BYTES) return `${name} is larger than 48 MB. Use a smaller image, or its URL.`
  return imageTypeOf(bytes) === undefined ? `${name} is not a PNG, JPEG, WebP, GIF or AVIF image.` : undefined
}

/** What is wrong with a URL that was entered. */
export const urlProblem = (text: string): string | undefined =>
  isHttpUrl(text) ? undefined : `"${text}" is not a URL that begins with http:// or https://.`

/** The URLs of a text that was dropped or pasted, one per line; comments of text/uri-list are left out. */
export const urlsIn = (text: string): readonly string[] =>
  text
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => !line.startsWith('#') && isHttpUrl(line))
