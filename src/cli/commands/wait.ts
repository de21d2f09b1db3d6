/** `rushes wait`: wait for runs that were created earlier. */
import type { Command } from 'commander'
import type { Context } from '../context.js'
import { addDeliveryOptions, type DeliveryOptions, deliveryOf } from '../flags/delivery.js'
import type { CommandEnvironment } from '../program.js'
import { checkIds, readIds } from '../stdin.js'

export interface WaitCommandOptions {
  readonly ids: readonly string[]
  readonly delivery: DeliveryOptions
}

export function register(command: Command, { run }: CommandEnvironment, waitForRuns = waitCommand): void {
  command.argument('<id...>', 'run ids; - reads them from standard input, one a line')
  addDeliveryOptions(command)
  command.action((ids: string[], flags: DeliveryOptions) =>
    run(command, (ctx) => waitForRuns(ctx, { ids, delivery: flags })),
  )
}

export async function waitCommand(ctx: Context, options: WaitCommandOptions): Promise<number> {
  const ids = checkIds(await readIds(options.ids, ctx.stdin, ctx.interrupts.first))
  const delivery = await deliveryOf(ctx, options.delivery, ids.length)
  const { checkTarget, openSession } = await import('../runs/session.js')
  await checkTarget(delivery, ids.length, undefined)
  const connection = await ctx.connect({ render: true })
  const session = await openSession({ ctx, connection, delivery, runs: ids.length })
  await Promise.all(ids.map((id, index) => session.follow(index, { id })))
  return session.end()
}
