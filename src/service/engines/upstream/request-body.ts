/**
 * Bodies of requests to a model's server: JSON and multipart forms. Files are read while the body is sent, because the
 * references of a run may have 256 MiB.
 */
import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { fileTypeFromFile } from 'file-type'
import type { RequestStream } from '../../../host/http.js'
import { writeJson } from '../../../protocol/json.js'
import { MEDIA_NOUNS, type MediaType } from '../../../protocol/media.js'
import { isObject } from '../../../protocol/parse.js'
import type { RenderJob } from '../engine.js'

const SOURCE = Symbol('file')

export interface SourceFile {
  /** Marks it in a JSON value, where it becomes a text: its bytes in base64. */
  readonly [SOURCE]: true
  readonly path: string
  readonly bytes: number
  readonly contentType: string
  /** A file name with the extension of its type: `01.png`. */
  readonly name: string
  /** Written before the base64. */
  readonly prefix?: string
}

/** Returns the file for a JSON value as `data:image/png;base64,…`. */
export const asDataUri = (file: SourceFile): SourceFile => ({
  ...file,
  prefix: `data:${file.contentType};base64,`,
})

/** Returns the references of a job, in order. Throws when one could not be loaded, or is not an image. */
export async function referencesOf(job: RenderJob, max?: number): Promise<readonly SourceFile[]> {
  checkCount(job, max)
  return await Promise.all(job.references.map(referenceOf))
}

export function checkCount({ references }: RenderJob, max = Number.POSITIVE_INFINITY): void {
  if (references.length > max)
    throw new Error(`This model takes at most ${max} reference image; the run has ${references.length}.`)
}

const DECODABLE: readonly string[] = ['image/png', 'image/jpeg', 'image/gif', 'image/bmp']

/** Throws for a format that stable-diffusion.cpp and KoboldCpp may skip without a word, and then draw without it. */
export function checkDecodable(references: readonly SourceFile[]): void {
  for (const [index, { contentType }] of references.entries())
    if (!DECODABLE.includes(contentType))
      throw new Error(
        `Reference image ${index + 1} is ${contentType}, which its server may not read. Use PNG or JPEG.`,
      )
}

export const referenceOf = (path: string | undefined, index: number): Promise<SourceFile> =>
  fileOf(path, 'image', `Reference image ${index + 1}`, String(index + 1).padStart(2, '0'))

/** Returns a file of the parameter `name`, which takes this type. */
export const mediaFileOf = (
  path: string | undefined,
  name: string,
  type: MediaType,
  index: number,
): Promise<SourceFile> => fileOf(path, type, `${name}: the file`, `${name}-${index + 1}`)

/** `owner`: the beginning of an error message. `name`: without its extension. */
async function fileOf(
  path: string | undefined,
  type: MediaType,
  owner: string,
  name: string,
): Promise<SourceFile> {
  if (path === undefined) throw new Error(`${owner} could not be read.`)
  const { mime = 'application/octet-stream', ext = 'bin' } = (await fileTypeFromFile(path)) ?? {}
  if (type !== 'file' && !mime.startsWith(`${type}/`))
    throw new Error(`${owner} is not ${MEDIA_NOUNS[type]} (${mime}).`)
  return { [SOURCE]: true, path, bytes: (await stat(path)).size, contentType: mime, name: `${name}.${ext}` }
}

export interface RequestBody extends RequestStream {
  readonly contentType: string
}

/** A text, or a file as it is or in base64. */
type Piece = string | { readonly file: SourceFile; readonly isBase64: boolean }

/** Returns the value as JSON. Each `SourceFile` in it becomes a text of base64. */
export function jsonBody(value: unknown): RequestBody {
  const mark = randomUUID()
  const files: SourceFile[] = []
  const json = writeJson(value, {
    replace: (each) =>
      isObject(each) && SOURCE in each
        ? `${each.prefix ?? ''}${mark}${files.push(each as unknown as SourceFile) - 1}${mark}`
        : each,
  })
  const pieces = json.split(mark).map((piece, index): Piece => {
    const file = index % 2 === 0 ? undefined : files[Number(piece)]
    return file === undefined ? piece : { file, isBase64: true }
  })
  return bodyOf('application/json', pieces)
}

export type FormField = readonly [name: string, value: string | SourceFile]

/** Returns a multipart form, with its fields in this order. */
export function formBody(fields: readonly FormField[]): RequestBody {
  const boundary = `rushes-${randomUUID()}`
  const pieces = fields.flatMap(([name, value]): readonly Piece[] => {
    const head = `--${boundary}\r\nContent-Disposition: form-data; name="${quoted(name)}"`
    if (typeof value === 'string') return [`${head}\r\n\r\n${value}\r\n`]
    const type = `; filename="${quoted(value.name)}"\r\nContent-Type: ${value.contentType}\r\n\r\n`
    return [head, type, { file: value, isBase64: false }, '\r\n']
  })
  return bodyOf(`multipart/form-data; boundary=${boundary}`, [...pieces, `--${boundary}--\r\n`])
}

/** Returns the bytes of a file. */
export const fileBody = (file: SourceFile): RequestBody =>
  bodyOf(file.contentType, [{ file, isBase64: false }])

const quoted = (name: string): string =>
  name.replace(/["\r\n]/g, (character) => encodeURIComponent(character))

const bodyOf = (contentType: string, pieces: readonly Piece[]): RequestBody => ({
  contentType,
  bytes: pieces.reduce((sum, piece) => sum + sizeOf(piece), 0),
  async *chunks() {
    for (const piece of pieces) {
      if (typeof piece !== 'string') yield* piece.isBase64 ? base64Of(piece.file) : bytesOf(piece.file)
      else if (piece !== '') yield Buffer.from(piece)
    }
  },
})

function sizeOf(piece: Piece): number {
  if (typeof piece === 'string') return Buffer.byteLength(piece)
  return piece.isBase64 ? Math.ceil(piece.file.bytes / 3) * 4 : piece.file.bytes
}

const bytesOf = ({ path }: SourceFile): AsyncIterable<Buffer> => createReadStream(path)

async function* base64Of(file: SourceFile): AsyncGenerator<Buffer> {
  let left: Buffer = Buffer.alloc(0)
  for await (const chunk of bytesOf(file)) {
    const bytes = Buffer.concat([left, chunk])
    const whole = bytes.byteLength - (bytes.byteLength % 3)
    yield Buffer.from(bytes.toString('base64', 0, whole))
    left = bytes.subarray(whole)
  }
  yield Buffer.from(left.toString('base64'))
}
