/** A flag or an argument with a list of allowed values, which completion and help show too. */
import { Argument, InvalidArgumentError, Option } from 'commander'
import { nearest } from '../../protocol/nearest.js'

/** The message follows commander's own sentence about the value. */
const oneOf =
  (values: readonly string[]) =>
  (value: string): string => {
    if (values.includes(value)) return value
    const near = nearest(value, values)
    throw new InvalidArgumentError(
      `It must be one of ${values.join(', ')}${near === undefined ? '' : ` (nearest: ${near})`}.`,
    )
  }

export const choiceOption = (flags: string, about: string, values: readonly string[]): Option =>
  new Option(flags, about).choices(values).argParser(oneOf(values))

export const choiceArgument = (name: string, about: string, values: readonly string[]): Argument =>
  new Argument(name, about).choices(values).argParser(oneOf(values))
