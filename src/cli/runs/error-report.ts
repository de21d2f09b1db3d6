/** Prints the errors of many runs: equal ones in full once, and at the end how many more there were. */
import { EXIT, RushesError } from '../../errors.js'
import type { Context } from '../context/context.js'
import { plural } from '../terminal/plural.js'

/** Of more runs than this, no ids are listed. */
const MAX_LISTED = 10

export interface ErrorReport {
  /** All of them, for the exit code. */
  readonly errors: readonly RushesError[]
  /** Printed now, unless an equal one was printed. */
  add(error: RushesError): void
  /** Printed by somebody else, together with others. */
  addSilently(error: RushesError): void
  print(error: RushesError): void
  /** Prints how many more runs had each error. */
  end(): void
}

export function createErrorReport({ out, interrupts }: Pick<Context, 'out' | 'interrupts'>): ErrorReport {
  const errors: RushesError[] = []
  const groups = new Map<string, { readonly error: RushesError; readonly more: RushesError[] }>()

  function print(error: RushesError): void {
    // The reader of standard output has gone away: the program ends without a word.
    const isSilent = interrupts.first.aborted && error.exitCode === EXIT.stdoutClosed
    if (!isSilent) out.error(error)
  }

  return {
    errors,
    print,
    add(error) {
      errors.push(error)
      const group = groups.get(keyOf(error))
      if (group !== undefined) return void group.more.push(error)
      groups.set(keyOf(error), { error, more: [] })
      print(error)
    },
    addSilently: (error) => void errors.push(error),
    end() {
      for (const { error, more } of groups.values()) {
        const [only] = more
        if (only !== undefined) print(more.length === 1 ? only : sameAgain(error, more))
      }
    },
  }
}

/** Equal for errors that differ in their run alone. */
const keyOf = ({ code, message, hint, runId = '' }: RushesError): string =>
  JSON.stringify([code, message, runId === '' ? hint : hint?.replaceAll(runId, '')])

function sameAgain(error: RushesError, more: readonly RushesError[]): RushesError {
  const ids = more.flatMap(({ runId }) => runId ?? [])
  const named = ids.length <= MAX_LISTED ? ids.join(' ') : 'rushes list'
  return new RushesError(error.code, `${plural(more.length, 'more run')}: ${error.message}`, {
    hint: ids.length === 0 ? undefined : `Their ids: ${named}`,
    exitCode: error.exitCode,
    httpStatus: error.httpStatus,
    cause: error,
  })
}
