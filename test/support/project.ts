/** Files of the project, and commands of the program. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Command } from 'commander'
import { COMMANDS } from '../../src/cli/commands/index.js'
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

/** Returns all commands, starting with the program itself. */
export async function everyCommand(): Promise<readonly Command[]> {
  const programOf = (name?: string) =>
    createProgram(name, { run: async () => {}, print: () => {} }, { showsAll: true })
  const [program, ...whole] = await Promise.all([
    programOf(),
    ...COMMANDS.map(async ({ name }) => {
      const { commands } = await programOf(name)
      return commands.filter((command) => command.name() === name).flatMap(commandsUnder)
    }),
  ])
  return [program, ...whole.flat()]
}
