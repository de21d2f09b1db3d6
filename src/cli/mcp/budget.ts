/** The number of runs that a session may create: an agent in a loop must not empty an account. */
import { usageError } from '../../errors.js'
import { plural } from '../terminal/plural.js'

export interface Budget {
  readonly left: number
  /** Counts one create. Throws `usage` when none is left. */
  take(): void
  /** The create was certainly not accepted. */
  giveBack(): void
  /** Throws `usage` when none is left. */
  check(): void
}

export function createBudget(maxRuns: number): Budget {
  let used = 0
  const check = () => {
    if (used >= maxRuns)
      throw usageError(
        `This session may create ${plural(maxRuns, 'run')}, and all of them were created. Nothing was sent.`,
        'Ask the user. A new session, or `rushes mcp` with a higher --max-runs, allows more.',
      )
  }
  return {
    get left() {
      return maxRuns - used
    },
    check,
    take() {
      check()
      used++
    },
    giveBack() {
      used--
    },
  }
}
