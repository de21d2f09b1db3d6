/** `rushes wait` and `rushes download`: wait for runs that were created earlier, or download their outputs again. */
import type { Command } from 'commander'
import { EXIT } from '../../errors.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { type DeliveryOptions, deliveryOptions, timeoutOption } from '../flags/delivery.js'
import { addRunIds, type RunChoice, selectRuns } from '../runs/run-selection.js'

type RevisitFlags = Omit<RunChoice, 'ids'> & DeliveryOptions

export function register(command: Command, { act }: CommandEnvironment): void {
  addRunIds(command, { hasAll: true })
  for (const option of deliveryOptions()) command.addOption(option)
  act(command, (ctx, flags: RevisitFlags, ids: string[]) => revisitCommand(ctx, flags, ids, false))
}

export function registerDownload(command: Command, { act }: CommandEnvironment): void {
  addRunIds(command)
  const timeout = timeoutOption('How long to wait for a run that is not finished', 'no waiting')
  for (const option of deliveryOptions(timeout)) command.addOption(option)
  act(command, (ctx, flags: RevisitFlags, ids: string[]) => revisitCommand(ctx, flags, ids, true))
}

async function revisitCommand(
  ctx: Context,
  flags: RevisitFlags,
  words: readonly string[],
  isDownload: boolean,
): Promise<number> {
  const { ctx: service, ids } = await selectRuns(ctx, { ...flags, ids: words })
  if (ids.length === 0) return EXIT.ok
  const { revisit } = await import('../runs/carry-out.js')
  return revisit(service, ids, flags, { isDownload, isLast: flags.last })
}
