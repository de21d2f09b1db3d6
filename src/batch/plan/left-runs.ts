/** Finds runs that may be paid for, and that no row of the plan uses. Pure. */
import type { RowAction } from './decide.js'
import type { Flight } from './flights.js'
import type { Paired } from './pair.js'

/** A run in flight that may be paid for, but that no row of the plan uses. The user is warned about it. */
export interface LeftRun {
  readonly flight: Flight
  /** `waiting`: the row has changed, unless the outputs that it uses are created again with the same bytes. */
  readonly why: 'changed' | 'waiting' | 'forced' | 'removed'
}

interface DecidedRow extends Paired {
  readonly action: RowAction
  readonly waitsFor: readonly string[]
}

/** `left`: runs in flight that no row has taken. */
export function leftRunsOf(steps: readonly DecidedRow[], left: readonly Flight[]): readonly LeftRun[] {
  const byName = new Map(steps.map((step) => [step.entry.name, step]))
  const forced = steps.flatMap(({ action, flight }) =>
    flight !== undefined && action.do === 'create' && action.why === 'forced' ? [flight] : [],
  )
  return [
    ...forced.map((flight): LeftRun => ({ flight, why: 'forced' })),
    ...left.flatMap((flight): readonly LeftRun[] => {
      const step = byName.get(flight.name)
      if (step === undefined) return [{ flight, why: 'removed' }]
      // Of a row that was made since, the batch that made it has told.
      if (step.action.do === 'skip' || step.action.do === 'up_to_date') return []
      return [{ flight, why: step.waitsFor.length > 0 ? 'waiting' : 'changed' }]
    }),
  ]
}
