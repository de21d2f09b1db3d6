/** Builds the commander program: names, flags and help. It runs no command. */
import { Command, Option } from 'commander'
import { KINDS } from '../protocol/models.js'
import { COMMANDS } from './commands/index.js'
import type { CommandEnvironment } from './context/context.js'
import { findCommand } from './help/find-command.js'
import { GLOBAL_OPTIONS, HELP_FORMAT } from './help/format-help.js'
import { VERSION } from './process/version.js'
import { type Globals, globalOptions, globalsOf } from './settings/globals.js'

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

/** Commands that render runs. The help of others does not show `--engine`, which they accept. */
const RENDERS = ['run', 'wait', 'batch', 'mcp']

/** Adds the global flags to a command and its subcommands, so that users can write them anywhere on the line. */
function addGlobalOptions(command: Command, showsEngine = RENDERS.includes(command.name())): void {
  const ownFlags = new Set(command.options.map(({ long }) => long))
  for (const option of globalOptions())
    if (!ownFlags.has(option.long))
      command.addOption(option.hideHelp(option.long === '--engine' && !showsEngine))
  if (!ownFlags.has('--help')) command.addHelpOption(helpOption())
  if (command.commands.length > 0)
    command.enablePositionalOptions().helpCommand('help [command]', 'Print the help of a command')
  for (const child of command.commands) addGlobalOptions(child, showsEngine)
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
