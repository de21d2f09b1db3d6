/** Finds a command of the program by its words, and says what is wrong with words that name none. */
import type { Command } from 'commander'
import { type RushesError, usageError } from '../../errors.js'
import { nearest } from '../../protocol/nearest.js'

/** `rushes run image`. */
export const fullName = (command: Command): string =>
  command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`

/** `<key> <value>`. */
export const argumentWords = ({ registeredArguments }: Command): readonly string[] =>
  registeredArguments.map((each) => {
    const name = each.variadic ? `${each.name()}...` : each.name()
    return each.required ? `<${name}>` : `[${name}]`
  })

export const seeHelp = (command: Command): string => `See \`${fullName(command)} --help\`.`

export const didYouMean = (word: string, candidates: readonly string[]): string => {
  const near = nearest(word, candidates)
  return near === undefined ? '' : ` Did you mean "${near}"?`
}

/**
 * The command that the words lead to. Words after a command without subcommands are its arguments. Throws `usage` for an
 * unknown command; `others` are further words that are valid in the first place, for the suggestion.
 */
export function findCommand(
  program: Command,
  words: readonly string[],
  others: readonly string[] = [],
): Command {
  let command = program
  for (const word of words) {
    if (command.commands.length === 0) break
    // `rushes config help set`, which commander answers.
    if (word === 'help' && command !== program) continue
    const child = command.commands.find((each) => each.name() === word)
    if (child === undefined) throw unknownCommand(command, word, others)
    command = child
  }
  return command
}

function unknownCommand(command: Command, word: string, others: readonly string[]): RushesError {
  const names = command.commands.map((child) => child.name())
  if (command.parent !== null)
    return usageError(
      `Unknown command "${fullName(command)} ${word}".${didYouMean(word, names)}`,
      `Subcommands: ${names.join(', ')}. ${seeHelp(command)}`,
    )
  return usageError(
    `Unknown command${others.length === 0 ? '' : ' or topic'} "${word}".${didYouMean(word, [...names, ...others])}`,
    `Commands: ${names.join(', ')}.${others.length === 0 ? '' : ` Topics: ${others.join(', ')}.`} ${seeHelp(command)}`,
  )
}
