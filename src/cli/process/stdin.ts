/** Standard input has one reader per command. If it is empty, the left side of the pipe probably failed. */
import { usageError } from '../../errors.js'
import { raceAbort } from '../../host/abort.js'
import { isRunId } from '../../protocol/id.js'
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
  const bytes = await raceAbort(readAll(stdin()), signal)
  if (bytes.toString('latin1').trim() === '')
    throw usageError(
      `Standard input is empty: ${what} expected, nothing was sent.`,
      'Did the command on the left side of the pipe fail?',
    )
  return bytes
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
export function checkIds(ids: readonly string[]): readonly string[] {
  const wrong = ids.find((id) => !isRunId(id))
  if (wrong !== undefined)
    throw usageError(
      `"${wrong}" is not a valid run id.`,
      'An id has 1 to 256 characters and no control characters.',
    )
  return ids
}
