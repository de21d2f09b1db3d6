/** `rushes wait` and `rushes download`: wait for runs that were created earlier, or download their outputs again. */
import type { Command } from 'commander'
import { EXIT } from '../../errors.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { type DeliveryOptions, deliveryOptions, timeoutOption } from '../flags/delivery.js'
import { addRunIds, type RunChoice, selectRuns } from '../runs/run-selection.js'

type RevisitFlags = Omit<RunChoice, 'ids'> & DeliveryOptions

export function register(command: Command, { run }: CommandEnvironment): void {
  addRunIds(command, { hasAll: true })
  for (const option of deliveryOptions()) command.addOption(option)
  command.action((ids: string[], flags: RevisitFlags) =>
    run(command, (ctx) => revisitCommand(ctx, { ...flags, all: flags.all === true, ids }, flags)),
  )
}

export function registerDownload(command: Command, { run }: CommandEnvironment): void {
  addRunIds(command)
  const timeout = timeoutOption('How long to wait for a run that is not finished', 'no waiting')
  for (const option of deliveryOptions(timeout)) command.addOption(option)
  command.action((ids: string[], flags: RevisitFlags) =>
    run(command, (ctx) => revisitCommand(ctx, { ids, last: flags.last }, flags, true)),
  )
}

async function revisitCommand(
  ctx: Context,
  choice: RunChoice,
  flags: DeliveryOptions,
  isDownload = false,
): Promise<number> {
  const { ctx: service, ids } = await selectRuns(ctx, choice)
  if (ids.length === 0) return EXIT.ok
  const { revisit } = await import('../runs/revisit.js')
  return revisit(service, ids, flags, { isDownload, isLast: choice.last })
}
