/** Files of the project, and commands of the program. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command, Option } from 'commander'
import type { CommandEnvironment } from '../../src/cli/context/context.js'
import { createProgram } from '../../src/cli/program.js'

export const ROOT = fileURLToPath(new URL('../..', import.meta.url))

export const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')

/** Returns the paths of files below a folder whose names match. Empty if the folder does not exist. */
export function pathsBelow(folder: string, name: RegExp): readonly string[] {
  const path = join(ROOT, folder)
  if (!existsSync(path)) return []
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && name.test(entry.name) && !entry.parentPath.includes('node_modules'))
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)).replaceAll('\\', '/'))
}

/** Returns the command and all its subcommands. */
export const commandsUnder = (command: Command): readonly Command[] => [
  command,
  ...command.commands.flatMap(commandsUnder),
]

/** The options of a command in its help, except `--help`. */
export const optionsOf = (command: Command): readonly Option[] =>
  command
    .createHelp()
    .visibleOptions(command)
    .filter(({ long }) => long !== '--help')

/** For a program whose lines are parsed, and whose commands do not run. */
export const PARSE_ONLY: CommandEnvironment = {
  act: (command) => void command.action(() => {}),
  print: () => {},
  program: () => createProgram(undefined, PARSE_ONLY, { loadsAll: true }),
}

/** Returns all commands, starting with the program itself. */
export const everyCommand = async (): Promise<readonly Command[]> =>
  commandsUnder(await createProgram(undefined, PARSE_ONLY, { loadsAll: true }))
