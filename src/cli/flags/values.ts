/** Values of flags and arguments: choices, repeated values, whole numbers, labels. */
import { Argument, Option } from 'commander'
import { usageError } from '../../errors.js'
import { asLabel, didYouMean, labelProblem, MAX_LABELS } from '../../protocol/text.js'

/** Joins values for a sentence: `bash, zsh or fish`. */
export const orList = (values: readonly string[]): string =>
  values.length < 2 ? values.join('') : `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`

const oneOf =
  (what: string, values: readonly string[]) =>
  (value: string): string => {
    if (values.includes(value)) return value
    throw usageError(`Unknown ${what} "${value}".${didYouMean(value, values)} Use ${orList(values)}.`)
  }

/** Creates an option with a closed list of values, which the help and the completion show. */
export const choiceOption = (flags: string, about: string, values: readonly string[]): Option => {
  const [, name = ''] = /--(?:by <)?([\w-]+)/.exec(flags) ?? []
  return new Option(flags, about).choices(values).argParser(oneOf(name.replaceAll('-', ' '), values))
}

export const choiceArgument = (name: string, about: string, values: readonly string[]): Argument =>
  new Argument(name, about).choices(values).argParser(oneOf(name.replace(/[<>[\]]/g, ''), values))

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
