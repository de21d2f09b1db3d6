/** Opens the files of the state folder: the journal, and the ledger of the rate limit. */
import { join } from 'node:path'
import { messageOf, RushesError, usageError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import { isCorruption } from '../../host/corruption.js'
import { NewerFormat } from '../../host/database.js'
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

export const reasonOf = (error: unknown): string => messageOf(error)

const newerState = (folder: string, cause: NewerFormat) =>
  new RushesError(
    'usage',
    `The state folder ${folder} was written by a newer version of rushes (${cause.message}).`,
    { hint: 'Use that version, or name another folder: RUSHES_STATE_DIR.', cause },
  )

/** The only problem of the state folder that ends every command. */
export const isNewerState = (error: unknown): boolean =>
  error instanceof Error && error.cause instanceof NewerFormat

const quarantineWarning = (path: string, name: string): string =>
  `The journal ${path} is damaged. It is kept as ${name}, and a new one was begun: earlier runs are not in it.`

/** Throws `usage` for a newer format, else the system's error. A corrupt file is quarantined, with a warning. */
function open({ folder, clock, warn }: StateOptions): Journal {
  const path = join(folder, JOURNAL_FILE)
  try {
    return openJournal({
      path,
      now: () => clock.now(),
      onQuarantine: (name) => warn(quarantineWarning(path, name)),
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
      `The journal ${path} cannot be used: ${reasonOf(error)}.`,
      'Is the folder writable, and is there room on the disk? RUSHES_STATE_DIR names another one.',
    )
  }
}

/**
 * Throws `usage`, and so does every call. A corrupt page may be found long after the file was opened: then too the file is
 * quarantined, and the call is repeated on a new one, as it is when another process has replaced or removed the file.
 */
export function openStateJournal(options: StateOptions): Journal {
  const path = join(options.folder, JOURNAL_FILE)
  let journal = orUsage(path, () => open(options))
  const call = (name: keyof Journal, args: readonly unknown[]): unknown => {
    const method = () => (journal[name] as (...args: readonly unknown[]) => unknown)(...args)
    if (name === 'close') return method()
    if (!journal.isCurrent()) {
      journal.close()
      journal = open(options)
    }
    try {
      return method()
    } catch (error) {
      if (isCorruption(error)) journal.quarantine()
      else if (journal.isCurrent()) throw error
      else journal.close()
      journal = open(options)
      return method()
    }
  }
  const methods = (Object.keys(journal) as (keyof Journal)[]).map((name) => [
    name,
    (...args: readonly unknown[]) => orUsage(path, () => call(name, args)),
  ])
  return Object.fromEntries(methods) as unknown as Journal
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
  const warnOnce = (error: unknown) =>
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
