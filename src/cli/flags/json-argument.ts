/** Reads a JSON object from an argument: its text, `@file`, or `-` for standard input. */
import { messageOf, usageError } from '../../errors.js'
import { readJson } from '../../protocol/json.js'
import { findInexact } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { decodeUtf8, readPath, readStdin } from '../process/io.js'
import type { Terminal } from '../terminal/output.js'

/** For messages: the name of the flag or setting, and the forms of its value. */
type Words = Readonly<Record<'name' | 'hint', string>>

/** Rejects with `usage`, also for a number that would lose digits. */
export async function readJsonArgument(
  ctx: Terminal,
  text: string,
  { name, hint }: Words,
): Promise<Readonly<Record<string, unknown>>> {
  const shownName = text.startsWith('@') ? text.slice(1) : name
  const bytes = await bytesOf(ctx, text, { name, hint })
  const json = bytes === undefined ? text : decodeUtf8(bytes)
  if (json === undefined) throw usageError(`${shownName} is not UTF-8 text.`, hint)
  const value = readObject(json.replace(/^\ufeff/, ''), shownName, hint)
  const inexact = findInexact(value)
  if (inexact !== undefined)
    throw usageError(
      `${shownName}: ${inexact.join('.')} cannot be sent without a change: it is too large, or has too many digits.`,
      hint,
    )
  return value
}

function readObject(text: string, name: string, hint: string): Readonly<Record<string, unknown>> {
  let value: unknown
  try {
    value = readJson(text)
  } catch (error) {
    throw usageError(`${name} is not valid JSON: ${messageOf(error)}.`, hint)
  }
  if (!isObject(value)) throw usageError(`${name} is not a JSON object.`, hint)
  if (isDeeper(value, MAX_DEPTH))
    throw usageError(`${name} is nested more than ${MAX_DEPTH} levels deep.`, hint)
  return value
}

/** Maximum nesting. Deeper values would overflow the stack of recursive functions. */
const MAX_DEPTH = 500

const isDeeper = (value: unknown, levels: number): boolean =>
  typeof value === 'object' &&
  value !== null &&
  (levels === 0 || Object.values(value).some((each) => isDeeper(each, levels - 1)))

/** Returns the bytes of a file or of standard input; undefined if the argument is the JSON itself. */
async function bytesOf(
  { stdin, interrupts }: Terminal,
  text: string,
  { name, hint }: Words,
): Promise<Uint8Array | undefined> {
  if (text === '-') return readStdin(stdin, name, interrupts.first)
  if (!text.startsWith('@')) return undefined
  return readPath(text.slice(1), { signal: interrupts.first, hint })
}
