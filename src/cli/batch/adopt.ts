/**
 * The journal may know the id of a create that is unconfirmed in the lock file: a batch that was killed between the two
 * has written it there first. Then its output is downloaded, and the user need not look into the account.
 */
import { type Lock, withEntry } from '../../batch/lock/lock.js'
import type { Plan } from '../../batch/plan/index.js'
import type { Recorder } from '../runs/record.js'

/** The lock file may come from another machine, whose clock differs. */
const SLACK_MS = 1_000

/** The lock of the plan with the runs that the journal knows; undefined when it knows none. */
export function adoptedLock({ steps, lock }: Plan, recorder: Pick<Recorder, 'lastOf'>): Lock | undefined {
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
