/** What `wait` and `download` have in common: runs that exist are followed, and their outputs downloaded. */
import type { Context } from '../context/context.js'
import { type DeliveryNeeds, type DeliveryOptions, deliveryOf } from '../flags/delivery.js'
import { checkTarget } from './check-target.js'
import { knownRun } from './known-run.js'
import { openSession } from './session.js'
import { sidecarOf } from './sidecar.js'

export async function revisit(
  ctx: Context,
  ids: readonly string[],
  options: DeliveryOptions,
  { isDownload = false }: Omit<DeliveryNeeds, 'runs'> = {},
): Promise<number> {
  const delivery = await deliveryOf(ctx, options, { runs: ids.length, isDownload })
  const connection = await ctx.connect({ render: delivery.patience !== 'once' })
  const recorder = await ctx.recorder()
  const files = ids.flatMap((id) => recorder.filesOf(id).map(({ path }) => path))
  const own = delivery.sidecar ? files.flatMap((each) => [each, sidecarOf(each)]) : files
  checkTarget(delivery, { runs: ids.length, own })
  const session = await openSession({ ctx, connection, delivery, runs: ids.length })
  for (const [index, id] of ids.entries()) session.follow(index, knownRun(id, recorder.find(id)))
  return (await session.carryOut()).exitCode
}
