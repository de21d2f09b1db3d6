/** The errors of the creates of one command. They say how many runs exist, so that none advises to pay for them again. */
import type { RushesError } from '../../errors.js'
import type { Result } from '../../runs/run.js'
import { createErrorGroups } from '../terminal/error-groups.js'
import { plural } from '../terminal/format.js'

/** A create that was refused, or whose outcome is unknown. */
export type FailedCreate = Extract<Result, { is: 'refused' | 'unconfirmed' }>

export interface Creates {
  readonly count: number
  readonly isFree: boolean
}

/** Folds equal errors into one, and completes the last one. */
export function createErrors(
  creates: Creates,
  created: number,
  failed: readonly FailedCreate[],
): readonly RushesError[] {
  const groups = createErrorGroups<FailedCreate>()
  const firsts = failed.filter((each) => groups.add(withKeyHint(each), each)).map(withKeyHint)
  // The others are counted by `withRest`; only unconfirmed creates have keys.
  const repeated = groups
    .repeated()
    .filter(({ more }) => more[0]?.label.is === 'unconfirmed')
    .map(({ error, more }) => {
      const keys = more.flatMap(({ label }) => ('key' in label ? (label.key ?? []) : []))
      return error.with({
        message: `${plural(more.length, 'more create')}: ${error.message}`,
        hint: keys.length === 0 ? undefined : listOf(keys),
      })
    })
  return [...firsts, ...repeated].map((error, index, all) =>
    index === all.length - 1 ? withRest(error, creates, created, failed) : withoutRetry(error),
  )
}

/** Maximum number of keys that are listed. */
const MAX_LISTED = 10

const listOf = (keys: readonly string[]): string =>
  keys.length <= MAX_LISTED
    ? `Their keys: ${keys.join(' ')}`
    : '`rushes list --status unconfirmed` shows their keys.'

/** Adds how to find and remove the row of a create whose outcome is unknown. */
function withKeyHint(create: FailedCreate): RushesError {
  const { error } = create
  if (create.is === 'refused' || create.key === undefined) return error
  const { key } = create
  return error.with({
    hint:
      `${error.hint} The journal keeps it as ${key}: see it with \`rushes show '${key}'\`, remove it with ` +
      `\`rushes forget '${key}' --yes\`.`,
  })
}

/** Adds how many runs exist, and how to create the others. */
export function withRest(
  error: RushesError,
  { count, isFree }: Creates,
  created: number,
  failed: readonly FailedCreate[],
): RushesError {
  const unconfirmed = failed.filter(({ is }) => is === 'unconfirmed').length
  const sent = created + unconfirmed
  if (count === 1)
    return error.code === 'interrupted' && sent === 0
      ? error.with({ consequence: 'No run was created.' })
      : error
  const [was, is] = created === 1 ? ['was', 'is'] : ['were', 'are']
  const paid = created === 0 || isFree ? '' : ` and ${is} paid for`
  const doubt = unconfirmed === 0 ? '' : `, ${unconfirmed} unconfirmed`
  const missing = count - sent
  const which = missing === 1 ? 'missing one' : `other ${missing}`
  const rest = `To create the ${which}, run the same command with \`-n ${missing}\`.`
  const hint = [withoutRetry(error).hint, missing === 0 || sent === 0 ? undefined : rest]
  return error.with({
    consequence: `${created} of ${count} runs ${was} created${paid}${doubt}.`,
    hint: hint.filter(Boolean).join(' ') || undefined,
  })
}

/** Some hints end with the advice to try again. The whole command would then create runs that exist once more. */
const withoutRetry = (error: RushesError): RushesError =>
  error.with({ hint: error.hint?.replace(/, then try again\.$/, '.') })
