/**
 * Formats the help pages, which all have the same sections in the same order. Also lists the help topics that are not
 * commands.
 */
import type { Command, Help, Option } from 'commander'
import { UNCOMMON } from '../flags/values.js'
import { DETAILS } from './details.js'
import { EXAMPLES } from './examples.js'
import { argumentWords, fullName } from './find-command.js'

/** Names of the topics, and what each is about. */
export const TOPICS = {
  'exit-codes': 'Exit codes and what to do about each',
  environment: 'Settings, environment variables and the API key',
  scripting: 'Output formats and recipes for scripts',
  agents: 'A short reference for language models',
} as const

export const GLOBAL_OPTIONS = 'Global options:'

const UNCOMMON_GROUPS: readonly string[] = Object.values(UNCOMMON)
/** Groups of a command's own options, in the order of the page. */
const GROUPS = [
  ...['Selection options:', 'Model options:', 'Run options:', 'Result options:', 'Options:'],
  ...UNCOMMON_GROUPS,
]

/** Returns the configuration for commander's `configureHelp`. */
export const helpFormat = ({ showsAll }: { readonly showsAll: boolean }): Partial<Help> => ({
  formatHelp: (command, help) => formatHelp(command, help, showsAll),
  // Only the command on the line is loaded, so the other commands have no arguments to show.
  subcommandTerm: (command) =>
    [command.name(), ...(command.parent?.parent == null ? [] : argumentWords(command))].join(' '),
  optionDescription: ({ description, defaultValue }) =>
    typeof defaultValue === 'string' ? `${description} (default: ${defaultValue})` : description,
})

type Row = readonly [term: string, about: string]
type Section = readonly [title: string, rows: readonly Row[]]

function formatHelp(command: Command, help: Help, showsAll: boolean): string {
  const isProgram = command.parent === null
  const optionRow = (option: Option): Row => [help.optionTerm(option), help.optionDescription(option)]
  const commandRow = (each: Command): Row => [help.subcommandTerm(each), help.subcommandDescription(each)]
  const groups = help.groupItems(
    [],
    help.visibleOptions(command),
    (each) => each.helpGroupHeading ?? 'Options:',
  )
  const globals = groups.get(GLOBAL_OPTIONS) ?? []
  groups.delete(GLOBAL_OPTIONS)
  const options = [...groups]
    .sort(([a], [b]) => GROUPS.indexOf(a) - GROUPS.indexOf(b))
    .map(([title, items]): Section => [title, items.map(optionRow)])
  const isHidden = ([title]: Section) => !showsAll && UNCOMMON_GROUPS.includes(title)
  const commands = help.groupItems(
    [],
    // `rushes help` is in the title of the topics. `rushes config help` only repeats `rushes config --help`.
    help.visibleCommands(command).filter((each) => each.name() !== 'help'),
    (each) => each.helpGroup() || 'Commands:',
  )
  const sections: readonly Section[] = [
    [
      'Arguments:',
      help.visibleArguments(command).map((each) => [help.argumentTerm(each), help.argumentDescription(each)]),
    ],
    ...options.filter((section) => !isHidden(section)),
    ...[...commands].map(([title, items]): Section => [title, items.map(commandRow)]),
    ['Help topics (rushes help <topic>):', isProgram ? Object.entries(TOPICS) : []],
    [GLOBAL_OPTIONS, isProgram ? globals.map(optionRow) : []],
  ]
  const hidden = options.filter(isHidden)
  const wrap = (text: string) => help.boxWrap(text, help.helpWidth ?? 80)
  const termWidth = Math.max(...sections.flatMap(([, rows]) => rows.map(([term]) => term.length)))
  const notes = [
    ...(hidden.length > 0 ? [hiddenLine(command, hidden)] : []),
    ...(isProgram ? [] : [globalLine(globals)]),
  ]
  return [
    `Usage: ${help.commandUsage(command)}`,
    ...[help.commandDescription(command), DETAILS[fullName(command)] ?? []].flat().map(wrap),
    ...sections
      .filter(([, rows]) => rows.length > 0)
      .map(([title, rows]) =>
        [title, ...rows.map(([term, about]) => help.formatItem(term, termWidth, about, help))].join('\n'),
      ),
    ...notes.map(wrap),
    ['Examples:', ...exampleRows(EXAMPLES[fullName(command)] ?? [])].join('\n'),
  ]
    .map((text) => `${text}\n`)
    .join('\n')
}

/** Names the groups that only `--all` shows. */
function hiddenLine(command: Command, hidden: readonly Section[]): string {
  const names = hidden.map(([title]) => title.replace(' options:', '').toLowerCase())
  const count = hidden.flatMap(([, rows]) => rows).length
  return `${count} more options (${names.join(', ')}): ${fullName(command)} --help --all`
}

const globalLine = (globals: readonly Option[]): string =>
  `${GLOBAL_OPTIONS} ${globals
    .filter(({ long }) => long !== '--help')
    .map(({ short, long }) => short ?? long)
    .join(', ')}`

function exampleRows(examples: (typeof EXAMPLES)[string]): readonly string[] {
  const widest = Math.max(...examples.map(([line, about]) => (about === undefined ? 0 : line.length)))
  return examples.map(([line, about]) =>
    about === undefined ? `  ${line}` : `  ${line.padEnd(widest)}   # ${about}`,
  )
}
