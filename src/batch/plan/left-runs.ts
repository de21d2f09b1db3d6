/** Runs of the lock file that may be paid for, and that no row of the plan waits for: they are named before they are left. Pure. */
import type { LockEntry, Pending } from '../lock/lock.js'
import type { Action } from './decide.js'
import type { Paired } from './pair.js'

export interface LeftRun {
  /** Name of the row. */
  readonly name: string
  /** Undefined where the outcome of its create is unknown. */
  readonly run: string | undefined
  /** Of the journal's row of a create with an unknown outcome. */
  readonly key: string | undefined
  /** The address that it was sent to. */
  readonly service: string | undefined
  /** `waiting`: the row has changed unless the rows that it uses get the same bytes again. */
  readonly why: 'changed' | 'waiting' | 'forced' | 'removed'
}

interface Planned extends Paired {
  readonly action: Action
  readonly waitsFor: readonly string[]
}

/** `leftover`: entries that no row of the manifest has any more. */
export function leftRunsOf(
  steps: readonly Planned[],
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

function whyLeft({ action, hash, locked, waitsFor }: Planned): LeftRun['why'] | undefined {
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
