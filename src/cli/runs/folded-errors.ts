/** One error for the further runs, or creates, with the same error as one that was printed before. */
import { RushesError } from '../../errors.js'
import type { RepeatedError } from '../terminal/error-groups.js'
import { plural } from '../terminal/format.js'

/** Maximum number of ids or keys that are listed. */
const MAX_LISTED = 10

export function repeatedRuns({ error, more }: RepeatedError<undefined>): RushesError {
  const [only, ...others] = more
  if (only !== undefined && others.length === 0) return only.error
  const ids = more.flatMap((each) => each.error.runId ?? [])
  const listed = ids.length <= MAX_LISTED ? `Their ids: ${ids.join(' ')}` : '`rushes list` shows their ids.'
  return new RushesError(error.code, `${plural(more.length, 'more run')}: ${error.message}`, {
    hint: ids.length === 0 ? undefined : listed,
    exitCode: error.exitCode,
    httpStatus: error.httpStatus,
    cause: error,
  })
}

/** `keys`: of the further creates in the journal, which has none where it cannot be written. */
export function repeatedCreates(error: RushesError, keys: readonly (string | undefined)[]): RushesError {
  const known = keys.filter((key) => key !== undefined)
  const listed =
    known.length <= MAX_LISTED
      ? `Their keys: ${known.join(' ')}`
      : '`rushes list --status unconfirmed` shows their keys.'
  return error.with({
    message: `${plural(keys.length, 'more create')}: ${error.message}`,
    hint: known.length === 0 ? undefined : listed,
  })
}
