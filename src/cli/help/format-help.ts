/** Formats the help pages, which all have the same sections in the same order. */
import type { Command, Help, Option } from 'commander'
import { HELP } from './examples.js'

export const GLOBAL_OPTIONS = 'Global options:'

/** The command with its parents, for example `rushes run image`. */
export const fullName = (command: Command): string =>
  command.parent === null ? command.name() : `${fullName(command.parent)} ${command.name()}`

/** The hint of a usage error. */
export const seeHelp = (command: Command): string => `See \`${fullName(command)} --help\`.`

/** The arguments as the help shows them, for example `<key>` and `<value>`. */
export const argumentWords = ({ registeredArguments }: Command): readonly string[] =>
  registeredArguments.map((each) => {
    const name = each.variadic ? `${each.name()}...` : each.name()
    return each.required ? `<${name}>` : `[${name}]`
  })

/** The configuration for commander's `configureHelp`. */
export const HELP_FORMAT: Partial<Help> = {
  formatHelp,
  // A terminal of 60 columns leaves about 30 beside the flags of `run`; commander's default is 40.
  minWidthToWrap: 20,
  // Only the command on the line is loaded, so the other commands have no arguments to show.
  subcommandTerm: (command) =>
    [command.name(), ...(command.parent?.parent == null ? [] : argumentWords(command))].join(' '),
  optionDescription: ({ description, defaultValue }) =>
    typeof defaultValue === 'string' ? `${description} (default: ${defaultValue})` : description,
}

type Row = readonly [term: string, about: string]
type Section = readonly [title: string, rows: readonly Row[]]

function formatHelp(command: Command, help: Help): string {
  const isProgram = command.parent === null
  const optionRow = (option: Option): Row => [help.optionTerm(option), help.optionDescription(option)]
  const commandRow = (each: Command): Row => [help.subcommandTerm(each), help.subcommandDescription(each)]
  const isGlobal = ({ helpGroupHeading }: Option) => helpGroupHeading === GLOBAL_OPTIONS
  const options = help.visibleOptions(command)
  const globals = options.filter(isGlobal)
  const commands = help.groupItems(
    [],
    // The usage names `help`.
    help.visibleCommands(command).filter((each) => each.name() !== 'help'),
    (each) => each.helpGroup() || 'Commands:',
  )
  const sections: readonly Section[] = [
    [
      'Arguments:',
      help.visibleArguments(command).map((each) => [help.argumentTerm(each), help.argumentDescription(each)]),
    ],
    ['Options:', options.filter((each) => !isGlobal(each)).map(optionRow)],
    ...[...commands].map(([title, items]): Section => [title, items.map(commandRow)]),
    [GLOBAL_OPTIONS, isProgram ? globals.map(optionRow) : []],
  ]
  const wrap = (text: string) => help.boxWrap(text, help.helpWidth ?? 80)
  const termWidth = Math.max(...sections.flatMap(([, rows]) => rows.map(([term]) => term.length)))
  const [example = '', details = []] = HELP[fullName(command)] ?? []
  return [
    `Usage: ${help.commandUsage(command)}`,
    ...[help.commandDescription(command), details].flat().map(wrap),
    ...sections
      .filter(([, rows]) => rows.length > 0)
      .map(([title, rows]) =>
        [title, ...rows.map(([term, about]) => help.formatItem(term, termWidth, about, help))].join('\n'),
      ),
    ...(isProgram ? [] : [wrap(globalLine(globals))]),
    ...(example === '' ? [] : [`Example: ${example}`]),
  ]
    .map((text) => `${text}\n`)
    .join('\n')
}

const globalLine = (globals: readonly Option[]): string =>
  `${GLOBAL_OPTIONS} ${globals
    .filter(({ long }) => long !== '--help')
    .map(({ short, long }) => short ?? long)
    .join(', ')}`
