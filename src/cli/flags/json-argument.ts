/** Reads a JSON object from an argument: its text, `@file`, or `-` for standard input. */
import { parseJsonText } from '../../batch/manifest/json.js'
import { lostDigitsIn, plainValue } from '../../batch/manifest/nodes.js'
import { usageError } from '../../errors.js'
import { isObject } from '../../protocol/parse.js'
import type { Context } from '../context/context.js'
import { decodeUtf8, readPath, readStdin } from '../process/io.js'

/** Maximum nesting. Deeper values would overflow the stack of recursive functions. */
const MAX_DEPTH = 500

/** For messages: the name of the flag or setting, and the forms of its value. */
type Words = Readonly<Record<'name' | 'hint', string>>

/** Rejects with `usage` and all problems with their positions. A number that would lose digits is a problem. */
export async function readJsonArgument(
  ctx: Context,
  text: string,
  { name, hint }: Words,
): Promise<Readonly<Record<string, unknown>>> {
  const shownName = text.startsWith('@') ? text.slice(1) : name
  const bytes = await bytesOf(ctx, text, { name, hint })
  const json = bytes === undefined ? text : decodeUtf8(bytes)
  if (json === undefined) throw usageError(`${shownName} is not UTF-8 text.`, hint)
  const problems: string[] = []
  const node = parseJsonText(
    // Some Windows editors add a byte order mark.
    json.replace(/^\ufeff/, ''),
    ({ line, column }, message) => problems.push(`${message} (line ${line}, column ${column})`),
    MAX_DEPTH,
  )
  for (const { line, column, message } of node === undefined ? [] : lostDigitsIn(node))
    problems.push(`${message} (line ${line}, column ${column})`)
  if (problems.length > 0) throw usageError(`${shownName}: ${problems.join('; ')}.`, hint)
  const value = node === undefined ? undefined : plainValue(node)
  if (!isObject(value)) throw usageError(`${name} is not a JSON object.`, hint)
  return value
}

/** Returns the bytes of a file or of standard input; undefined if the argument is the JSON itself. */
async function bytesOf(
  { stdin, interrupts }: Context,
  text: string,
  { name, hint }: Words,
): Promise<Uint8Array | undefined> {
  if (text === '-') return readStdin(stdin, name, interrupts.first)
  if (!text.startsWith('@')) return undefined
  return readPath(text.slice(1), { signal: interrupts.first, hint })
}
