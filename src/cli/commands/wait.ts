/** `rushes wait`: waits for runs that were created earlier. */
import type { Command } from 'commander'
import { EXIT } from '../../errors.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { addDeliveryOptions, type DeliveryOptions } from '../flags/delivery.js'
import { resumeManyOf } from '../runs/resume.js'
import { addRunIds, type RunChoice, selectRuns } from '../runs/run-selection.js'

export interface WaitCommandOptions extends RunChoice {
  readonly delivery: DeliveryOptions
}

export function register(command: Command, { run }: CommandEnvironment, waitForRuns = waitCommand): void {
  addRunIds(command, { hasAll: true })
  addDeliveryOptions(command)
  command.action((ids: string[], flags: Omit<RunChoice, 'ids'> & DeliveryOptions) =>
    run(command, (ctx) => waitForRuns(ctx, { ...flags, all: flags.all === true, ids, delivery: flags })),
  )
}

export async function waitCommand(ctx: Context, options: WaitCommandOptions): Promise<number> {
  const { ctx: service, ids } = await selectRuns(ctx, options)
  if (ids.length === 0) return EXIT.ok
  const { revisit } = await import('../runs/revisit.js')
  return revisit(service, ids, options.delivery, { many: resumeManyOf(options) })
}
