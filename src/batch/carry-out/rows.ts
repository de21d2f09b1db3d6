/** The rows of a plan that a batch works on, their results, and which of them wait for the outputs of others. Pure. */
import { EXIT, RushesError, usageError } from '../../errors.js'
import type { Made } from '../lock/lock.js'
import type { CreateAction, DownloadAction, Plan, PlanStep } from '../plan/index.js'
import { chainLengths, dependentsOf, type RowNode } from '../plan/row-order.js'

/** A step that creates or downloads something. */
export type ActiveStep = PlanStep & { readonly action: DownloadAction | CreateAction }

export const activeSteps = (plan: Plan): readonly ActiveStep[] => plan.steps.filter(isActive)

export const isActive = (step: PlanStep): step is ActiveStep =>
  step.action.do === 'create' || step.action.do === 'download'

/** False for rows whose files are on this machine already. */
export const needsService = ({ action }: ActiveStep): boolean =>
  action.do === 'create' || action.why !== 'moved'

export interface RowResult {
  readonly step: PlanStep
  /** `up_to_date`: its sources were created again with the same bytes. `blocked`: one of its sources failed. */
  readonly result: 'created' | 'downloaded' | 'up_to_date' | 'failed' | 'blocked' | 'unconfirmed'
  readonly made?: Made | undefined
  readonly run?: string | undefined
  readonly error?: RushesError | undefined
  /** Name of the row that failed. */
  readonly blockedBy?: string | undefined
  readonly warnings?: readonly string[]
}

/** The same for each row, so that it is printed once. */
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

/** Of a row whose files were moved from another name. */
export const movedResult = (step: ActiveStep, made: Made | undefined): RowResult => ({
  step,
  result: 'downloaded',
  made,
  run: made?.run,
})

/** Of a row that needs nothing after all. */
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
  /** Of the longest chain of rows that waits for a row. */
  chainLength(name: string): number
  /** The output of a row exists: returns the rows that waited for no other one. */
  release(name: string): readonly ActiveStep[]
  /** It will not exist: returns all rows that need it, directly or not. */
  block(name: string): readonly ActiveStep[]
}

interface PendingRow extends RowNode {
  readonly step: ActiveStep
  /** Sources whose outputs do not exist yet. */
  readonly open: Set<string>
}

/** A download needs no output of another row. */
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
