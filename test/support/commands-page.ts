/**
 * Generates docs/commands.md from the help: for each command its examples, its description and its flags. The sentences
 * below that are written by hand, and stay.
 */
import type { Command, Help, Option } from 'commander'
import { globalOptions } from '../../src/cli/flags/globals.js'
import { HELP } from '../../src/cli/help/examples.js'
import { argumentWords, fullName } from '../../src/cli/help/format-help.js'
import { commandsUnder, everyCommand } from './project.js'

const COLUMNS = 120

/** Returns the page with new generated parts. `page`: the page with the sentences to keep. */
export async function commandsPage(page: string): Promise<string> {
  const [intro = '', ...rest] = page.split(/^(?=#+ rushes\b)/m)
  const kept = new Map(rest.map(handWritten))
  const shown: Shown = new Map()
  const commands = (await everyCommand()).filter((command) => !isHeadless(command))
  const sections = commands.map((command) => {
    const name = fullName(command)
    const heading = `${name.split(' ').length > 2 ? '###' : '##'} ${name}`
    const parts = [
      heading,
      exampleOf(command),
      descriptionOf(command),
      listOf(command, shown),
      kept.get(name) ?? '',
    ]
    return parts.filter((text) => text !== '').join('\n\n')
  })
  return `${intro}${sections.join('\n\n')}\n`
}

/** The command of a section, and its sentences that are not generated. */
function handWritten(section: string): readonly [name: string, prose: string] {
  const [, name = '', prose = ''] =
    /^#+ (.*)\n\n(?:```(?:sh|bash)\n[\s\S]*?^```\n\n)?(?:.+\n)+\n?(?:```text\n[\s\S]*?^```\n)?([\s\S]*)$/m.exec(
      section,
    ) ?? []
  return [name, prose.trim()]
}

const isGroup = (command: Command): boolean =>
  command.parent !== null && command.commands.length > 0 && command.registeredArguments.length === 0

/** A group inside a group, which has nothing to explain: its commands have a section each. */
const isHeadless = (command: Command): boolean =>
  isGroup(command) && command.parent?.parent !== null && HELP[fullName(command)]?.details === undefined

/** The example of the help. A group has none. */
function exampleOf(command: Command): string {
  if (isGroup(command)) return ''
  const shown = HELP[fullName(command)]?.example ?? ''
  return `\`\`\`${shown.includes('<(') ? 'bash' : 'sh'}\n${shown}\n\`\`\``
}

function descriptionOf(command: Command): string {
  const usage = `\`${[fullName(command), ...argumentWords(command)].join(' ')}\`: `
  const sentences = [command.description().replace(/\.?$/, '.'), HELP[fullName(command)]?.details].filter(
    Boolean,
  )
  const text = `${command.registeredArguments.length > 0 ? usage : ''}${sentences.join(' ')}`
  return helpOf(command).boxWrap(text, COLUMNS)
}

/** The first section with an argument or a flag, by term and description. */
type Shown = Map<string, string>

/** The arguments and flags. A line names the section of flags that an earlier section explains. */
function listOf(command: Command, shown: Shown): string {
  const name = fullName(command)
  const flags = (isGroup(command) ? sharedFlags(command) : ownFlags(command)).map(rowOf)
  const explained = new Map<string, string[]>()
  for (const row of flags) {
    const page = shown.get(keyOf(row))
    // The flags of a group hold for all its commands.
    if (page === undefined || name.startsWith(`${page} `)) continue
    const [flag = ''] = row[0].split(/[ ,]/)
    explained.set(page, [...(explained.get(page) ?? []), flag])
  }
  const words = command.registeredArguments
    .map((each): Row => [`<${each.name()}>`, each.description])
    .filter(([, about]) => about.split(' ').length > MAX_OBVIOUS_WORDS)
  const added = [...words, ...flags].filter((row) => !shown.has(keyOf(row)))
  for (const row of isGroup(command) ? flags : added) shown.set(keyOf(row), name)
  const width = Math.max(...added.map(([term]) => term.length))
  const lines = [
    ...added.map(([term, about]) => `${term.padEnd(width)}  ${about}`),
    ...[...explained].map(([page, names]) => `As in ${page}: ${names.join(', ')}`),
  ]
  return lines.length === 0 ? '' : `\`\`\`text\n${lines.join('\n')}\n\`\`\``
}

/** A shorter description of an argument, such as "Name of the account", repeats the name of the argument. */
const MAX_OBVIOUS_WORDS = 4

type Row = readonly [term: string, about: string]

const helpOf = (command: Command): Help => command.createHelp()
const keyOf = (row: Row): string => row.join(' ')
const rowOf = (option: Option): Row => [
  option.flags,
  option.description + (typeof option.defaultValue === 'string' ? ` (default: ${option.defaultValue})` : ''),
]

const GLOBALS: ReadonlySet<string> = new Set(globalOptions().map(({ flags }) => flags))

const ownFlags = (command: Command): readonly Option[] =>
  command.options.filter(({ flags }) => command.parent === null || !GLOBALS.has(flags))

/** The flags that all subcommands of a command have, except perhaps one: `rushes admin migrate` has others. */
function sharedFlags(command: Command): readonly Option[] {
  if (command.parent?.parent !== null) return []
  const leaves = commandsUnder(command).filter(({ commands }) => commands.length === 0)
  const all = leaves.map(ownFlags)
  const count = (option: Option) =>
    all.filter((flags) => flags.some((each) => keyOf(rowOf(each)) === keyOf(rowOf(option)))).length
  return leaves.length < 3 ? [] : (all[0] ?? []).filter((option) => count(option) >= leaves.length - 1)
}
