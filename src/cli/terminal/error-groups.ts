/** Folds equal errors of many runs: prints the first error of each kind in full, and counts the others. */
import type { RushesError } from '../../errors.js'

export interface ErrorGroups<Label = undefined> {
  /** Returns whether the error is the first of its kind. */
  add(error: RushesError, label: Label): boolean
  /** Kinds with more than one error. `more` does not contain the first error, which was already printed. */
  repeated(): readonly RepeatedError<Label>[]
}

export interface RepeatedError<Label> {
  /** The first error of its kind. */
  readonly error: RushesError
  readonly more: readonly { readonly error: RushesError; readonly label: Label }[]
}

export function createErrorGroups<Label = undefined>(): ErrorGroups<Label> {
  const groups = new Map<string, { error: RushesError; more: { error: RushesError; label: Label }[] }>()
  return {
    add(error, label) {
      const group = groups.get(kindOf(error))
      if (group === undefined) groups.set(kindOf(error), { error, more: [] })
      else group.more.push({ error, label })
      return group === undefined
    },
    repeated: () => [...groups.values()].filter(({ more }) => more.length > 0),
  }
}

/** Key of a row of the journal without a run id, as it is printed. */
const JOURNAL_KEY = /~[0-9a-f]{4,}/g

/** Key of the error's kind. Equal for errors that differ only in the run id, or in the key of the create. */
const kindOf = ({ code, message, hint, runId = '' }: RushesError): string => {
  const named = runId === '' ? hint : hint?.replaceAll(runId, '')
  return JSON.stringify([code, message, named?.replace(JOURNAL_KEY, '')])
}
