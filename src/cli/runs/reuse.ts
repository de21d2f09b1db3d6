/** `--reuse`: finds earlier runs of the same request in the journal, so that nothing is paid again. */
import type { Client } from '../../client/index.js'
import { RushesError } from '../../errors.js'
import type { Context } from '../context/context.js'
import { type KnownRun, knownRun } from './known-run.js'

export interface Wanted {
  readonly model: string
  /** The input as given on the command line. */
  readonly meaning: unknown
  readonly count: number
}

/**
 * At most `count`, newest first. The service is asked whether it still has each of them; one that it does not know, or that
 * belongs to another account, is skipped. Throws `usage` when the journal cannot be read, and the errors of the status
 * requests: nothing has been paid by then.
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
      ctx.out.note(`The service no longer has ${run.id}; it cannot be reused.`)
    }
  }
  return found
}

/** Each costs one request. */
const MAX_CANDIDATES = 20
