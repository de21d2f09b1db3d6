/** Opens the files of the state folder: the journal, and the ledger of the rate limit. */
import { join } from 'node:path'
import { RushesError, usageError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import { isCorruption } from '../../host/corruption.js'
import { NewerFormat } from '../../host/database.js'
import { describeError } from '../../host/system-error.js'
import { type Journal, openJournal } from '../../journal/index.js'
import { withFallback } from '../../limiter/fallback-ledger.js'
import type { Ledger } from '../../limiter/index.js'
import { budgetOf, openSharedLedger } from '../../limiter/shared-ledger.js'
import { RUNS_LIMIT } from '../../protocol/limits.js'
import { JOURNAL_FILE } from '../settings/folders.js'

export const LEDGER_FILE = 'limits.db'

export interface StateOptions {
  readonly folder: string
  readonly clock: Clock
  warn(message: string): void
}

export const reasonOf = (error: unknown): string => describeError(error)

const newerState = (folder: string, cause: NewerFormat) =>
  new RushesError(
    'usage',
    `The state folder ${folder} was written by a newer version of rushes (${cause.message}).`,
    { hint: 'Use that version, or set RUSHES_STATE_DIR to another folder.', cause },
  )

/** The only problem of the state folder that ends every command. */
export const isNewerState = (error: unknown): boolean =>
  error instanceof Error && error.cause instanceof NewerFormat

/** `from` is the journal, or a write-ahead log beside it. */
const quarantineWarning = (path: string, to: string, from: string): string =>
  from === path
    ? `The journal ${path} is damaged. It was renamed to ${to}. A new journal was created; earlier runs are not in it.`
    : `${from} does not belong to the journal. It was renamed to ${to}.`

/** Throws `usage` for a newer format, else the system's error. A corrupt file is quarantined, with a warning. */
function open({ folder, clock, warn }: StateOptions): Journal {
  const path = join(folder, JOURNAL_FILE)
  try {
    return openJournal({
      path,
      now: () => clock.now(),
      onQuarantine: (to, from) => warn(quarantineWarning(path, to, from)),
    })
  } catch (error) {
    throw error instanceof NewerFormat ? newerState(folder, error) : error
  }
}

function orUsage<Result>(path: string, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    if (error instanceof RushesError) throw error
    throw usageError(
      `Cannot use the journal ${describeError(error, path)}.`,
      'Check that the folder is writable and that the disk has space. To use another folder, set RUSHES_STATE_DIR.',
    )
  }
}

/**
 * Throws `usage`, and so does every call. A corrupt page may be found long after the file was opened: then too the file is
 * quarantined, and the call is repeated on a new one, as it is when the file was removed or another process has replaced it.
 * The rows of this command are written to the new one.
 */
export function openStateJournal(options: StateOptions): Journal {
  const path = join(options.folder, JOURNAL_FILE)
  let journal = orUsage(path, () => open(options))

  function replace(): void {
    const rows = journal.ownRows()
    journal.close()
    // Whoever quarantined it has warned.
    if (journal.wasRemoved())
      options.warn(
        `The journal ${path} was removed while this command was running. The new journal contains only the runs created since, and those of this command.`,
      )
    journal = open(options)
    journal.restore(rows)
  }

  function call(name: keyof Journal, args: readonly unknown[]): unknown {
    const method = () => (journal[name] as (...args: readonly unknown[]) => unknown)(...args)
    if (!journal.isCurrent()) replace()
    try {
      return method()
    } catch (error) {
      if (isCorruption(error)) journal.quarantine()
      else if (journal.isCurrent()) throw error
      replace()
      return method()
    }
  }

  /** What this command wrote is written again if the file was removed after its last call. */
  function close(): void {
    try {
      if (!journal.isCurrent() && journal.ownRows().length > 0) replace()
    } catch (error) {
      options.warn(`Cannot write the journal ${describeError(error, path)}. Keep the ids that were printed.`)
    }
    journal.close()
  }

  const methods = (Object.keys(journal) as (keyof Journal)[]).map((name) => [
    name,
    (...args: readonly unknown[]) => orUsage(path, () => call(name, args)),
  ])
  return { ...Object.fromEntries(methods), close }
}

export interface StateLedgerOptions extends StateOptions {
  readonly origin: string
  readonly apiKey: string
}

/** The limit that all processes share; without a usable file, a warning and no ledger. Throws `usage` for a newer format. */
export function openStateLedger({ folder, clock, warn, origin, apiKey }: StateLedgerOptions): {
  /** Undefined: use one of this process. */
  readonly ledger: Ledger | undefined
  close(): void
} {
  const path = join(folder, LEDGER_FILE)
  const warnOnce = (error: unknown) =>
    warn(
      `The rate limit applies to this process alone, not to all rushes processes. ${error instanceof RushesError ? error.message : `Cannot use ${describeError(error, path)}.`}`,
    )
  try {
    const shared = openSharedLedger({
      path,
      budget: budgetOf(origin, apiKey),
      limit: RUNS_LIMIT,
      clock,
    })
    return {
      ledger: withFallback(shared, { limit: RUNS_LIMIT, clock, onLost: warnOnce }),
      close: () => shared.close(),
    }
  } catch (error) {
    if (error instanceof NewerFormat) throw newerState(folder, error)
    warnOnce(error)
    return { ledger: undefined, close() {} }
  }
}
