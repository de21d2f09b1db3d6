/** Words the errors of a line that does not parse. */
import type { Command, CommanderError } from 'commander'
import { type RushesError, usageError } from '../../errors.js'
import { quoteWord } from '../../host/shell.js'
import { KINDS } from '../../protocol/models.js'
import { capitalized, nearest, orList } from '../../protocol/text.js'
import { argumentWords, fullName, seeHelp } from './format-help.js'

/** `words`: from the unknown one on. */
export function unknownCommand(command: Command, words: readonly string[]): RushesError {
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

/** The model of a `run` line, for hints. */
interface NamedModel {
  readonly name: string
  /** Whether its document is known. */
  readonly isKnown: boolean
}

/**
 * Turns an error of commander into a usage error with the problem and the help to read. `command`: the command of the
 * parsed line.
 */
export function usageOf({ code, message }: CommanderError, command: Command): RushesError {
  const [first = ''] = message.replace(/^error: /, '').split('\n')
  // commander quotes the typed word with single quotes.
  const [, word = ''] = /'(.*?)'(?: |$)/.exec(first) ?? []
  const help = seeHelp(command)
  const usage = `Usage: \`${[fullName(command), ...argumentWords(command)].join(' ')}\`. ${help}`
  switch (code) {
    case 'commander.help':
      return usageError(
        `\`${fullName(command)}\` needs a subcommand: ${orList(command.commands.map((each) => each.name()))}.`,
        help,
      )
    case 'commander.unknownOption':
      return unknownFlag(word, command)
    case 'commander.missingArgument':
      return usageError(`Missing argument <${word}>.`, usage)
    case 'commander.optionMissingArgument':
      return usageError(`${word.replace(/^-\w, /, '')}: the value is missing.`, help)
    case 'commander.excessArguments':
      return usageError('Too many arguments.', usage)
    default:
      return usageError(`${capitalized(first)}.`.replace(/([.?)])\.$/, '$1'), help)
  }
}

const PROMPT_HINT = 'If this is part of your prompt, put it after `--`.'

/** `typed`: may have a value, as in `--flag=value`. `model`: of the line, if its flags were read. */
export function unknownFlag(typed: string, command: Command, model?: NamedModel): RushesError {
  const [flag = ''] = typed.split('=')
  const help = seeHelp(command)
  const options = [...command.options, ...command.createHelp().visibleOptions(command)]
  const known = options.find(({ long, short }) => flag === long || flag === short)
  if (known !== undefined)
    return usageError(
      known.required ? `${flag} must be written after \`${fullName(command)}\`.` : `${flag} takes no value.`,
      help,
    )
  const unknown = `Unknown flag ${flag}.`
  const suggestion = nearest(
    flag,
    options.flatMap(({ long }) => long ?? []),
  )
  if (suggestion !== undefined) return usageError(`${unknown} Did you mean ${suggestion}?`, help)
  if (model?.isKnown === true)
    return usageError(
      `${unknown} ${model.name} does not have it.`,
      `See \`rushes models ${model.name}${command.optsWithGlobals().local === true ? ' --local' : ''}\`. ${PROMPT_HINT}`,
    )
  if (model !== undefined)
    return usageError(
      `${unknown} The parameters of ${model.name} are not known here.`,
      '`rushes models --refresh` asks the service. Or add them with `rushes models add <file>`, ' +
        `or set them with --input. ${PROMPT_HINT}`,
    )
  const takesPrompt = command.registeredArguments.some((each) => each.name() === 'prompt')
  return usageError(unknown, takesPrompt ? `${PROMPT_HINT} ${help}` : help)
}
