/**
 * Formats the help pages, which all have the same sections in the same order. Also lists the help topics that are not
 * commands.
 */
import type { Command, Help, Option } from 'commander'
import { EXAMPLES } from './examples.js'
import { argumentWords, fullName } from './find-command.js'

interface Topic {
  readonly name: string
  readonly about: string
  text(): Promise<string>
}

export const TOPICS: readonly Topic[] = [
  {
    name: 'exit-codes',
    about: 'Exit codes and what to do about each',
    text: async () => (await import('./topic-texts.js')).exitCodes(),
  },
  {
    name: 'environment',
    about: 'Settings, environment variables and the API key',
    text: async () => (await import('./topic-texts.js')).environment(),
  },
  {
    name: 'scripting',
    about: 'Output formats and recipes for scripts',
    text: async () => (await import('./topic-texts.js')).SCRIPTING,
  },
  {
    name: 'agents',
    about: 'A short reference for language models',
    text: async () => (await import('./topic-texts.js')).agents(),
  },
]

export const GLOBAL_OPTIONS = 'Global options:'

/** Groups of a command's own options, in the order of the page. */
const GROUPS = ['Selection options:', 'Model options:', 'Run options:', 'Result options:', 'Options:']

/** Passed to commander's `configureHelp`. */
export const HELP: Partial<Help> = {
  formatHelp,
  // Only the command on the line is loaded, so the other commands have no arguments to show.
  subcommandTerm: (command) =>
    [command.name(), ...(command.parent?.parent == null ? [] : argumentWords(command))].join(' '),
  optionDescription: ({ description, defaultValue }) =>
    typeof defaultValue === 'string' ? `${description} (default: ${defaultValue})` : description,
}

function formatHelp(command: Command, help: Help): string {
  const termWidth = help.padWidth(command, help)
  const width = help.helpWidth ?? 80
  const rows = (items: readonly (readonly [string, string])[]) =>
    items.map(([term, about]) => help.formatItem(term, termWidth, about, help))
  const optionRows = (options: readonly Option[]) =>
    rows(options.map((option) => [help.optionTerm(option), help.optionDescription(option)]))
  const groups = help.groupItems(
    [...command.options],
    help.visibleOptions(command),
    (option) => option.helpGroupHeading ?? 'Options:',
  )
  const own = [...groups]
    .filter(([title]) => title !== GLOBAL_OPTIONS)
    .sort(([a], [b]) => GROUPS.indexOf(a) - GROUPS.indexOf(b))
  const sections: readonly (readonly [string, readonly string[]])[] = [
    [
      'Arguments:',
      rows(
        help
          .visibleArguments(command)
          .map((each) => [help.argumentTerm(each), help.argumentDescription(each)]),
      ),
    ],
    ...own.map(([title, options]) => [title, optionRows(options)] as const),
    [
      'Commands:',
      rows(
        help
          .visibleCommands(command)
          // A group of commands has --help. `rushes config help` works too, but would only repeat it.
          .filter((each) => command.parent === null || each.name() !== 'help')
          .map((each) => [help.subcommandTerm(each), help.subcommandDescription(each)]),
      ),
    ],
    [
      'Help topics (rushes help <topic>):',
      command.parent === null ? rows(TOPICS.map(({ name, about }) => [name, about])) : [],
    ],
    [GLOBAL_OPTIONS, optionRows(groups.get(GLOBAL_OPTIONS) ?? [])],
    ['Examples:', exampleRows(EXAMPLES[fullName(command)] ?? [])],
  ]
  return [
    `Usage: ${help.commandUsage(command)}\n`,
    `${help.boxWrap(help.commandDescription(command), width)}\n`,
    ...sections
      .filter(([, lines]) => lines.length > 0)
      .map(([title, lines]) => `${title}\n${lines.join('\n')}\n`),
  ].join('\n')
}

function exampleRows(examples: (typeof EXAMPLES)[string]): readonly string[] {
  const widest = Math.max(...examples.map(([line, about]) => (about === undefined ? 0 : line.length)))
  return examples.map(([line, about]) =>
    about === undefined ? `  ${line}` : `  ${line.padEnd(widest)}   # ${about}`,
  )
}
