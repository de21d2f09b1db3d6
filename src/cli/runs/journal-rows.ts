/** Rows of the journal by what a person types: an id or a key. Only the journal is asked. */
import { usageError } from '../../errors.js'
import type { Journal, JournalRun } from '../../journal/index.js'
import { shortened } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { addressOr, livesElsewhere } from './where.js'

/** The id, or the key of a row that has none. */
export const nameOfRun = ({ id, key }: JournalRun): string => id ?? key ?? ''

export const isFinished = ({ phase }: JournalRun): boolean => phase === 'succeeded' || phase === 'failed'

/**
 * The run of this name: at the current address if there is one, else wherever it is. `~3f2a` may be written without its
 * sign. Throws `usage`.
 */
export async function rowOf(ctx: Context, journal: Journal, name: string): Promise<JournalRun> {
  const byKey = journal.findByKey(/^[0-9a-f]{4,}$/.test(name) ? `~${name}` : name)
  if (byKey !== undefined) return byKey
  const here = await addressOr(ctx)
  const run = here === undefined ? undefined : journal.find(here, name)
  if (run !== undefined) return run
  const isNamed = ctx.globals.local || ctx.globals.baseUrl !== undefined
  const [elsewhere] = journal.findAtEveryAddress(name)
  if (elsewhere !== undefined) {
    if (isNamed) throw await livesElsewhere(ctx, name, elsewhere)
    return elsewhere
  }
  throw usageError(
    `${shortened(name)} is not in the journal.`,
    '`rushes list` shows the runs created on this machine.',
  )
}
