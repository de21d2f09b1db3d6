/** The results of the rows of a plan. Pure. */
import { EXIT, RushesError, usageError } from '../../errors.js'
import type { Made } from '../lock/lock.js'
import type { ActiveStep, PlanStep } from '../plan/index.js'

export interface RowResult {
  readonly step: PlanStep
  /**
   * `moved`: its file was renamed on this machine. `up_to_date`: its sources were created again with identical bytes.
   * `blocked`: one of its sources failed. `still_running`: the next batch continues it; a time limit is its error.
   */
  readonly result:
    | 'created'
    | 'downloaded'
    | 'moved'
    | 'up_to_date'
    | 'failed'
    | 'blocked'
    | 'unconfirmed'
    | 'still_running'
  /** Whether a run that is `still_running` has succeeded: a signal has interrupted its download. */
  readonly isSucceeded?: boolean
  readonly made?: Made | undefined
  readonly run?: string | undefined
  /** Key of its row in the journal, if its create has an unknown outcome. */
  readonly key?: string | undefined
  readonly error?: RushesError | undefined
  /** Name of the row that failed. */
  readonly blockedBy?: string | undefined
  readonly warnings?: readonly string[]
}

const RESUBMIT = 'If the run does not exist, send it again with --resubmit-unconfirmed.'

/** One shared error for all rows that an earlier batch left unconfirmed, so that it is printed once. */
const LEFT_ALONE = new RushesError(
  'submission_unknown',
  'The outcome of its last create is unknown, so it was not sent again. A run may exist and cost money.',
  { exitCode: EXIT.outcomeUnknown, hint: `Check the runs of your account first. ${RESUBMIT}` },
)

const ELSEWHERE = new RushesError(
  'submission_unknown',
  'It may be in flight in another state folder (another machine, or RUSHES_STATE_DIR), so it was not sent.',
  { exitCode: EXIT.outcomeUnknown, hint: `Continue the batch there: nothing is paid twice. ${RESUBMIT}` },
)

/** Result of a row whose create, sent by this batch, has an unknown outcome. */
export const unconfirmedResult = (
  step: PlanStep,
  key: string | undefined,
  error: RushesError,
): RowResult => ({
  step,
  result: 'unconfirmed',
  key,
  error: error.with({ next: RESUBMIT }),
})

/** Result of a row whose files were renamed. */
export const movedResult = (step: ActiveStep, made: Made | undefined): RowResult => ({
  step,
  result: 'moved',
  made,
  run: made?.run,
})

/** Result of a row that needs no create and no download, or can have none. */
export function inactiveResult(step: PlanStep): RowResult {
  const { action, file } = step
  if (action.do === 'unconfirmed') {
    const error = step.flight === undefined ? ELSEWHERE : LEFT_ALONE
    return { step, result: 'unconfirmed', key: action.key, error }
  }
  if (action.do === 'conflict')
    return {
      step,
      result: 'failed',
      error: usageError(`${file}: ${action.why}.`, action.isForeign ? '--overwrite replaces it.' : undefined),
    }
  // A row that another one blocks has no error of its own.
  if (action.do === 'blocked')
    return {
      step,
      result: 'blocked',
      blockedBy: action.by,
      error: action.by === undefined ? usageError(`${action.why}.`) : undefined,
    }
  return { step, result: 'up_to_date' }
}
