/** The active rows of a plan, their results, and the rows that wait for outputs of others. Pure. */
import { EXIT, RushesError, usageError } from '../../errors.js'
import type { Made } from '../lock/lock.js'
import type { CreateAction, DownloadAction, Plan, PlanStep } from '../plan/index.js'
import { chainLengths, dependentsOf, type RowNode } from '../plan/row-order.js'

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
   * `up_to_date`: its sources were created again with identical bytes. `blocked`: one of its sources failed.
   */
  readonly result: 'created' | 'downloaded' | 'up_to_date' | 'failed' | 'blocked' | 'unconfirmed'
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
  result: 'downloaded',
  made,
  run: made?.run,
})

/** Result of a waiting row that, decided again after its sources exist, needs no create and no download. */
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
  if (action.do === 'blocked') return { step, result: 'failed', error: usageError(`${action.why}.`) }
  return { step, result: 'up_to_date' }
}

export interface WaitingRows {
  /** Rows without pending sources. */
  readonly free: readonly ActiveStep[]
  /** Length of the longest chain of rows that wait for this row. */
  chainLength(name: string): number
  /** Called when the output of a row exists. Returns the rows that waited only for this output. */
  release(name: string): readonly ActiveStep[]
  /** Called when the output of a row will not exist. Returns all rows that need it, directly or indirectly. */
  block(name: string): readonly ActiveStep[]
}

interface PendingRow extends RowNode {
  readonly step: ActiveStep
  /** Sources whose outputs do not exist yet. */
  readonly open: Set<string>
}

/** Downloads are always free to start: they need no output of another row. */
export function createWaitingRows(steps: readonly ActiveStep[]): WaitingRows {
  const active = new Set(steps.map(({ entry }) => entry.name))
  const rows = steps.map((step): PendingRow => {
    const sources = step.action.do === 'create' ? step.sources.filter((name) => active.has(name)) : []
    return { name: step.entry.name, sources, step, open: new Set(sources) }
  })
  const dependents = dependentsOf(rows)
  const chains = chainLengths(rows)
  const blocked = new Set<string>()
  return {
    free: rows.filter(({ open }) => open.size === 0).map(({ step }) => step),
    chainLength: (name) => chains.get(name) ?? 0,
    release: (name) =>
      (dependents.get(name) ?? [])
        .filter((row) => row.open.delete(name) && row.open.size === 0 && !blocked.has(row.name))
        .map(({ step }) => step),
    block(name) {
      const found = new Set<PendingRow>()
      const add = (source: string) => {
        for (const row of dependents.get(source) ?? [])
          if (!blocked.has(row.name)) {
            blocked.add(row.name)
            found.add(row)
          }
      }
      add(name)
      for (const row of found) add(row.name)
      return [...found].map(({ step }) => step)
    },
  }
}
