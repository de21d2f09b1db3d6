/** `rushes download`: downloads the outputs of finished runs again. */
import type { Command } from 'commander'
import type { Context } from '../context/context.js'
import { addDeliveryOptions, type DeliveryOptions } from '../flags/delivery.js'
import { checkIds, readIds } from '../process/stdin.js'
import { contextOfAll } from '../runs/where.js'
import type { CommandEnvironment } from './command-environment.js'

export interface DownloadCommandOptions {
  readonly ids: readonly string[]
  readonly delivery: DeliveryOptions
}

export function register(command: Command, { run }: CommandEnvironment, download = downloadCommand): void {
  command.argument('<id...>', 'run ids; - reads them from standard input, one per line')
  addDeliveryOptions(
    command,
    'how long to wait for a run that is not finished: 90s, 15m, 0 for no limit (default: no waiting)',
  )
  command.action((ids: string[], flags: DeliveryOptions) =>
    run(command, (ctx) => download(ctx, { ids, delivery: flags })),
  )
}

export async function downloadCommand(ctx: Context, options: DownloadCommandOptions): Promise<number> {
  const ids = checkIds(await readIds(options.ids, ctx.stdin, ctx.interrupts.first))
  const { revisit } = await import('../runs/revisit.js')
  return revisit(await contextOfAll(ctx, ids), ids, options.delivery, { isDownload: true })
}
