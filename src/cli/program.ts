/** Builds the commander program: names, flags and help. It runs no command. To add a command, add a file and a row here. */
import { Command, Option } from 'commander'
import { KINDS } from '../protocol/models.js'
import type { CommandEnvironment } from './context/context.js'
import { GLOBAL_OPTIONS, HELP_FORMAT } from './help/format-help.js'
import { unknownCommand } from './help/usage-errors.js'
import { VERSION } from './process/version.js'
import { type Globals, globalOptions, globalsOf } from './settings/globals.js'

interface CommandFile {
  register(command: Command, environment: CommandEnvironment): void
}

/** `load`: loads the command's file, which the build puts in a separate chunk. */
type CommandRow = readonly [name: string, about: string, load: () => Promise<CommandFile>]

const logoutFile = async () => ({ register: (await import('./commands/login.js')).registerLogout })
const cancelFile = async () => ({ register: (await import('./commands/status.js')).registerCancel })
const showFile = async () => ({ register: (await import('./commands/list.js')).registerShow })
const downloadFile = async () => ({ register: (await import('./commands/wait.js')).registerDownload })

/** The commands, in the order of the help, by the title of their group. */
const COMMANDS: Readonly<Record<string, readonly CommandRow[]>> = {
  'Create:': [
    [
      'run',
      'Create a run, wait for it, and print or download its outputs',
      () => import('./commands/run.js'),
    ],
    ['batch', 'Create only the assets that are missing or out of date', () => import('./commands/batch.js')],
    [
      'models',
      'List, add and import models, or show the parameters of one',
      () => import('./commands/models.js'),
    ],
  ],
  'Follow runs at the service:': [
    ['status', 'Show the current status of runs', () => import('./commands/status.js')],
    ['wait', 'Wait for runs that were created earlier', () => import('./commands/wait.js')],
    ['download', 'Download the outputs of finished runs', downloadFile],
    ['cancel', 'Cancel runs that have not ended', cancelFile],
  ],
  'Runs on this machine:': [
    ['list', 'List the runs created on this machine', () => import('./commands/list.js')],
    ['show', 'Show details of a run', showFile],
    ['open', 'Open the result of a run', () => import('./commands/open.js')],
    ['gallery', 'Build an HTML gallery of your results', () => import('./commands/gallery.js')],
    ['spend', 'Sum the estimates of runs', () => import('./commands/spend.js')],
    ['forget', 'Remove runs from the journal', () => import('./commands/forget.js')],
  ],
  'Set up and operate:': [
    ['login', 'Store the API key and the service URL', () => import('./commands/login.js')],
    ['logout', 'Remove the stored API key', logoutFile],
    ['config', 'Show and change the settings', () => import('./commands/config.js')],
    ['doctor', 'Check settings, service, disk and journal', () => import('./commands/doctor.js')],
    [
      'completion',
      'Print the completion script for bash, zsh or fish',
      () => import('./commands/completion.js'),
    ],
    ['mcp', 'Run an MCP server for agents', () => import('./mcp/index.js')],
    ['serve', 'Run the local service', () => import('./commands/serve.js')],
    ['admin', 'Manage accounts, keys and balances of a local service', () => import('./commands/admin.js')],
  ],
}

const DEFAULT_COLUMNS = 80

/**
 * Creates the program. Only the command `named` is loaded and has its flags, because loading all takes longer than most
 * commands; `loadsAll` loads all.
 */
export async function createProgram(
  named: string | undefined,
  environment: CommandEnvironment,
  { loadsAll = false } = {},
): Promise<Command> {
  const program = new Command('rushes')
    .description('Create video and image runs, wait for them and download the results.')
    .optionsGroup(GLOBAL_OPTIONS)
    .version(VERSION, '-V, --version', 'Print the version')
    .addHelpOption(helpOption())
    .helpCommand(false)
    .configureHelp(HELP_FORMAT)
    .exitOverride()
    // Set before the commands are added, because each command copies it when it is created.
    .configureOutput({
      writeOut: environment.print,
      writeErr: () => {},
      getOutHelpWidth: () => environment.columns?.() ?? DEFAULT_COLUMNS,
      getOutHasColors: () => false,
    })
    .enablePositionalOptions()
  for (const option of globalOptions()) program.addOption(option)
  for (const [group, rows] of Object.entries(COMMANDS))
    for (const [name, about, load] of rows) {
      const command = program.command(name).description(about).helpGroup(group)
      if (name !== named && !loadsAll) continue
      const { register } = await load()
      register(command, environment)
      addGlobalOptions(command)
    }
  addHelpCommand(program, environment)
  return program
}

const helpOption = () => new Option('-h, --help', 'Print this help').helpGroup(GLOBAL_OPTIONS)

function addHelpCommand(program: Command, { print }: CommandEnvironment): void {
  const help = program
    .command('help')
    .description('Print the help of a command')
    .argument('[command...]', 'A command and its subcommand; agents prints a reference for language models')
    .action(async (words: readonly string[]) => {
      if (words.join(' ') !== 'agents') return findCommand(program, words).command.outputHelp()
      const { default: skill } = await import('../../skills/rushes/SKILL.md?raw')
      print(skill)
    })
  addGlobalOptions(help)
}

/** Adds the global flags to a command and its subcommands, so that users can write them anywhere on the line. */
function addGlobalOptions(command: Command): void {
  const ownFlags = new Set(command.options.map(({ long }) => long))
  for (const option of globalOptions()) if (!ownFlags.has(option.long)) command.addOption(option)
  if (!ownFlags.has('--help')) command.addHelpOption(helpOption())
  if (command.commands.length > 0) command.enablePositionalOptions().helpCommand(false)
  for (const child of command.commands) addGlobalOptions(child)
}

/**
 * Reads the global flags of a command. Reads `--no-color` from each level, because commander's merge lets a parent's
 * default override `--no-color` after the subcommand.
 */
export function globalsOfCommand(command: Command): Globals {
  const commandPath: Command[] = []
  for (let each: Command | null = command; each !== null; each = each.parent) commandPath.push(each)
  const color = commandPath.every((each) => each.opts().color !== false)
  const kind = command.parent?.name() === 'run' ? KINDS.find((each) => each === command.name()) : undefined
  return globalsOf({ ...command.optsWithGlobals(), color }, kind)
}

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
