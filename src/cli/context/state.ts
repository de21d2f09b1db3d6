/** The files of the state folder: the journal, and the ledger of limits. */
import { join } from 'node:path'
import { messageOf, RushesError, usageError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import { isDamage } from '../../host/corruption.js'
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

/** What no command goes on without: everything else about the state folder is survived. */
export const isNewerState = (error: unknown): boolean =>
  error instanceof Error && error.cause instanceof NewerFormat

const saySetAside = (path: string, name: string): string =>
  `The journal ${path} is damaged. It is kept as ${name}, and a new one was begun: earlier runs are not in it.`

/** Throws `usage` when it is of a newer format, else the system's error. A damaged one is set aside, with a warning. */
function open({ folder, clock, warn }: StateOptions): Journal {
  const path = join(folder, JOURNAL_FILE)
  try {
    return openJournal({
      path,
      now: () => clock.now(),
      onSetAside: (name) => warn(saySetAside(path, name)),
    })
  } catch (error) {
    throw error instanceof NewerFormat ? newerState(folder, error) : error
  }
}

/**
 * A damaged page shows only when it is read, long after the opening: then too the file is set aside, and what was
 * asked is asked of a new one. So it is where a neighbour set it aside meanwhile, or somebody removed it.
 */
function mending(options: StateOptions): Journal {
  let journal = open(options)
  const attempt = (name: keyof Journal, words: readonly unknown[]): unknown => {
    const call = () => (journal[name] as (...words: readonly unknown[]) => unknown)(...words)
    if (name === 'close') return call()
    if (!journal.isCurrent()) {
      journal.close()
      journal = open(options)
    }
    try {
      return call()
    } catch (error) {
      if (isDamage(error)) journal.setAside()
      else if (journal.isCurrent()) throw error
      else journal.close()
      journal = open(options)
      return call()
    }
  }
  return mapped(
    journal,
    (name) =>
      (...words: readonly unknown[]) =>
        attempt(name, words),
  )
}

/** The same methods, each made anew. */
const mapped = (journal: Journal, method: (name: keyof Journal) => unknown): Journal =>
  Object.fromEntries(
    (Object.keys(journal) as (keyof Journal)[]).map((name) => [name, method(name)]),
  ) as unknown as Journal

/** Throws `usage`, and so does every call. */
export function openStateJournal(options: StateOptions): Journal {
  const path = join(options.folder, JOURNAL_FILE)
  const orUsage = <Result>(work: () => Result): Result => {
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
  const journal = orUsage(() => mending(options))
  return mapped(
    journal,
    (name) =>
      (...words: readonly unknown[]) =>
        orUsage(() => (journal[name] as (...words: readonly unknown[]) => unknown)(...words)),
  )
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
