/** `rushes download`: downloads the outputs of finished runs again. */
import type { Command } from 'commander'
import type { CommandEnvironment, Context } from '../context/context.js'
import { addDeliveryOptions, type DeliveryOptions, timeoutOption } from '../flags/delivery.js'
import { resumeManyOf } from '../runs/resume.js'
import { addRunIds, type RunChoice, selectRuns } from '../runs/run-selection.js'

export interface DownloadCommandOptions extends RunChoice {
  readonly delivery: DeliveryOptions
}

export function register(command: Command, { run }: CommandEnvironment, download = downloadCommand): void {
  addRunIds(command)
  addDeliveryOptions(command, timeoutOption('How long to wait for a run that is not finished', 'no waiting'))
  command.action((ids: string[], flags: DeliveryOptions & { last?: boolean }) =>
    run(command, (ctx) => download(ctx, { ids, last: flags.last, delivery: flags })),
  )
}

export async function downloadCommand(ctx: Context, options: DownloadCommandOptions): Promise<number> {
  const { ctx: service, ids } = await selectRuns(ctx, options)
  const { revisit } = await import('../runs/revisit.js')
  return revisit(service, ids, options.delivery, { isDownload: true, many: resumeManyOf(options) })
}
