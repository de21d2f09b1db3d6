/** Turns commander's errors into usage errors with a hint. */
import type { CommanderError } from 'commander'
import { type RushesError, usageError } from '../../errors.js'
import { nearest } from '../../protocol/nearest.js'
import { COMMANDS } from '../commands/index.js'
import { TOPICS, wordAfterHelp } from '../help/topics.js'
import { commandWord } from './globals.js'

export function usageOf({ code, message }: CommanderError, argv: readonly string[]): RushesError {
  if (code === 'commander.help') {
    const asked = wordAfterHelp(argv)
    if (asked !== undefined) return nothingToTell(asked)
    const name = commandWord(argv) ?? ''
    return usageError(`rushes ${name} needs a subcommand.`, `See rushes ${name} --help.`)
  }
  const said = message.replace(/^error: /, '').replace(/\n/g, ' ')
  const hint =
    code === 'commander.unknownOption'
      ? 'To begin a prompt with a dash, put -- before it. See --help for the flags.'
      : 'See --help.'
  return usageError(`${said.charAt(0).toUpperCase()}${said.slice(1)}.`.replace(/([.?)])\.$/, '$1'), hint)
}

function nothingToTell(word: string): RushesError {
  const names = [...COMMANDS, ...TOPICS].map(({ name }) => name)
  const near = nearest(word, names)
  return usageError(
    `There is no help about "${word}"${near === undefined ? '' : `; the nearest is ${near}`}.`,
    `The topics: ${TOPICS.map(({ name }) => name).join(', ')}. The commands: rushes --help.`,
  )
}
