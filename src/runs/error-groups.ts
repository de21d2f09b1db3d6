/** Folds equal errors of many runs: the first of a kind is printed in full, and the others are counted. */
import type { RushesError } from '../errors.js'

export interface ErrorGroups<Label> {
  /** Whether it is the first of its kind. */
  add(error: RushesError, label: Label): boolean
  /** The kinds that came more than once, without their first error. */
  repeated(): readonly RepeatedError<Label>[]
}

export interface RepeatedError<Label> {
  /** The first of its kind. */
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

/** Equal for errors that differ in their run alone. */
const kindOf = ({ code, message, hint, runId = '' }: RushesError): string =>
  JSON.stringify([code, message, runId === '' ? hint : hint?.replaceAll(runId, '')])
