/**
 * Answers the shell scripts: `rushes __complete <words before the cursor...> <word at the cursor>`. Prints one line for
 * each candidate, value and description separated by a tab, then a line with a colon that says whether the shell shall
 * complete paths, and after which prefix. Only the scripts in this folder read this format; it may change with them.
 *
 * Runs at every Tab: prints no errors, writes nothing, and needs neither key nor network.
 */
import type { Command, Option } from 'commander'
import { printable } from '../../protocol/text.js'
import { commandWord, globalsOf } from '../flags/globals.js'
import { TOPICS } from '../help/topics.js'
import type { Env } from '../process/io.js'
import { createProgram } from '../program.js'
import { type Suggestions, sourceOfArgument, sourceOfOption } from './candidates.js'
import { type Cursor, cursorOf } from './cursor.js'
import { type Candidate, createLocalNames, type LocalNames } from './local-names.js'

const NOTHING: Suggestions = { candidates: [] }

/** Always ends with the line that begins with a colon. */
export async function completeLine(line: readonly string[], env: Env): Promise<string> {
  try {
    const words = line.slice(0, -1)
    const program = await createProgram(commandWord(words), { run: async () => {}, print: () => {} })
    const cursor = cursorOf(program, words, line.at(-1) ?? '')
    return textOf(cursor, await suggestionsAt(cursor, createLocalNames(env, globalsAt(cursor))))
  } catch {
    return textOf({ lead: '', stem: '' }, NOTHING)
  }
}

async function suggestionsAt(cursor: Cursor, known: LocalNames): Promise<Suggestions> {
  const { wants, command, path } = cursor
  switch (wants.kind) {
    case 'flag':
      return { candidates: flagsOf(cursor) }
    case 'command':
      return { candidates: commandsOf(command) }
    case 'topic':
      return {
        candidates: [...commandsOf(command), ...TOPICS.map(({ name, about }) => ({ value: name, about }))],
      }
    case 'value':
      return (await sourceOfOption(path, wants.option)?.(cursor, known)) ?? NOTHING
    case 'argument':
      return (await sourceOfArgument(path, wants.argument)?.(cursor, known)) ?? NOTHING
    case 'nothing':
      return NOTHING
  }
}

const commandsOf = (command: Command): readonly Candidate[] =>
  command
    .createHelp()
    .visibleCommands(command)
    // Groups have --help; their `help` subcommand would only repeat it.
    .filter((child) => command.parent === null || child.name() !== 'help')
    .map((child) => ({ value: child.name(), about: child.description() }))

/** Flags that are not on the line yet, and those that may be repeated. */
function flagsOf({ command, given, stem }: Cursor): readonly Candidate[] {
  const free = command
    .createHelp()
    .visibleOptions(command)
    .filter((option) => !given.has(option) || isRepeatable(option))
  return free.flatMap(({ long, short, description }) =>
    [long, stem === '-' || stem === short ? short : undefined].flatMap((value) =>
      value ? [{ value, about: description }] : [],
    ),
  )
}

export const isRepeatable = ({ parseArg, argChoices }: Option): boolean =>
  parseArg !== undefined && argChoices === undefined

const globalsAt = ({ given }: Cursor) =>
  globalsOf(Object.fromEntries([...given].map(([option, value]) => [option.attributeName(), value])))

function textOf({ lead, stem }: Pick<Cursor, 'lead' | 'stem'>, { candidates, paths }: Suggestions): string {
  const lines = candidates
    .filter(({ value }) => value.startsWith(stem))
    .map(({ value, about }) => `${lead}${value}\t${printable(about)}\n`)
  return `${lines.join('')}:${paths === undefined ? 'none' : `${paths.of} ${lead}${paths.lead}`}\n`
}
