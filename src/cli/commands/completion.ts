/** `rushes completion`: prints the completion script of a shell. */
import type { Command } from 'commander'
import { SCRIPTS, type Shell } from '../completion/scripts/index.js'
import type { Context } from '../context/context.js'
import { choiceArgument, orList } from '../flags/choice.js'
import type { CommandEnvironment } from './command-environment.js'

const SHELLS = Object.keys(SCRIPTS) as readonly Shell[]

export function register(command: Command, { run }: CommandEnvironment, print = completionCommand): void {
  command
    .addArgument(choiceArgument('<shell>', `Shell: ${orList(SHELLS)}`, SHELLS))
    .action((shell: Shell) => run(command, (ctx) => print(ctx, shell)))
}

export async function completionCommand({ out }: Context, shell: Shell): Promise<number> {
  out.line(SCRIPTS[shell].trimEnd())
  return 0
}
