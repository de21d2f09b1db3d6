/** `--reuse`: runs of the journal that have made the same before, so that nothing is paid for them again. */
import type { Client } from '../../client/index.js'
import { RushesError } from '../../errors.js'
import type { Context } from '../context/context.js'
import { type KnownRun, knownRun } from './known-run.js'

export interface Wanted {
  readonly model: string
  /** The input as it was asked for. */
  readonly meaning: unknown
  readonly count: number
}

/**
 * At most `count`, newest first. The service is asked whether it still has each: one that is gone, or belongs to the
 * account of another key, is passed over. Throws `usage` where there is no journal to look into, and what the asking
 * throws: nothing has been paid by then.
 */
export async function findReusable(
  ctx: Context,
  client: Pick<Client, 'get'>,
  { model, meaning, count }: Wanted,
): Promise<readonly KnownRun[]> {
  const candidates = (await ctx.journal()).reusable(await ctx.address(), model, meaning, MAX_CANDIDATES)
  const found: KnownRun[] = []
  for (const run of candidates) {
    if (found.length === count || run.id === undefined) break
    try {
      const state = await client.get(run.id, ctx.interrupts.first)
      if (state.phase === 'succeeded') found.push({ ...knownRun(run.id, run), state })
    } catch (error) {
      if (!(error instanceof RushesError) || error.code !== 'run_not_found') throw error
      ctx.out.note(`The service has run ${run.id} no more; it is not used again.`)
    }
  }
  return found
}

/** Each costs a request. */
const MAX_CANDIDATES = 20
