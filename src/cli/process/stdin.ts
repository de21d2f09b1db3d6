/** Standard input has one reader per command. If it is empty, the left side of the pipe probably failed. */
import { createReadStream } from 'node:fs'
import { type RushesError, usageError } from '../../errors.js'
import { raceAbort } from '../../host/abort.js'
import { openReadable } from '../../host/first-line.js'
import { checkRunId } from '../../protocol/id.js'
import { readAll, type Stdin } from './io.js'

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
