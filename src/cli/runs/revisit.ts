/** What `wait` and `download` have in common: runs that exist are followed, and their outputs brought home. */
import type { Context } from '../context/context.js'
import { type DeliveryNeeds, type DeliveryOptions, deliveryOf } from '../flags/delivery.js'
import { knownOf } from './follow.js'
import { checkTarget, openSession } from './session.js'
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
  const own = ids.flatMap((id) => recorder.filesOf(id).map(({ path }) => path))
  await checkTarget(
    delivery,
    ids.length,
    undefined,
    delivery.sidecar ? own.flatMap((each) => [each, sidecarOf(each)]) : own,
  )
  const session = await openSession({ ctx, connection, delivery, runs: ids.length })
  await Promise.all(ids.map((id, index) => session.follow(index, knownOf(id, recorder.find(id)))))
  return session.end()
}
