/** What a batch has in flight: only the journal knows. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { Lock } from '../../batch/lock/lock.js'
import type { Flight } from '../../batch/plan/index.js'
import { JOURNAL_FILE, type Journal, type JournalRun } from '../../journal/index.js'
import type { Kind } from '../../protocol/models.js'
import type { Context } from '../context/context.js'

export interface InFlight {
  /** Newest first. */
  readonly flights: readonly Flight[]
  /** Whether the journal of another state folder knows what is in flight. */
  readonly isElsewhere: boolean
}

/** Reads what is in flight. Writes nothing, and creates no journal. */
export async function inFlightOf(ctx: Context, lock: Lock, lockPath: string): Promise<InFlight> {
  const { batch: id, working } = lock
  const nothing = { flights: [], isElsewhere: working !== undefined }
  if (!existsSync(join(ctx.stateFolder, JOURNAL_FILE))) return nothing
  const journal = await ctx.openJournal()
  const found = journal.tryRead(
    (): InFlight => ({
      flights: journal.inFlight({ id, lockPath }).map((run) => flightOf(run, journal)),
      isElsewhere: working !== undefined && working !== journal.id,
    }),
  )
  return found ?? nothing
}

function flightOf(run: JournalRun, journal: Journal): Flight {
  const { entry = '', identity: hash, kind, model, address, id, key, row, urls } = run
  const files = journal.filesOf(run)
  return { name: entry, hash, kind: kind as Kind | undefined, model, address, run: id, key, row, urls, files }
}
