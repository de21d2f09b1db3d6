/** Finds the command that a line names. */
import type { Command } from 'commander'
import { type RushesError, usageError } from '../../errors.js'
import { quoteWord } from '../../host/shell.js'
import { KINDS } from '../../protocol/models.js'
import { nearest } from '../../protocol/text.js'
import { fullName, seeHelp } from './format-help.js'

interface NamedCommand {
  readonly command: Command
  /** Number of words up to the last one that names it. */
  readonly end: number
}

/**
 * Finds the command that the line names. Words after a command without subcommands are its arguments. Throws `usage` for
 * an unknown command.
 */
export function findCommand(program: Command, argv: readonly string[]): NamedCommand {
  let command = program
  let end = 0
  for (let at = 0; at < argv.length && command.commands.length > 0; at++) {
    const word = argv[at] ?? ''
    if (word.startsWith('-') && word !== '-') {
      if (takesValue(command, word)) at++
      continue
    }
    // In `rushes config help set`, commander itself handles `help`.
    if (word === 'help' && command !== program) continue
    const child = command.commands.find((each) => each.name() === word)
    if (child === undefined && command.registeredArguments.length > 0) break
    if (child === undefined)
      throw unknownCommand(
        command,
        argv.slice(at).filter((each) => !each.startsWith('-')),
      )
    command = child
    end = at + 1
  }
  return { command, end }
}

/** Whether the next word is the value of the flag. */
const takesValue = (command: Command, flag: string): boolean =>
  command.options.some(({ long, short, required }) => required && (flag === long || flag === short)) ||
  command.commands.some((child) => takesValue(child, flag))

function unknownCommand(command: Command, words: readonly string[]): RushesError {
  const [word = ''] = words
  const typed = command.parent === null ? word : `${fullName(command)} ${word}`
  const meant = meantBy(command, words)
  const suggestion = meant === undefined ? '' : ` Did you mean \`${meant}\`?`
  return usageError(`Unknown command "${typed}".${suggestion}`, seeHelp(command))
}

/** Commands by the words that other programs have for them. */
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ...[...KINDS, 'model'].map((word) => [word, `run ${word}`] as const),
  ...Object.entries({ ls: 'list', logs: 'status', delete: 'forget', whoami: 'doctor' }),
])

/** The command that was probably meant. `words`: from the unknown one on. */
function meantBy(command: Command, [word = '', ...more]: readonly string[]): string | undefined {
  const name = fullName(command)
  const other = command.parent === null ? OTHER_NAMES.get(word) : undefined
  if (other !== undefined)
    return [name, other, ...(other.startsWith('run ') ? more.map(quoted) : [])].join(' ')
  const near = nearest(
    word,
    command.commands.map((child) => child.name()),
  )
  if (near !== undefined) return `${name} ${near}`
  return name === 'rushes run' ? [name, 'image', ...[word, ...more].map(quoted)].join(' ') : undefined
}

/** In double quotes where they are enough, as in the examples. */
const quoted = (word: string): string =>
  /^[\w ,.'-]* [\w ,.'-]*$/.test(word) ? `"${word}"` : quoteWord(word)
