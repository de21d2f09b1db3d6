/** A flag or an argument with a list of allowed values, which completion and help show too. */
import { Argument, Option } from 'commander'
import { usageError } from '../../errors.js'
import { didYouMean } from '../help/find-command.js'

/** `bash, zsh or fish`. */
export const orList = (values: readonly string[]): string =>
  values.length < 2 ? values.join('') : `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`

const oneOf =
  (what: string, values: readonly string[]) =>
  (value: string): string => {
    if (values.includes(value)) return value
    throw usageError(`Unknown ${what} "${value}".${didYouMean(value, values)} Use ${orList(values)}.`)
  }

export const choiceOption = (flags: string, about: string, values: readonly string[]): Option => {
  const [, name = ''] = /--([\w-]+)/.exec(flags) ?? []
  return new Option(flags, about).choices(values).argParser(oneOf(name.replaceAll('-', ' '), values))
}

export const choiceArgument = (name: string, about: string, values: readonly string[]): Argument =>
  new Argument(name, about).choices(values).argParser(oneOf(name.replace(/[<>[\]]/g, ''), values))
