/**
 * The journal may know the id of a create that is unconfirmed in the lock file: a batch that was killed between the two
 * has written it there first. Then its output is downloaded, and the user need not look into the account.
 */
import { countsOf, type Plan, type Step } from '../../batch/plan/index.js'
import type { Recorder } from '../runs/record.js'

/** The lock file may come from another machine, whose clock differs. */
const SLACK_MS = 1_000

export function adopted(plan: Plan, recorder: Pick<Recorder, 'lastOf'>): Plan {
  const steps = plan.steps.map((step) => adoptedStep(step, recorder))
  return { ...plan, steps, counts: { ...plan.counts, ...countsOf(steps) } }
}

function adoptedStep(step: Step, recorder: Pick<Recorder, 'lastOf'>): Step {
  const pending = step.locked?.pending
  if (step.action.do !== 'unconfirmed' || pending?.state !== 'unconfirmed' || step.hash === undefined)
    return step
  const sentAtMs = Date.parse(pending.sent_at)
  const run = recorder.lastOf(step.hash, Number.isNaN(sentAtMs) ? 0 : sentAtMs - SLACK_MS)
  if (run?.id === undefined) return step
  return {
    ...step,
    action: { do: 'download', why: 'unfinished', run: run.id, replaces: step.locked?.made !== undefined },
  }
}
