/**
 * The answer to a shell that asks what may come next: `rushes __complete <words before the cursor...> <word at it>`.
 * One line for each candidate, the value and what it is with a tab between; then one line that begins with a colon and
 * says whether the shell shall complete paths, and after which beginning. The scripts beside this file understand it,
 * nothing else does, and it may change with them.
 *
 * It is asked at every press of a key: it says nothing of errors, writes nothing, and needs neither key nor network.
 */
import type { Command, Option } from 'commander'
import { printable } from '../../protocol/text.js'
import { commandWord, globalsOf } from '../flags/globals.js'
import { TOPICS } from '../help/topics.js'
import { createProgram } from '../program.js'
import type { Env } from '../settings/table.js'
import { type Offer, sourceOfArgument, sourceOfOption } from './candidates.js'
import { type Spot, spotOf } from './line.js'
import { type Candidate, createKnown, type Known } from './local-names.js'

const NOTHING: Offer = { candidates: [] }

/** Ends in the line with the colon, whatever happens. */
export async function completion(line: readonly string[], env: Env): Promise<string> {
  try {
    const words = line.slice(0, -1)
    const program = await createProgram(commandWord(words), { run: async () => {}, print: () => {} })
    const spot = spotOf(program, words, line.at(-1) ?? '')
    return textOf(spot, await offerAt(spot, createKnown(env, globalsAt(spot))))
  } catch {
    return textOf({ lead: '', stem: '' }, NOTHING)
  }
}

async function offerAt(spot: Spot, known: Known): Promise<Offer> {
  const { wants, command, path } = spot
  switch (wants.kind) {
    case 'flag':
      return { candidates: flagsOf(spot) }
    case 'command':
      return { candidates: commandsOf(command) }
    case 'topic':
      return {
        candidates: [...commandsOf(command), ...TOPICS.map(({ name, about }) => ({ value: name, about }))],
      }
    case 'value':
      return (await sourceOfOption(path, wants.option)?.(spot, known)) ?? NOTHING
    case 'argument':
      return (await sourceOfArgument(path, wants.argument)?.(spot, known)) ?? NOTHING
    case 'nothing':
      return NOTHING
  }
}

const commandsOf = (command: Command): readonly Candidate[] =>
  command
    .createHelp()
    .visibleCommands(command)
    // The help of a group is asked for by a flag as well.
    .filter((child) => command.parent === null || child.name() !== 'help')
    .map((child) => ({ value: child.name(), about: child.description() }))

/** What was given counts once more only where it may be repeated. */
function flagsOf({ command, given, stem }: Spot): readonly Candidate[] {
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

const globalsAt = ({ given }: Spot) =>
  globalsOf(Object.fromEntries([...given].map(([option, value]) => [option.attributeName(), value])))

function textOf({ lead, stem }: Pick<Spot, 'lead' | 'stem'>, { candidates, paths }: Offer): string {
  const lines = candidates
    .filter(({ value }) => value.startsWith(stem))
    .map(({ value, about }) => `${lead}${value}\t${printable(about)}\n`)
  return `${lines.join('')}:${paths === undefined ? 'none' : `${paths.of} ${lead}${paths.lead}`}\n`
}
