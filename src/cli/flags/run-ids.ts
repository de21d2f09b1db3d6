/** Names the runs that a command works on: ids as arguments or on standard input, `--last`, and for some `--all`. */
import { type Command, Option } from 'commander'
import { usageError } from '../../errors.js'
import type { Context } from '../context/context.js'
import { checkIds, readIds } from '../process/stdin.js'
import { allUnfinished, lastRun } from '../runs/earlier.js'

export interface RunChoice {
  /** As typed; `-` stands for those on standard input. */
  readonly ids: readonly string[]
  readonly last?: boolean | undefined
  /** Undefined: a command without `--all`. */
  readonly all?: boolean | undefined
}

const option = (flags: string, about: string): Option =>
  new Option(flags, about).helpGroup('Selection options:')

export const lastOption = (): Option => option('--last', 'Newest run of the current service')

/** Adds the argument, and the flags that may stand in its place. */
export function addRunIds(command: Command, { hasAll = false } = {}): Command {
  command
    .argument('[id...]', 'Run ids; - reads them from standard input, one per line')
    .addOption(lastOption())
  return hasAll ? command.addOption(option('--all', 'Every unfinished run of the current service')) : command
}

/** Throws `usage` unless the runs are named in exactly one way. */
export function checkOneWay({ ids, last = false, all }: RunChoice): void {
  const ways = [ids.length > 0, last, all === true].filter(Boolean).length
  if (ways === 1) return
  const hasAll = all !== undefined
  throw usageError(
    ways === 0
      ? 'Missing run ids.'
      : `Run ids${hasAll ? ', --last and --all' : ' and --last'} cannot be used together.`,
    `Give run ids${hasAll ? ', --last or --all' : ' or --last'}. \`rushes list\` shows the runs of this machine.`,
  )
}

/** Throws `usage`, and `submission_unknown` for a last run without an id. */
export async function runIdsOf(ctx: Context, choice: RunChoice): Promise<readonly string[]> {
  checkOneWay(choice)
  if (choice.last === true) return [await lastRun(ctx)]
  if (choice.all === true) return allUnfinished(ctx)
  return checkIds(await readIds(choice.ids, ctx.stdin, ctx.interrupts.first))
}
