/** What `wait` and `download` have in common: runs that exist are followed, and their outputs downloaded. */
import type { Context } from '../context/context.js'
import { type DeliveryNeeds, type DeliveryOptions, deliveryOf } from '../flags/delivery.js'
import { inTurns } from '../process/interrupts.js'
import { checkTarget } from './check-target.js'
import { type KnownRun, knownRun } from './known-run.js'
import { openSession } from './session.js'
import { sidecarOf } from './sidecar.js'
import type { ManyRuns } from './unfinished-runs.js'

export interface RevisitOptions extends Omit<DeliveryNeeds, 'runs'> {
  /** How to resume with many of the runs. */
  readonly many: ManyRuns
}

export async function revisit(
  ctx: Context,
  ids: readonly string[],
  options: DeliveryOptions,
  { isDownload = false, many }: RevisitOptions,
): Promise<number> {
  const delivery = await deliveryOf(ctx, options, { runs: ids.length, isDownload })
  const connection = await ctx.connect({ render: delivery.patience !== 'once' })
  const recorder = await ctx.recorder()
  const own = () => {
    const files = ids.flatMap((id) => recorder.filesOf(id).map(({ path }) => path))
    return delivery.sidecar ? files.flatMap((each) => [each, sidecarOf(each)]) : files
  }
  checkTarget(delivery, { runs: ids.length, own })
  const known: KnownRun[] = []
  for await (const id of inTurns(ids, ctx.interrupts.first)) known.push(knownRun(id, recorder.find(id)))
  const session = await openSession({ ctx, connection, delivery, runs: ids.length, many })
  for (const [index, each] of known.entries()) session.follow(index, each)
  return (await session.carryOut()).exitCode
}
