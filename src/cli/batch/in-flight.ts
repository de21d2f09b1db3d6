/** What a batch has in flight: only the journal knows, and, of an earlier version, the lock file. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { EarlierCreate, Lock } from '../../batch/lock/lock.js'
import { earlierFlights, type Flight } from '../../batch/plan/index.js'
import { type BatchName, JOURNAL_FILE, type Journal, type JournalRun } from '../../journal/index.js'
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
  const nothing = { flights: earlierFlights(lock), isElsewhere: lock.working !== undefined }
  if (!existsSync(join(ctx.stateFolder, JOURNAL_FILE))) return nothing
  const journal = await ctx.openJournal()
  const address = await ctx.address().catch(() => undefined)
  const found = journal.tryRead((): InFlight => {
    const own = journal.inFlight({ id: lock.batch, lockPath }).map((run) => flightOf(run, journal))
    const earlier = earlierFlights(lock).flatMap((flight) => {
      const create = lock.earlier.get(flight.name) as EarlierCreate
      return own.some(({ name, hash }) => name === flight.name && hash === flight.hash)
        ? []
        : known(flight, create, journal, create.service ?? address)
    })
    const { working } = lock
    return { flights: [...own, ...earlier], isElsewhere: working !== undefined && working !== journal.id }
  })
  return found ?? nothing
}

function flightOf(run: JournalRun, journal: Journal): Flight {
  const { entry = '', identity: hash, kind, model, address, id, key, row, urls } = run
  const files = journal.filesOf(run)
  return { name: entry, hash, kind: kind as Kind | undefined, model, address, run: id, key, row, urls, files }
}

/** Completes a create of an earlier version with what the journal knows of it. Empty: it was not sent. */
function known(
  flight: Flight,
  { token }: EarlierCreate,
  journal: Journal,
  address: string | undefined,
): readonly Flight[] {
  if (flight.run !== undefined || token === undefined || address === undefined) return [flight]
  const run = journal.findByRequest(address, token)
  if (run !== undefined) return [{ ...flight, run: run.id, key: run.key, row: run.row }]
  return journal.wasPrepared(address, token) ? [] : [flight]
}

/** Writes the creates of an earlier version into the journal, before the lock file is written without them. */
export function adoptEarlier(
  journal: Journal,
  { earlier }: Lock,
  batch: BatchName,
  { address, profile }: { readonly address: string; readonly profile: string },
): void {
  for (const [entry, { hash, kind, model, service, sentAtMs, run, token }] of earlier) {
    const requestId = token ?? `earlier ${entry} ${hash} ${sentAtMs}`
    const where = { address: service ?? address, profile }
    journal.adopt(
      { ...where, kind, model, input: {}, identity: hash, requestId, batch, entry },
      run,
      sentAtMs,
    )
  }
}
