/** Carries a plan out. */
import { usageError } from '../../errors.js'
import type { Context } from '../context.js'
import type { Prepared } from './prepare.js'

/** The exit code of the command. */
export async function runBatch(_ctx: Context, _prepared: Prepared): Promise<number> {
  throw usageError(
    'This version plans a batch and does not carry it out yet; nothing was sent.',
    'See the plan with --dry-run, or what is missing or stale with --check.',
  )
}
