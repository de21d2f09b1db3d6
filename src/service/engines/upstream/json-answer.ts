/** Reads a JSON answer of a model's server, whose images and videos are texts of base64. */
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fromBase64 } from '../../../protocol/data-url.js'
import { isObject, parseJson } from '../../../protocol/parse.js'
import { checkStructure } from '../../rules/create-request.js'
import { JobEnded, UpstreamError } from './upstream-error.js'

export const MAX_FILE_BYTES = 512 * 1_048_576
export const MAX_FILES = 64
const MAX_ANSWER_BYTES = 64 * 1_048_576
/** Shorter texts of base64 stay in `value`. */
const MIN_FILE_CHARACTERS = 16_384

export const tooLarge = (): JobEnded =>
  new JobEnded(`The model's server sent a result of more than ${MAX_FILE_BYTES / 1_048_576} MiB.`)

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
      if (typeof text !== 'string') throw new JobEnded("The model's server sent no result.")
      const decoded = fileOf(text) ?? (text.length < MIN_FILE_CHARACTERS ? decodeBase64(text) : undefined)
      if (decoded === undefined)
        throw new JobEnded("The model's server sent a result that is not valid base64.")
      if (decoded.byteLength === 0) throw new JobEnded("The model's server sent an empty result.")
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

const readAnswer = async (body: AsyncIterable<Uint8Array>): Promise<ParsedAnswer> =>
  parseAnswer(await receive(body))

async function receive(body: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const chunks: Uint8Array[] = []
  let bytes = 0
  for await (const chunk of body) {
    bytes += chunk.byteLength
    if (bytes > MAX_ANSWER_BYTES)
      throw new JobEnded(`The model's server sent more than ${MAX_ANSWER_BYTES / 1_048_576} MiB of JSON.`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks)
}

type ParsedAnswer =
  | {
      /** In place of a long base64 text, it has `mark` and the number of the file. */
      readonly value: unknown
      readonly files: readonly Uint8Array[]
      readonly mark: string
    }
  | { readonly problem: string }

function parseAnswer(bytes: Uint8Array): ParsedAnswer {
  try {
    checkStructure(bytes)
  } catch {
    return { problem: "The model's server sent more JSON than a result needs." }
  }
  const json = parseJson(new TextDecoder().decode(bytes))
  if (!json.ok) return { problem: "The model's server sent an incomplete response, or one that is not JSON." }
  const files: Uint8Array[] = []
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
const decodeBase64 = (text: string): Uint8Array | undefined => fromBase64(text.replace(DATA_PREFIX, ''))
