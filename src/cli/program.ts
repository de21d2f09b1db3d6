/** Builds the commander program: names, flags and help. Runs no command. */
import { Command } from 'commander'
import type { CommandEnvironment } from './commands/command-environment.js'
import { COMMANDS } from './commands/index.js'
import { type Globals, globalOptions, globalsOf } from './flags/globals.js'
import { TOPICS } from './help/topics.js'
import { VERSION } from './process/version.js'

const EXAMPLES = `
Examples:
  rushes run image --local "a red fox in fresh snow"     try it: no key, no network, no cost
  rushes run video "a paper boat in a puddle" -o boat.mp4
  rushes run image "a fox" | rushes run video "it runs" -i -
  rushes run video "dusk" --no-wait | rushes wait - -d

More: rushes help ${TOPICS.map(({ name }) => name).join(', ')}.`

const DEFAULT_COLUMNS = 80

/** The whole program; only the command `named` is loaded and has its flags. */
export async function createProgram(
  named: string | undefined,
  environment: CommandEnvironment,
): Promise<Command> {
  const program = new Command('rushes')
    .description('Submit asynchronous video and image model runs, wait for them, bring the results home.')
    .version(VERSION, '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command or a topic')
    .addHelpText('after', EXAMPLES)
    .exitOverride()
    // Before the commands are added: each copies this when it is created.
    .configureOutput({
      writeOut: environment.print,
      writeErr: () => {},
      getOutHelpWidth: () => environment.columns?.() ?? DEFAULT_COLUMNS,
      getOutHasColors: () => false,
    })
    .enablePositionalOptions()
  for (const option of globalOptions()) program.addOption(option)
  for (const row of COMMANDS) {
    const command = program.command(row.name).description(row.about)
    if (row.name !== named) continue
    const { register } = await row.load()
    register(command, environment)
    addGlobalOptions(command)
  }
  return program
}

/** Adds the global flags to a command and its subcommands, so that they may stand anywhere on the line. */
function addGlobalOptions(command: Command): void {
  const own = new Set(command.options.map(({ long }) => long))
  for (const option of globalOptions()) if (!own.has(option.long)) command.addOption(option)
  command.helpOption('-h, --help', 'print this help')
  if (command.commands.length > 0) command.enablePositionalOptions()
  for (const child of command.commands) addGlobalOptions(child)
}

/** commander's merge would let the default of a parent undo a `--no-color` after the subcommand. */
export function globalsOfCommand(command: Command): Globals {
  const line: Command[] = []
  for (let each: Command | null = command; each !== null; each = each.parent) line.push(each)
  const color = line.every((each) => each.opts().color !== false)
  return globalsOf({ ...command.optsWithGlobals(), color })
}
