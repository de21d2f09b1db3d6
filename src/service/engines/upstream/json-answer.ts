/**
 * Reads a JSON answer of a model's server, whose images and videos are texts of base64. Parsing and decoding a large
 * answer takes a second, so a thread does it (`intake.ts`), which ends with the answer.
 */
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fromBase64 } from '../../../host/data-url.js'
import { startThread } from '../../../host/thread.js'
import { isObject, parseJson } from '../../../protocol/parse.js'
import { checkStructure } from '../../rules/create-request.js'
import { UpstreamError } from './upstream-error.js'

export const MAX_FILE_BYTES = 512 * 1_048_576
export const MAX_FILES = 64
const MAX_ANSWER_BYTES = 64 * 1_048_576
/** Largest answer that is parsed without the thread. */
const MAX_INLINE_BYTES = 65_536
/** Shorter texts of base64 stay in `value`. */
const MIN_FILE_CHARACTERS = 16_384

export const tooLarge = (): UpstreamError =>
  new UpstreamError(`The model's server sent a result of more than ${MAX_FILE_BYTES / 1_048_576} MiB.`)

export interface JsonAnswer {
  /** Parsed. In place of a long base64 text, it has a text that only `file` understands. */
  readonly value: unknown
  /** Whether `file` understands this text: a base64 text that was too long for `value`. */
  hasFile(value: unknown): boolean
  /**
   * Resolves with the path of a hidden file with the decoded bytes of a base64 text, with or without `data:…;base64,`.
   * Throws `UpstreamError` for any other value and for an empty one.
   */
  file(value: unknown): Promise<string>
}

/** Writes files into `folder`. Throws `UpstreamError` for a body that is not JSON, and the errors of `body`. */
export async function readJsonAnswer(body: AsyncIterable<Uint8Array>, folder: string): Promise<JsonAnswer> {
  const parsed = await readAnswer(body)
  if ('problem' in parsed) throw new UpstreamError(parsed.problem)
  const { value, files, mark } = parsed
  const fileOf = (text: unknown): Uint8Array | undefined =>
    typeof text === 'string' && text.startsWith(mark) ? files[Number(text.slice(mark.length))] : undefined

  return {
    value,
    hasFile: (text) => fileOf(text) !== undefined,
    async file(text) {
      if (typeof text !== 'string') throw new UpstreamError("The model's server sent no result.")
      const decoded = fileOf(text) ?? (text.length < MIN_FILE_CHARACTERS ? decodeBase64(text) : undefined)
      if (decoded === undefined)
        throw new UpstreamError("The model's server sent a result that is not valid base64.")
      if (decoded.byteLength === 0) throw new UpstreamError("The model's server sent an empty result.")
      const path = join(folder, `.${randomUUID()}`)
      // Repeats writes that a full disk cuts short.
      await writeFile(path, decoded, { flag: 'wx', mode: 0o600 })
      return path
    },
  }
}

/** Reads an answer of status 200 whose files are not needed. Throws as `readJsonAnswer` does. */
export async function readJsonValue(body: AsyncIterable<Uint8Array>): Promise<unknown> {
  const parsed = await readAnswer(body)
  if ('problem' in parsed) throw new UpstreamError(parsed.problem, { status: 200 })
  return parsed.value
}

async function readAnswer(body: AsyncIterable<Uint8Array>): Promise<ParsedAnswer> {
  const bytes = await receive(body)
  return bytes.byteLength <= MAX_INLINE_BYTES ? parseAnswer(bytes) : await parseInThread(bytes)
}

/** Resolves with the bytes in a separate buffer, which can be transferred. */
async function receive(body: AsyncIterable<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  let buffer = new Uint8Array(MAX_INLINE_BYTES)
  let length = 0
  for await (const chunk of body) {
    const end = length + chunk.byteLength
    if (end > MAX_ANSWER_BYTES)
      throw new UpstreamError(
        `The model's server sent more than ${MAX_ANSWER_BYTES / 1_048_576} MiB of JSON.`,
      )
    if (end > buffer.byteLength) {
      const larger = new Uint8Array(Math.max(end, 2 * buffer.byteLength))
      larger.set(buffer.subarray(0, length))
      buffer = larger
    }
    buffer.set(chunk, length)
    length = end
  }
  return buffer.subarray(0, length)
}

/** An answer as the thread sends it. */
type ParsedAnswer =
  | {
      /** In place of a long base64 text, it has `mark` and the number of the file. */
      readonly value: unknown
      readonly files: readonly Uint8Array<ArrayBuffer>[]
      readonly mark: string
    }
  | { readonly problem: string }

/** `workerData` of the thread. */
export const ANSWER_THREAD = { thread: 'answer' }

async function parseInThread(bytes: Uint8Array<ArrayBuffer>): Promise<ParsedAnswer> {
  const thread = startThread<Uint8Array, ParsedAnswer>('intake', ANSWER_THREAD)
  try {
    return await thread.ask(bytes, [bytes.buffer])
  } finally {
    await thread.close()
  }
}

export function parseAnswer(bytes: Uint8Array): ParsedAnswer {
  try {
    checkStructure(bytes)
  } catch {
    return { problem: "The model's server sent more JSON than a result needs." }
  }
  const json = parseJson(new TextDecoder().decode(bytes))
  if (!json.ok) return { problem: "The model's server sent an incomplete response, or one that is not JSON." }
  const files: Uint8Array<ArrayBuffer>[] = []
  const mark = randomUUID()
  const withoutFiles = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(withoutFiles)
    if (isObject(value))
      return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, withoutFiles(each)]))
    const decoded =
      typeof value === 'string' && value.length >= MIN_FILE_CHARACTERS ? decodeBase64(value) : undefined
    return decoded === undefined ? value : `${mark}${files.push(decoded) - 1}`
  }
  return { value: withoutFiles(json.value), files, mark }
}

const DATA_PREFIX = /^data:[^,]{0,200};base64,/i

/** Returns the bytes of a base64 text, which may have line breaks; undefined if it is not valid. */
function decodeBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  const decoded = fromBase64(text.replace(DATA_PREFIX, ''))
  // Copied, since memory of Node's pool cannot be transferred.
  return decoded && new Uint8Array(decoded)
}
