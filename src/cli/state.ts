/** The files of the state folder: the journal, and the ledger of limits. */
import { join } from 'node:path'
import { RushesError, usageError } from '../errors.js'
import type { Clock } from '../host/clock.js'
import { NewerFormat } from '../host/database.js'
import { type Journal, openJournal } from '../journal/index.js'
import { withFallback } from '../limiter/fallback.js'
import type { Ledger } from '../limiter/index.js'
import { budgetOf, openSharedLedger } from '../limiter/shared.js'
import { RUNS_LIMIT } from '../protocol/limits.js'

export const JOURNAL_FILE = 'journal.db'
export const LEDGER_FILE = 'limits.db'

export interface StateOptions {
  readonly folder: string
  readonly clock: Clock
  warn(message: string): void
}

export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

const newerState = (folder: string, error: NewerFormat) =>
  usageError(
    `The state folder ${folder} was written by a newer version of rushes (${error.message}).`,
    'Use that version, or name another folder: RUSHES_STATE_DIR.',
  )

/** Throws `usage` when it is of a newer format, else the system's error. A damaged one is set aside, with a warning. */
function open({ folder, clock, warn }: StateOptions): Journal {
  const path = join(folder, JOURNAL_FILE)
  try {
    return openJournal({
      path,
      now: () => clock.now(),
      onSetAside: (name) =>
        warn(
          `The journal ${path} is damaged. It is kept as ${name}, and a new one was begun: earlier runs are not in it.`,
        ),
    })
  } catch (error) {
    throw error instanceof NewerFormat ? newerState(folder, error) : error
  }
}

/** For commands that read it. Throws `usage`. */
export function openStateJournal(options: StateOptions): Journal {
  try {
    return open(options)
  } catch (error) {
    if (error instanceof RushesError) throw error
    throw usageError(
      `The journal ${join(options.folder, JOURNAL_FILE)} cannot be opened: ${reasonOf(error)}.`,
      'Is the folder writable? RUSHES_STATE_DIR names another one.',
    )
  }
}

/** For commands that go on without it, after a warning. Throws `usage` when it is of a newer format. */
export function openStateJournalIfPossible(options: StateOptions): Journal | undefined {
  try {
    return open(options)
  } catch (error) {
    if (error instanceof RushesError) throw error
    options.warn(
      `The journal ${join(options.folder, JOURNAL_FILE)} cannot be written (${reasonOf(error)}): this will not be remembered. Keep the ids that are printed.`,
    )
    return undefined
  }
}

export interface StateLedgerOptions extends StateOptions {
  readonly origin: string
  readonly apiKey: string
}

/** The limit shared by all processes; within this one, with a warning, where no file can be shared. Throws `usage` for a newer format. */
export function openStateLedger({ folder, clock, warn, origin, apiKey }: StateLedgerOptions): {
  /** Undefined where there is none. */
  readonly ledger: Ledger | undefined
  close(): void
} {
  const onLost = (error: unknown) =>
    warn(
      `The limit cannot be shared with other processes (${join(folder, LEDGER_FILE)}: ${reasonOf(error)}); it is kept within this one.`,
    )
  try {
    const shared = openSharedLedger({
      path: join(folder, LEDGER_FILE),
      budget: budgetOf(origin, apiKey),
      limit: RUNS_LIMIT,
      clock,
    })
    return { ledger: withFallback(shared, { limit: RUNS_LIMIT, clock, onLost }), close: () => shared.close() }
  } catch (error) {
    if (error instanceof NewerFormat) throw newerState(folder, error)
    onLost(error)
    return { ledger: undefined, close() {} }
  }
}
