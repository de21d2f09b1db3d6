/** The active rows of a plan, and their results. Pure. */
import { EXIT, RushesError, usageError } from '../../errors.js'
import type { Made } from '../lock/lock.js'
import type { CreateAction, DownloadAction, Plan, PlanStep } from '../plan/index.js'

/** A step that creates or downloads something. */
export type ActiveStep = PlanStep & { readonly action: DownloadAction | CreateAction }

export const activeSteps = (plan: Plan): readonly ActiveStep[] => plan.steps.filter(isActive)

export const isActive = (step: PlanStep): step is ActiveStep =>
  step.action.do === 'create' || step.action.do === 'download'

/** False for a row whose files already exist on this machine. */
export const needsService = ({ action }: ActiveStep): boolean =>
  action.do === 'create' || action.why !== 'moved'

export interface RowResult {
  readonly step: PlanStep
  /**
   * `moved`: its file was renamed on this machine. `up_to_date`: its sources were created again with identical bytes.
   * `blocked`: one of its sources failed.
   */
  readonly result: 'created' | 'downloaded' | 'moved' | 'up_to_date' | 'failed' | 'blocked' | 'unconfirmed'
  readonly made?: Made | undefined
  readonly run?: string | undefined
  readonly error?: RushesError | undefined
  /** Name of the row that failed. */
  readonly blockedBy?: string | undefined
  readonly warnings?: readonly string[]
}

/** One shared error for all unconfirmed rows, so that it is printed once. */
export const LEFT_ALONE = new RushesError(
  'submission_unknown',
  'The outcome of its last create is unknown, so it was not sent again. A run may exist and cost money.',
  {
    exitCode: EXIT.outcomeUnknown,
    hint:
      'Check the runs of your account first. If the run does not exist, send it again with ' +
      '--resubmit-unconfirmed.',
  },
)

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
  if (action.do === 'unconfirmed') return { step, result: 'unconfirmed', error: LEFT_ALONE }
  if (action.do === 'conflict')
    return {
      step,
      result: 'failed',
      error: usageError(
        `${file}: ${action.why}.`,
        action.isForeign ? '--overwrite replaces files that are not in the lock file.' : undefined,
      ),
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
