/** Reference images of a form: reads files, accepts URLs, changes the order, and checks sizes and types. */
import { MAX_BODY_BYTES } from '../../protocol/limits.js'
import { imageProblem, imageTypeOf } from '../../protocol/media.js'
import { isHttpUrl } from '../../protocol/parse.js'
import { printable } from '../../protocol/text.js'

/** A reference image: a file or a URL. */
export interface Reference {
  /** Unique on this page. */
  readonly id: number
  readonly name: string
  /** Value sent in the request: a `data:` URL for a file, or the http(s) URL. */
  readonly source: string
  /** Blob URL for the thumbnail; undefined if the image is a URL. */
  readonly preview?: string
  /** File size; 0 if the image is a URL. */
  readonly bytes: number
  readonly isUrl: boolean
}

export const moved = (list: readonly Reference[], from: number, to: number): readonly Reference[] => {
  const item = list[from]
  if (item === undefined || to < 0 || to >= list.length) return list
  return list.toSpliced(from, 1).toSpliced(to, 0, item)
}

/** Part of the request body reserved for the prompt and the other parameters. */
const OTHER_BYTES = 512 * 1024

/** Size of the sources in the request body, in bytes. Each source adds two quotes and a comma. */
export const sourceBytes = (list: readonly Reference[]): number =>
  list.reduce((sum, { source }) => sum + source.length + 3, 0)

export const isTooLarge = (list: readonly Reference[]): boolean =>
  sourceBytes(list) > MAX_BODY_BYTES - OTHER_BYTES

/** Maximum size of a file. Base64 encodes 3 bytes as 4 characters. */
export const MAX_FILE_BYTES = Math.floor(((MAX_BODY_BYTES - OTHER_BYTES) / 4) * 3)

/** Returns why the file cannot be sent, as a sentence; undefined if it can be sent. */
export function fileProblem(name: string, bytes: Uint8Array, size: number): string | undefined {
  if (size === 0) return `${name} is empty.`
  if (size > MAX_FILE_BYTES) return `${name} is larger than 48 MB. Use a smaller image, or its URL.`
  return imageTypeOf(bytes) === undefined ? `${name} ${imageProblem(bytes)}.` : undefined
}

/** Returns the error of an invalid URL, as a sentence; undefined if the URL is valid. */
export const urlProblem = (text: string): string | undefined =>
  isHttpUrl(text) ? undefined : `"${text}" is not a URL that begins with http:// or https://.`

/** Returns the URLs in a dropped text, one per line. Skips other lines, such as the comments of text/uri-list. */
export const urlsIn = (text: string): readonly string[] =>
  text
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => !line.startsWith('#') && isHttpUrl(line))

let lastId = 0

export const referenceOfUrl = (url: string): Reference => ({
  id: ++lastId,
  name: printable(url),
  source: url,
  bytes: 0,
  isUrl: true,
})

export interface ReadFiles {
  readonly references: readonly Reference[]
  /** One sentence per file that cannot be sent. */
  readonly problems: readonly string[]
}

/** Reads image files. Detects the type from the first bytes, since a file name can be wrong. */
export async function readFiles(files: readonly File[]): Promise<ReadFiles> {
  const references: Reference[] = []
  const problems: string[] = []
  for (const file of files) {
    const name = printable(file.name) || 'The image'
    try {
      const head = new Uint8Array(await file.slice(0, 64).arrayBuffer())
      const problem = fileProblem(name, head, file.size)
      if (problem === undefined) references.push(await referenceOf(file, name, imageTypeOf(head) ?? ''))
      else problems.push(problem)
    } catch {
      problems.push(`${name} could not be read.`)
    }
  }
  return { references, problems }
}

async function referenceOf(file: File, name: string, type: string): Promise<Reference> {
  const blob = new Blob([file], { type })
  return {
    id: ++lastId,
    name,
    source: await dataUrlOf(blob),
    preview: URL.createObjectURL(blob),
    bytes: file.size,
    isUrl: false,
  }
}

const dataUrlOf = (blob: Blob): Promise<string> =>
  new Promise((resolve, reject) => {
    const reader = new FileReader()
    reader.onload = () => resolve(String(reader.result))
    reader.onerror = () => reject(reader.error)
    reader.readAsDataURL(blob)
  })
