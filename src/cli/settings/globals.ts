/** Flags that every command has. They may come before or after the subcommand. */
import { Option } from 'commander'
import { quoteWord } from '../../host/shell.js'
import type { Kind } from '../../protocol/models.js'
import { isCanceled, isOutcomeUnknown, type RunState } from '../../protocol/run-state.js'

/** The flags that select the service, its key and its model. */
export interface ServiceFlags {
  readonly local: boolean
  readonly profile?: string | undefined
  readonly baseUrl?: string | undefined
  /** The engine of a model of the local service, as `kind=engine` where its kind is known. */
  readonly engine?: string | undefined
}

export interface Globals extends ServiceFlags {
  readonly json: boolean
  readonly quiet: boolean
  readonly debug: boolean
  readonly color: boolean
}

const GLOBAL_FLAGS: readonly (readonly [flags: string, about: string])[] = [
  ['--json', 'Print JSON; errors are JSON on standard error'],
  ['-q, --quiet', 'Do not print progress and notes'],
  ['--debug', 'Show requests and stack traces'],
  ['--no-color', 'Do not use colours'],
  ['--profile <name>', 'Use this profile of the config file'],
  ['--base-url <url>', 'URL of the service'],
  ['--local', 'Use the built-in preview service: no key, no network'],
  ['--engine <spec>', 'Run a model here, such as images:http://127.0.0.1:1234/v1'],
]

export const globalOptions = (): readonly Option[] =>
  GLOBAL_FLAGS.map((row) => new Option(...row).helpGroup('Global options:'))

/** Global flags that take a value. */
const TAKES_VALUE = GLOBAL_FLAGS.flatMap(([flags]) => (flags.includes('<') ? flags.split(' ')[0] : []))

/**
 * The name of the command: the first word, or the second word after `help`. It is read before commander parses the
 * line, so that only this command's file is loaded. Flags before it are global.
 */
export const commandWord = (argv: readonly string[]): string | undefined =>
  argv.find(
    (word, at) => !word.startsWith('-') && word !== 'help' && !TAKES_VALUE.includes(argv[at - 1] ?? ''),
  )

/** Whether the line has `--json`. It is read before commander parses the line, so that parse errors are JSON too. */
export const wantsJson = (argv: readonly string[]): boolean => {
  const end = argv.indexOf('--')
  return (end === -1 ? argv : argv.slice(0, end)).includes('--json')
}

/** Reads the global flags from the merged options of a command and its parents. `kind`: of the run that it creates. */
export function globalsOf(options: Readonly<Record<string, unknown>>, kind?: Kind): Globals {
  const text = (value: unknown) => (typeof value === 'string' ? value : undefined)
  // `rushes serve` has a flag of the same name, which is a list.
  const typed = text(options.engine)
  const engine = kind === undefined || typed?.startsWith(`${kind}=`) ? typed : typed && `${kind}=${typed}`
  return {
    json: options.json === true,
    quiet: options.quiet === true,
    debug: options.debug === true,
    color: options.color !== false,
    local: options.local === true || engine !== undefined,
    profile: text(options.profile),
    baseUrl: text(options.baseUrl),
    engine,
  }
}

/** A command for the user to type next, with the global flags that select the same service and key. */
export const commandLine = (
  command: string,
  { local, profile, baseUrl, engine }: ServiceFlags,
  words: readonly string[],
): string =>
  [
    `rushes ${command}`,
    ...(local ? ['--local'] : []),
    ...(engine === undefined ? [] : ['--engine', quoteWord(engine)]),
    ...(profile === undefined ? [] : ['--profile', quoteWord(profile)]),
    ...(baseUrl === undefined ? [] : ['--base-url', quoteWord(baseUrl)]),
    ...words,
  ].join(' ')

/**
 * Returns the command to resume: `wait` waits again, `download` downloads the outputs of finished runs, `cancel` stops
 * the runs. `all`: every unfinished run at the address. `flags`: those of the outputs.
 */
export function resumeCommand(
  globals: ServiceFlags,
  verb: 'wait' | 'download' | 'cancel',
  ids: readonly string[] | 'all',
  flags: readonly string[] = [],
): string {
  // Both commands download to the current folder by default.
  const isImplied = globals.local || verb === 'download'
  const needed = flags.filter((flag) => !(isImplied && flag === '-d'))
  return commandLine(verb, globals, [...needed, ...(ids === 'all' ? ['--all'] : idArguments(ids))])
}

/** The last words of a command: the ids, quoted. */
export const idArguments = (ids: readonly string[]): readonly string[] => [
  ...(ids.some((id) => id.startsWith('-')) ? ['--'] : []),
  ...ids.map((id) => quoteWord(id).replace(/^'(-[\w.-]*)'$/, '$1')),
]

/** How to see and to remove a row of the journal without an id. */
export const keyHint = (key: string): string =>
  `The journal keeps it as ${key}: see it with \`rushes show '${key}'\`, ` +
  `remove it with \`rushes forget '${key}' --yes\`.`

/** What to do next about a run that has ended without files. */
export function endHint(state: RunState, isLocal: boolean): string {
  const id = quoteWord(state.id)
  if (state.withoutUrls !== undefined)
    return `\`rushes show ${id} --json\` prints the response, and \`rushes status ${id}\` asks again.`
  const data = isLocal ? ' --data <state folder>/local' : ''
  // The job of a canceled run is canceled, also if it is adopted.
  return isOutcomeUnknown(state) && !isCanceled(state)
    ? 'If its provider has a job of it, the operator of the service fetches the result with ' +
        `\`rushes admin run adopt ${id} <job>${data}\`.`
    : `\`rushes show ${id}\` shows its input.`
}

/** Returns the glob for `--only` that matches this name alone: it may contain a `*`, and each further run costs money. */
export const globOf = (name: string): string => name.replace(/[\\*?[\](){}!+@]/g, '\\$&')
