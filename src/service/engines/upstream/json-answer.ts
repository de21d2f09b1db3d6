/**
 * Reads a JSON answer of any size as a stream. A long text of base64, which is an image or a video, goes decoded into a
 * file; the rest is small, and is parsed when the answer is complete. Neither the memory nor the time in one turn of the
 * event loop grows with the answer.
 */
import { randomUUID } from 'node:crypto'
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { parseJson } from '../../../protocol/parse.js'
import { UpstreamError } from './upstream-error.js'

export const MAX_FILE_BYTES = 512 * 1_048_576
/** Everything but the long base64 texts. */
const MAX_REST_BYTES = 1_048_576
export const MAX_FILES = 64
/** A text that is still open after this many bytes goes into a file, if it begins as base64. */
const MIN_FILE_CHARACTERS = 16_384
const STEP_BYTES = 65_536
/** A step takes up to 2 ms, and not every one waits for the disk: a text of line breaks is decoded into nothing. */
const STEPS_PER_TURN = 4
const [QUOTE, BACKSLASH] = [0x22, 0x5c]

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
  const mark = randomUUID()
  const files: Base64File[] = []
  let rest: Buffer[] = []
  let restBytes = 0
  let fileBytes = 0
  /** Offset in `rest` of the text that is being read. */
  let textAt: number | undefined
  /** The same for a long text that is not base64. */
  let plainTextAt: number | undefined
  let file: Base64File | undefined
  /** Whether the byte before was a backslash that escapes the next one. */
  let isEscaped = false

  /** Returns the offset of the quote that ends the text, or undefined. */
  function endOf(chunk: Buffer, start: number): number | undefined {
    for (let at = start; at < chunk.byteLength; at++) {
      if (isEscaped) isEscaped = false
      else if (chunk[at] === QUOTE) return at
      else isEscaped = chunk[at] === BACKSLASH
    }
    return undefined
  }

  const createFile = async (): Promise<Base64File> => {
    if (files.length === MAX_FILES) throw new UpstreamError("The model's server sent too many results.")
    const created = await createBase64File(join(folder, `.${mark}-${files.length}`))
    files.push(created)
    return created
  }

  function keep(bytes: Buffer): void {
    restBytes += bytes.byteLength
    if (restBytes > MAX_REST_BYTES)
      throw new UpstreamError("The model's server sent more JSON than a result needs.")
    rest.push(bytes)
  }

  async function write(bytes: Buffer): Promise<void> {
    await file?.write(bytes)
    fileBytes += bytes.byteLength
    // Also bounds invalid base64, which is not written.
    if (fileBytes > MAX_FILE_BYTES * 1.5) throw tooLarge()
  }

  async function read(chunk: Buffer): Promise<void> {
    let kept = 0
    if (file !== undefined) {
      const end = endOf(chunk, 0)
      await write(chunk.subarray(0, end))
      if (end === undefined) return
      await file.end()
      file = undefined
      keep(Buffer.from(`${mark}${files.length - 1}`))
      kept = end
    }
    for (let at = kept; at < chunk.byteLength; ) {
      const isOpen = textAt !== undefined
      const quote = isOpen ? endOf(chunk, at) : chunk.indexOf(QUOTE, at)
      if (quote === undefined || quote < 0) break
      textAt = isOpen ? undefined : restBytes + quote + 1 - kept
      at = quote + 1
    }
    keep(chunk.subarray(kept))
    if (textAt === undefined || textAt === plainTextAt || restBytes - textAt < MIN_FILE_CHARACTERS) return
    const whole = Buffer.concat(rest)
    const text = whole.subarray(textAt)
    if (!beginsAsBase64(text)) {
      plainTextAt = textAt
      return
    }
    rest = [whole.subarray(0, textAt)]
    restBytes = textAt
    file = await createFile()
    await write(text)
  }

  try {
    let steps = 0
    for await (const part of body) {
      const bytes = Buffer.from(part.buffer, part.byteOffset, part.byteLength)
      for (let at = 0; at < bytes.byteLength; at += STEP_BYTES) {
        await read(bytes.subarray(at, at + STEP_BYTES))
        if (++steps % STEPS_PER_TURN === 0) await setImmediate()
      }
    }
    const json = parseJson(Buffer.concat(rest).toString('utf8'))
    if (!json.ok)
      throw new UpstreamError("The model's server sent an incomplete response, or one that is not JSON.")
    return { value: json.value, hasFile: (value) => known(value) !== undefined, file: saved }
  } finally {
    await Promise.all(files.map((each) => each.close()))
  }

  function known(value: unknown): Base64File | undefined {
    return typeof value === 'string' && value.startsWith(mark)
      ? files[Number(value.slice(mark.length))]
      : undefined
  }

  async function saved(value: unknown): Promise<string> {
    const file = known(value)
    if (file !== undefined) return file.path()
    if (typeof value !== 'string') throw new UpstreamError("The model's server sent no result.")
    const short = await createFile()
    try {
      await short.write(Buffer.from(value.replace(/\s/g, '')))
      await short.end()
    } finally {
      await short.close()
    }
    return short.path()
  }
}

/** An escape whose end is in the next part. */
const INCOMPLETE_ESCAPE = /\\(?:u[\da-f]{0,3})?$/i

const withoutIncomplete = (text: string): string => text.replace(INCOMPLETE_ESCAPE, '')

/** Replaces the escapes of JSON, and removes line breaks. Returns undefined for an invalid escape. */
function unescaped(text: string): string | undefined {
  if (!text.includes('\\')) return text
  const json = parseJson(`"${text}"`)
  return json.ok ? String(json.value).replace(/\s/g, '') : undefined
}

const DATA_PREFIX = /^data:[^,]{0,200};base64,/i
const BASE64 = /^[\w+/-]*(={0,2})$/

function beginsAsBase64(text: Buffer): boolean {
  const head = text.subarray(0, MIN_FILE_CHARACTERS).toString('latin1')
  const plain = unescaped(withoutIncomplete(head))
  return plain !== undefined && BASE64.test(plain.replace(DATA_PREFIX, ''))
}

interface Base64File {
  /** Adds a part of the text, with the escapes of JSON. */
  write(text: Buffer): Promise<void>
  end(): Promise<void>
  close(): Promise<void>
  path(): string
}

async function createBase64File(path: string): Promise<Base64File> {
  const handle: FileHandle = await open(path, 'wx', 0o600)
  let bytes = 0
  let left = ''
  let isFirst = true
  let isPadded = false
  let isValid = true

  async function decode(text: string): Promise<void> {
    const padding = BASE64.exec(text)?.[1]
    if (padding === undefined || (isPadded && text !== '')) isValid = false
    if (!isValid || text === '') return
    isPadded = padding !== ''
    const decoded = Buffer.from(text, 'base64')
    bytes += decoded.byteLength
    if (bytes > MAX_FILE_BYTES) throw tooLarge()
    // Unlike `write`, repeats a write that a full disk cuts short.
    await handle.appendFile(decoded)
  }

  return {
    async write(part) {
      if (!isValid) return
      const raw = left + part.toString('latin1')
      const complete = withoutIncomplete(raw)
      const plain = unescaped(complete)
      if (plain === undefined) {
        isValid = false
        return
      }
      const text = isFirst ? plain.replace(DATA_PREFIX, '') : plain
      isFirst = false
      // Four characters are three bytes.
      const whole = text.length - (text.length % 4)
      left = text.slice(whole) + raw.slice(complete.length)
      await decode(text.slice(0, whole))
    },
    async end() {
      if (left.length === 1) isValid = false
      await decode(left)
      left = ''
    },
    close: () => handle.close(),
    path() {
      if (!isValid) throw new UpstreamError("The model's server sent a result that is not valid base64.")
      if (bytes === 0) throw new UpstreamError("The model's server sent an empty result.")
      return path
    },
  }
}
