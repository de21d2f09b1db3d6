/** `rushes completion`: prints the completion script of a shell. */
import type { Command } from 'commander'
import bash from '../completion/scripts/rushes.bash?raw'
import fish from '../completion/scripts/rushes.fish?raw'
import zsh from '../completion/scripts/rushes.zsh?raw'
import type { CommandEnvironment, Context } from '../context/context.js'
import { choiceArgument, orList } from '../flags/values.js'

/** The scripts only call `rushes __complete`, which makes every suggestion. */
const SCRIPTS = { bash, zsh, fish } as const

type Shell = keyof typeof SCRIPTS

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
