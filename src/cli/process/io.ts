/** The streams and the environment of the process, as `main` gets them; and reading standard input, once per command. */
import { createReadStream } from 'node:fs'
import type { Readable, Writable } from 'node:stream'
import { type RushesError, usageError } from '../../errors.js'
import { raceAbort } from '../../host/abort.js'
import { openReadable } from '../../host/first-line.js'
import { checkRunId } from '../../protocol/id.js'
import { MAX_BODY_BYTES } from '../../protocol/limits.js'

export type Env = Readonly<Record<string, string | undefined>>

export interface OutputStream extends Writable {
  readonly isTTY?: boolean
  /** Of a terminal. */
  readonly columns?: number
}

export interface InputStream extends Readable {
  readonly isTTY?: boolean
}

/** Opens standard input. Only a command that reads it does so: an open terminal or pipe would keep the process alive. */
export type Stdin = () => InputStream

export interface Io {
  /** The words after `rushes`. */
  readonly argv: readonly string[]
  readonly env: Env
  readonly stdin: Stdin
  readonly stdout: OutputStream
  readonly stderr: OutputStream
}

/**
 * Reads at most as much as a request can have. Throws `usage` for an endless stream (`yes |`) before it fills the memory;
 * `name` is what the message calls it.
 */
async function readAll(stream: Readable, name: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream) {
    chunks.push(Buffer.from(chunk as Uint8Array))
    bytes += chunks.at(-1)?.byteLength ?? 0
    if (bytes > MAX_BODY_BYTES)
      throw usageError(
        `${name} is too large; the limit is ${MAX_BODY_BYTES / 1024 / 1024} MiB. Nothing was sent.`,
        'Check where it comes from: it may never end.',
      )
  }
  return Buffer.concat(chunks)
}

/** Throws `usage` when two arguments of a command read standard input. */
export function checkStdinUsers(users: readonly (string | undefined)[]): void {
  const readers = users.filter((user) => user !== undefined)
  if (readers.length > 1)
    throw usageError(
      `${readers.join(' and ')} cannot both read standard input.`,
      'Use a file for one of them.',
    )
}

/** All of standard input. Throws `usage` when it is empty; `what` names its purpose. */
export async function readStdin(stdin: Stdin, what: string, signal: AbortSignal): Promise<Buffer> {
  // Reading cannot be stopped; waiting for it can.
  const bytes = await raceAbort(readAll(stdin(), 'Standard input'), signal)
  if (bytes.toString('latin1').trim() === '') throw emptyStdin(what)
  return bytes
}

export const emptyStdin = (what: string): RushesError =>
  usageError(
    `Standard input is empty; expected ${what}. Nothing was sent.`,
    'Did the command on the left side of the pipe fail?',
  )

/** All of a file, which can be a pipe (`<(…)`) or a device. Throws `usage` when it is too large, and the system's errors. */
export async function readPath(path: string, signal: AbortSignal): Promise<Buffer> {
  const stream = (await openReadable(path)) ?? createReadStream(path)
  return raceAbort(readAll(stream, path), signal)
}

/** Without a byte order mark. Undefined for bytes that are not UTF-8, which would be sent as other characters. */
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

/** Ids as arguments, where `-` means those on standard input, one per line. Throws `usage`. */
export async function readIds(
  words: readonly string[],
  stdin: Stdin,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const users = words.filter((word) => word === '-')
  checkStdinUsers(users.map(() => 'The id -'))
  const read = users.length === 0 ? [] : linesOf((await readStdin(stdin, 'the ids', signal)).toString('utf8'))
  return [...new Set(words.flatMap((word) => (word === '-' ? read : [word])))]
}

/** Throws `usage` for an invalid id, before any request. */
export const checkIds = (ids: readonly string[]): readonly string[] => ids.map(checkRunId)
