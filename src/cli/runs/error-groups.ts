/** The errors of many runs: equal ones are folded, the first of each kind in full, and all together decide the exit code. */
import { EXIT, type RushesError } from '../../errors.js'
import { listNames } from '../../protocol/text.js'
import { plural } from '../terminal/format.js'

interface Group {
  readonly first: RushesError
  /** Names of the further runs, rows or creates with this error. */
  readonly others: string[]
}

/** Maximum number of names in a hint. */
const MAX_NAMED = 10

export class ErrorGroups {
  readonly #groups = new Map<string, Group>()

  /** Returns whether the error is the first of its kind. `name`: of its run, row or create. */
  add(error: RushesError, name = error.runId): boolean {
    const kind = kindOf(error)
    const group = this.#groups.get(kind)
    if (group === undefined) this.#groups.set(kind, { first: error, others: [] })
    else if (name !== undefined) group.others.push(name)
    return group === undefined
  }

  /**
   * Returns one error for the others of each kind. `noun`: what failed. `listCommand`: shown if the hint cannot name them all.
   */
  repeated(noun = 'run', listCommand?: string): readonly RushesError[] {
    return [...this.#groups.values()]
      .filter(({ others }) => others.length > 0)
      .map(({ first, others }) => {
        const isCut = others.length > MAX_NAMED && listCommand !== undefined
        return first.with({
          message: `${plural(others.length, `more ${noun}`)}: ${first.message}`,
          hint: `Also ${listNames(others, MAX_NAMED)}.${isCut ? ` List them with \`${listCommand}\`.` : ''}`,
          runId: undefined,
        })
      })
  }
}

/** Key of a row of the journal without a run id, as it is printed. */
const JOURNAL_KEY = /~[0-9a-f]{4,}/g

/** Key of the error's kind. Equal for errors that differ only in the run id, or in the key of the create. */
const kindOf = ({ code, message, hint, runId = '' }: RushesError): string => {
  const named = runId === '' ? hint : hint?.replaceAll(runId, '')
  return JSON.stringify([code, message, named?.replace(JOURNAL_KEY, '')])
}

/**
 * Precedence of exit codes when there are several errors: the first in this list is the exit code. `usage` is last,
 * because a usage error means that nothing was sent.
 */
const PRECEDENCE: readonly number[] = [
  EXIT.outcomeUnknown,
  EXIT.bug,
  EXIT.account,
  EXIT.key,
  EXIT.refused,
  EXIT.rateLimited,
  EXIT.serviceBroken,
  EXIT.network,
  EXIT.notFound,
  EXIT.runFailed,
  EXIT.waitTimeout,
  EXIT.downloadFailed,
  EXIT.usage,
]

/** Returns 0 without errors. A code outside the list (a signal, closed standard output) has the highest precedence. */
export function exitCodeOf(errors: readonly { readonly exitCode: number }[]): number {
  const codes = errors.map(({ exitCode }) => exitCode)
  const other = codes.find((code) => !PRECEDENCE.includes(code))
  return other ?? PRECEDENCE.find((code) => codes.includes(code)) ?? EXIT.ok
}
