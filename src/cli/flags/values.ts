/** Values of flags and arguments: choices, repeated values, whole numbers, labels, JSON. */
import { Argument, Option } from 'commander'
import { messageOf, usageError } from '../../errors.js'
import { readJson } from '../../protocol/json.js'
import { findInexact } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import { asLabel, didYouMean, labelProblem, MAX_LABELS, orList } from '../../protocol/text.js'
import { decodeUtf8, readPath, readStdin } from '../process/io.js'
import type { Terminal } from '../terminal/output.js'

/** `form`: of a flag or an argument, such as `--kind <kind>`. */
const oneOf =
  (form: string, values: readonly string[]) =>
  (value: string): string => {
    if (values.includes(value)) return value
    const [, what = ''] = /<(.*)>/.exec(form) ?? []
    throw usageError(`Unknown ${what} "${value}".${didYouMean(value, values)} Use ${orList(values)}.`)
  }

/** Creates an option with a closed list of values, which the help and the completion show. */
export const choiceOption = (flags: string, about: string, values: readonly string[]): Option =>
  new Option(flags, about).choices(values).argParser(oneOf(flags, values))

export const choiceArgument = (name: string, about: string, values: readonly string[]): Argument =>
  new Argument(name, about).choices(values).argParser(oneOf(name, values))

/**
 * Collects the values of a repeatable flag. Passed to commander's `argParser`. `before` can be an inherited function
 * when a parameter has a name such as `to_string`.
 */
export const repeated = (value: string, before?: unknown): readonly string[] => [
  ...(Array.isArray(before) ? (before as readonly string[]) : []),
  value,
]

/** Refuses a second value of a flag: one of two files would not be sent. */
export const onlyOne =
  (flags: string) =>
  (value: string, before?: unknown): string => {
    if (typeof before !== 'string') return value
    throw usageError(`${flags} takes only one value, not both "${before}" and "${value}".`)
  }

/**
 * Parses a whole number within the bounds. Otherwise throws `usage`; `what` is the name of the flag or argument in the
 * message.
 */
export function wholeNumber(text: string, what: string, min: number, max: number): number {
  const number = /^-?\d+$/.test(text) ? Number(text) : Number.NaN
  if (number >= min && number <= max) return number
  throw usageError(`${what}: "${text}" is not a whole number from ${min} to ${max}.`)
}

/** `--label`: labels the runs that a command creates, or selects the runs with all of the labels. */
export const labelOption = (about: string): Option => new Option('--label <text>', about).argParser(repeated)

/** `--label` of a command that selects runs. */
export const labelFilter = (): Option =>
  labelOption('Only runs with this label (repeatable: runs with all of them)')

/** Returns the labels without duplicates. Throws `usage`. */
export function labelsOf(texts: readonly string[] = [], what = '--label'): readonly string[] {
  const labels = [...new Set(texts.map(asLabel))]
  for (const label of labels) {
    const problem = labelProblem(label)
    if (problem !== undefined) throw usageError(`${what}: ${problem}.`, 'Example: --label "spring campaign".')
  }
  if (labels.length > MAX_LABELS) throw usageError(`${what}: at most ${MAX_LABELS} labels are allowed.`)
  return labels
}

/** For messages: the name of the flag or setting, and the forms of its value. */
type Words = Readonly<Record<'name' | 'hint', string>>

/**
 * Reads a JSON object from an argument: its text, `@file`, or `-` for standard input. Rejects with `usage`, also for a
 * number that would lose digits.
 */
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
