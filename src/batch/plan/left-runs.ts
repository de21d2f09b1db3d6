/** Finds runs that may be paid for, and that no row of the plan uses. Pure. */
import type { LockEntry, Pending } from '../lock/lock.js'
import type { RowAction } from './decide.js'
import type { Paired } from './pair.js'

/** A run in the lock file that may be paid for, but that no row of the plan uses. The user is warned about it. */
export interface LeftRun {
  /** Name of the row. */
  readonly name: string
  /** Id of the run. Undefined if the outcome of its create is unknown. */
  readonly run: string | undefined
  /** Key of the journal row, for a create with an unknown outcome. */
  readonly key: string | undefined
  /** Address of the service. */
  readonly service: string | undefined
  /** `waiting`: the row has changed, unless the outputs that it uses are created again with the same bytes. */
  readonly why: 'changed' | 'waiting' | 'forced' | 'removed'
}

interface DecidedRow extends Paired {
  readonly action: RowAction
  readonly waitsFor: readonly string[]
}

/** `leftover`: entries that belong to no row of the manifest. */
export function leftRunsOf(
  steps: readonly DecidedRow[],
  leftover: ReadonlyMap<string, LockEntry>,
): readonly LeftRun[] {
  return [
    ...steps.flatMap((step) => {
      const why = whyLeft(step)
      const pending = step.locked?.pending
      return why === undefined || pending === undefined ? [] : [leftRun(step.entry.name, pending, why)]
    }),
    ...[...leftover].flatMap(([name, { pending }]) =>
      pending === undefined ? [] : [leftRun(name, pending, 'removed')],
    ),
  ]
}

function whyLeft({ action, hash, locked, waitsFor }: DecidedRow): LeftRun['why'] | undefined {
  const { pending } = locked ?? {}
  if (pending === undefined) return undefined
  if (action.do === 'create' && action.why === 'unconfirmed') return undefined
  if (action.do === 'create') {
    if (waitsFor.length > 0) return 'waiting'
    return pending.hash === hash ? 'forced' : 'changed'
  }
  const isOther = action.do === 'up_to_date' || (action.do === 'download' && action.why !== 'unfinished')
  return isOther ? 'changed' : undefined
}

const leftRun = (name: string, pending: Pending, why: LeftRun['why']): LeftRun => ({
  name,
  run: pending.state === 'accepted' ? pending.run : undefined,
  key: pending.state === 'unconfirmed' ? pending.key : undefined,
  service: pending.service,
  why,
})
