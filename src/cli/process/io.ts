/**
 * The streams and the environment of the process, as `main` receives them. Also reads standard input, once per command.
 */
import { constants, createReadStream, openSync, type Stats, statSync } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { type RushesError, usageError } from '../../errors.js'
import { onAbort, raceAbort } from '../../host/abort.js'
import { describeError, isSystemError } from '../../host/system-error.js'
import { MAX_BODY_BYTES } from '../../protocol/limits.js'

export type Env = Readonly<Record<string, string | undefined>>

/** Value of an environment variable. An empty variable counts as unset. */
export const variable = (env: Env, name: string): string | undefined => env[name] || undefined

export interface OutputStream extends Writable {
  readonly isTTY?: boolean
  /** Size of a terminal in characters; undefined for other streams. */
  readonly columns?: number
  readonly rows?: number
}

export interface InputStream extends Readable {
  readonly isTTY?: boolean
}

/**
 * Opens standard input. Only a command that reads it calls this, because an open terminal or pipe keeps the process
 * alive.
 */
export type Stdin = () => InputStream

export interface Io {
  /** Command-line arguments after `rushes`. */
  readonly argv: readonly string[]
  readonly env: Env
  readonly stdin: Stdin
  readonly stdout: OutputStream
  readonly stderr: OutputStream
}

/**
 * Reads at most the maximum size of a request body. Throws `usage` for an endless stream (`yes |`) before it fills the
 * memory; `name` is the stream's name in the message.
 */
async function readAll(stream: Readable, name: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    chunks.push(chunk)
    bytes += chunk.byteLength
    if (bytes > MAX_BODY_BYTES)
      throw usageError(
        `${name} is too large; the limit is ${MAX_BODY_BYTES / 1024 / 1024} MiB. Nothing was sent.`,
        'Check where it comes from: it may never end.',
      )
  }
  return Buffer.concat(chunks)
}

/** Throws `usage` when several arguments of a command read standard input. */
export function checkStdinUsers(users: readonly (string | undefined)[]): void {
  const readers = users.filter((user) => user !== undefined)
  if (readers.length > 1)
    throw usageError(
      `${readers.join(' and ')} cannot both read standard input.`,
      'Use a file for one of them.',
    )
}

/** Reads all of standard input. Throws `usage` when it is empty; `what` is the expected content in the message. */
export async function readStdin(stdin: Stdin, what: string, signal: AbortSignal): Promise<Buffer> {
  // A read cannot be cancelled, but the wait for it can.
  const bytes = await raceAbort(readAll(stdin(), 'Standard input'), signal)
  if (bytes.toString('latin1').trim() === '') throw emptyStdin(what)
  return bytes
}

export const emptyStdin = (what: string): RushesError =>
  usageError(`Standard input is empty; expected ${what}. Nothing was sent.`, 'Did an earlier command fail?')

interface ReadPathOptions {
  readonly signal: AbortSignal
  /** The path in messages. Default: the path. */
  readonly shown?: string
  /** What to give instead of a file that cannot be read. */
  readonly hint?: string
  /** Throws for a file that is not to be read. */
  check?(stats: Stats): void
}

/** Reads all of a file, pipe (`<(…)`) or device. Throws `usage` when it cannot be read or is too large. */
export async function readPath(
  path: string,
  { signal, shown = path, hint, check }: ReadPathOptions,
): Promise<Buffer> {
  // No system has such a path, and Node does not report it like the others.
  if (path.includes('\0')) throw usageError(`${shown} is not a path: it contains a null character.`, hint)
  try {
    check?.(statSync(path))
    const stream = (await openReadable(path)) ?? createReadStream(path)
    return await raceAbort(readAll(stream, shown), signal)
  } catch (error) {
    if (!isSystemError(error)) throw error
    throw usageError(`${describeError(error, shown)}.`, hint)
  }
}

/**
 * Decodes UTF-8 and removes a byte order mark. Returns undefined for other bytes, which would be sent as wrong
 * characters.
 */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    return undefined
  }
}

export const linesOf = (text: string): readonly string[] =>
  text
    .split(/\r?\n/)
    .map((line) => line.trim())
    .filter((line) => line !== '')

/** Reads ids from arguments. For `-`, reads them from standard input, one per line. Throws `usage`. */
export async function readIds(
  words: readonly string[],
  stdin: Stdin,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const users = words.filter((word) => word === '-')
  if (users.length > 1)
    throw usageError('More than one id is -.', 'Use one -: it reads an id from each line.')
  const read = users.length === 0 ? [] : linesOf((await readStdin(stdin, 'the ids', signal)).toString('utf8'))
  return [...new Set(words.flatMap((word) => (word === '-' ? read : [word])))]
}

/**
 * The first line that is not blank of a file, a pipe or a process. Keeps at most `maxBytes` bytes, with the blank lines
 * before it.
 */
export class FirstLine {
  readonly #maxBytes: number
  #bytes = Buffer.alloc(0)

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Adds bytes; bytes after the line are dropped. */
  readonly add = (chunk: Uint8Array): void => {
    if (!this.isWhole) this.#bytes = Buffer.concat([this.#bytes, chunk]).subarray(0, this.#maxBytes)
  }

  /** Whether the end of the line, or `maxBytes` bytes, have been added. */
  get isWhole(): boolean {
    return this.#bytes.byteLength >= this.#maxBytes || this.#fromStart.includes('\n')
  }

  /** The line without leading space and without its line end. If the line end has not arrived, the text so far. */
  get text(): string {
    const [line = ''] = this.#fromStart.split('\n', 1)
    return line.replace(/\r$/, '')
  }

  get #fromStart(): string {
    return this.#bytes.toString('utf8').replace(/^\uFEFF?[\u0000-\u0020]*/, '')
  }
}

/**
 * Reads up to the end of the line, then destroys the stream. Rejects with the signal's reason or the stream's error.
 */
export async function readFirstLine(
  stream: Readable,
  maxBytes: number,
  signal: AbortSignal,
): Promise<string> {
  const line = new FirstLine(maxBytes)
  const forget = onAbort(signal, () => stream.destroy())
  try {
    for await (const chunk of stream) {
      line.add(chunk)
      if (line.isWhole) break
    }
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    forget()
  }
  signal.throwIfAborted()
  return line.text
}

/**
 * Opens a file or a pipe. A pipe without a writer does not block a thread of Node, which would keep the process alive.
 * Returns undefined for a device, which may have no end. Throws the system's errors.
 */
export async function openReadable(path: string): Promise<Readable | undefined> {
  const stats = statSync(path)
  if (stats.isCharacterDevice() || stats.isBlockDevice()) return undefined
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  if (!stats.isFIFO()) return createReadStream(path, { fd })
  const { Socket } = await import('node:net')
  return new Socket({ fd, readable: true, writable: false })
}

const ITEMS_PER_TURN = 250

/**
 * Yields the items in order, with pauses in which signals are handled: thousands of journal reads block the process.
 * Rejects with the signal's reason.
 */
export async function* inTurns<Item>(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Item> {
  for (const [index, item] of items.entries()) {
    if (index % ITEMS_PER_TURN === ITEMS_PER_TURN - 1) {
      await new Promise((resolve) => setImmediate(resolve))
      signal.throwIfAborted()
    }
    yield item
  }
}
