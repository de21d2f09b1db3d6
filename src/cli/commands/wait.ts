/** `rushes wait`: waits for runs that were created earlier. */
import { type Command, Option } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import type { Context } from '../context/context.js'
import { addDeliveryOptions, type DeliveryOptions } from '../flags/delivery.js'
import { checkIds, readIds } from '../process/stdin.js'
import { allUnfinished, lastRun } from '../runs/earlier.js'
import { contextOfAll } from '../runs/where.js'
import type { CommandEnvironment } from './command-environment.js'

export interface WaitCommandOptions {
  readonly ids: readonly string[]
  readonly last: boolean
  readonly all: boolean
  readonly delivery: DeliveryOptions
}

interface Flags extends DeliveryOptions {
  readonly last?: boolean
  readonly all?: boolean
}

export function register(command: Command, { run }: CommandEnvironment, waitForRuns = waitCommand): void {
  command
    .argument('[id...]', 'run ids; - reads them from standard input, one per line')
    .addOption(new Option('--last', 'the last run created at the current address').helpGroup('Which runs:'))
    .addOption(new Option('--all', 'every unfinished run of the current address').helpGroup('Which runs:'))
  addDeliveryOptions(command)
  command.action((ids: string[], flags: Flags) =>
    run(command, (ctx) =>
      waitForRuns(ctx, { ids, last: flags.last === true, all: flags.all === true, delivery: flags }),
    ),
  )
}

export async function waitCommand(ctx: Context, options: WaitCommandOptions): Promise<number> {
  const ids = await idsOf(ctx, options)
  if (ids.length === 0) return EXIT.ok
  const { revisit } = await import('../runs/revisit.js')
  // Those of --last and --all are runs of the current address.
  const context = options.ids.length > 0 ? await contextOfAll(ctx, ids) : ctx
  return revisit(context, ids, options.delivery)
}

async function idsOf(ctx: Context, { ids, last, all }: WaitCommandOptions): Promise<readonly string[]> {
  const ways = [ids.length > 0, last, all].filter(Boolean).length
  if (ways !== 1)
    throw usageError(
      ways === 0 ? 'Missing run ids.' : 'Run ids, --last and --all cannot be combined.',
      'Give run ids, --last or --all. rushes list shows the runs of this machine.',
    )
  if (last) return [await lastRun(ctx)]
  if (all) return allUnfinished(ctx)
  return checkIds(await readIds(ids, ctx.stdin, ctx.interrupts.first))
}
