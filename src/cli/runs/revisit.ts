/** Common part of `wait` and `download`: follows existing runs and downloads their outputs. */
import { relative } from 'node:path'
import { type Begin, knownRun } from '../../runs/run.js'
import type { Context } from '../context/context.js'
import { type DeliveryNeeds, type DeliveryOptions, deliveryOf } from '../flags/delivery.js'
import { inTurns } from '../process/exit.js'
import { carryOutRuns, type Observer } from './carry-out.js'
import { checkTarget } from './check-target.js'
import { isFinished } from './journal-rows.js'
import { sidecarOf } from './sidecar.js'

interface RevisitOptions extends Omit<DeliveryNeeds, 'runs'> {
  readonly observer?: Observer | undefined
  /** Whether the run is that of the last command, whose `-o` counts until the run has a file. */
  readonly isLast?: boolean | undefined
}

export async function revisit(
  ctx: Context,
  ids: readonly string[],
  options: DeliveryOptions,
  { isDownload = false, observer, isLast = false }: RevisitOptions,
): Promise<number> {
  const isNamed = options.download === true || options.output !== undefined
  const [last] = isLast && !isNamed ? ids : []
  const output = last === undefined ? undefined : await openOutput(ctx, last)
  const delivery = await deliveryOf(ctx, output ? { ...options, output } : options, {
    runs: ids.length,
    isDownload,
  })
  const connection = await ctx.connect({ render: delivery.patience !== 'once' })
  const journal = await ctx.openJournal()
  const address = await ctx.address()
  const find = (id: string) => journal.tryRead(() => journal.find(address, id))
  const own = () => {
    const rows = ids.flatMap((id) => find(id) ?? [])
    const files = rows.flatMap((row) => journal.filesOf(row).map(({ path }) => path))
    return delivery.sidecar ? files.flatMap((each) => [each, sidecarOf(each)]) : files
  }
  checkTarget(delivery, { runs: ids.length, own })
  const begins: Begin[] = []
  for await (const id of inTurns(ids, ctx.interrupts.first)) {
    const row = find(id)
    // Without the key of its provider, for example, its job could not be followed.
    if (row !== undefined && !isFinished(row) && delivery.patience !== 'once') await connection.checkRun?.(id)
    begins.push({ is: 'follow', run: knownRun(id, row) })
  }
  const { code } = await carryOutRuns(ctx, { connection, delivery, begins, isFollowed: true, observer })
  return code
}

/** The `-o` of the command that created the run; undefined once the run has a file. */
async function openOutput(ctx: Context, id: string): Promise<string | undefined> {
  const journal = await ctx.journal()
  const run = journal.find(await ctx.address(), id)
  return run?.output === undefined || journal.filesOf(run).length > 0 ? undefined : relative('.', run.output)
}
