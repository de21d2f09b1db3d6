/**
 * The journal may know the id of a create that is unconfirmed in the lock file: a batch that was killed between the two
 * has written it there first. Then its output is downloaded, and the user need not look into the account.
 */
import { type Lock, withEntry } from '../../batch/lock/lock.js'
import type { Plan } from '../../batch/plan/index.js'
import type { Context } from '../context/context.js'
import { asRushesError } from '../process/exit.js'
import type { Recorder } from '../runs/record.js'
import { type Prepared, refuseImpossible } from './prepare.js'

/** The lock file may come from another machine, whose clock differs. */
const SLACK_MS = 1_000

/** The lock of the plan with the runs that the journal knows; undefined when it knows none. */
function adoptedLock({ steps, lock }: Plan, recorder: Pick<Recorder, 'lastOf'>): Lock | undefined {
  let adopted: Lock | undefined
  for (const { entry, action, hash, locked } of steps) {
    const pending = locked?.pending
    if (action.do !== 'unconfirmed' || pending?.state !== 'unconfirmed' || hash === undefined) continue
    const sentAtMs = Date.parse(pending.sent_at)
    const run = recorder.lastOf(hash, Number.isNaN(sentAtMs) ? 0 : sentAtMs - SLACK_MS)?.id
    if (run === undefined) continue
    const { key: _, ...create } = pending
    adopted = withEntry(adopted ?? lock, entry.name, {
      made: locked?.made,
      further: locked?.further ?? {},
      pending: { ...create, state: 'accepted', run },
    })
  }
  return adopted
}

/** Without an address the journal cannot be searched, and unconfirmed rows stay so. */
export async function adoptedPlan(ctx: Context, { plan, planWith, options }: Prepared): Promise<Plan> {
  if (plan.counts.unconfirmed === 0) return plan
  const recorder = await ctx.recorder().catch((error: unknown) => {
    if (asRushesError(error).code !== 'no_base_url') throw error
  })
  let current = plan
  for (;;) {
    const lock = recorder && adoptedLock(current, recorder)
    if (lock === undefined) return current
    // Rows that were blocked by an unconfirmed one may be created now.
    current = await planWith(lock)
    refuseImpossible({ plan: current, options })
  }
}
