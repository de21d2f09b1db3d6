/** Estimates how long a plan will take, from the durations in the journal. Sends nothing. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Expectation, expectationOf } from '../../batch/plan/expected.js'
import { typicalDurationOf } from '../../journal/typical-duration.js'
import { RUNS_LIMIT } from '../../protocol/limits.js'
import type { Context } from '../context/context.js'
import { JOURNAL_FILE } from '../settings/folders.js'
import type { Prepared } from './prepare.js'

export async function expect(ctx: Context, { plan, options }: Prepared): Promise<Expectation> {
  const took = await durations(ctx)
  return expectationOf(plan.steps, plan.counts.requests, {
    ...RUNS_LIMIT,
    concurrency: options.concurrency,
    usualMs: (model) => typicalDurationOf(took.get(model) ?? [])?.medianMs,
  })
}

/** Empty when the journal cannot be read. */
async function durations(ctx: Context): Promise<ReadonlyMap<string, readonly number[]>> {
  const path = join(ctx.stateFolder, JOURNAL_FILE)
  if (!existsSync(path)) return new Map()
  // Planning needs no address.
  const address = await ctx.address().catch(() => undefined)
  const { readDurations } = await import('../../journal/readonly-queries.js')
  try {
    return readDurations(path, address)
  } catch {
    return new Map()
  }
}
