/** Folds equal errors of many runs: prints the first error of each kind in full, and counts the others. */
import type { RushesError } from '../errors.js'

interface ErrorGroups<Label> {
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

/** Key of the error's kind. Equal for errors that differ only in the run id. */
const kindOf = ({ code, message, hint, runId = '' }: RushesError): string =>
  JSON.stringify([code, message, runId === '' ? hint : hint?.replaceAll(runId, '')])
