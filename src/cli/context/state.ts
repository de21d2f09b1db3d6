/** Opens the files in the state folder: the journal, and the ledger of the rate limit. */
import { join } from 'node:path'
import { RushesError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import { HeldFile, isCorruption } from '../../host/corruption.js'
import { NewerFormat } from '../../host/database.js'
import { describeError, isBusy } from '../../host/system-error.js'
import { type Journal, LOCK_TIMEOUT_MS, openJournal, type SavedRows } from '../../journal/index.js'
import type { Ledger } from '../../limiter/index.js'
import { openSharedLedger, withFallback } from '../../limiter/shared-ledger.js'
import { JOURNAL_FILE } from '../settings/folders.js'

export const LEDGER_FILE = 'limits.db'

export interface StateOptions {
  readonly folder: string
  readonly clock: Clock
  /** Maximum wait in ms for another process's lock when the journal is opened. */
  readonly lockTimeoutMs?: number | undefined
  warn(message: string): void
}

const newerState = (folder: string, cause: NewerFormat) =>
  new RushesError(
    'usage',
    `The state folder ${folder} was written by a newer version of rushes (${cause.message}).`,
    { hint: 'Use that version, or set RUSHES_STATE_DIR to another folder.', cause },
  )

/**
 * Whether a newer version wrote the state folder. This is the only problem of the state folder that ends every command.
 */
export const isNewerState = (error: unknown): boolean =>
  error instanceof Error && error.cause instanceof NewerFormat

/** Warning for a quarantined file. `from`: the journal, or a write-ahead log beside it. */
const quarantineWarning = (path: string, to: string, from: string): string =>
  from === path
    ? `The journal ${path} is damaged. It was renamed to ${to}. A new journal was created; earlier runs are not in it.`
    : `${from} does not belong to the journal. It was renamed to ${to}.`

const hasRows = ({ runs, prepared }: SavedRows): boolean => runs.length > 0 || prepared.length > 0

/**
 * Opens the journal. Throws `usage` for a newer format, and the system's error otherwise. A corrupt file is
 * quarantined, with a warning.
 */
function open({ folder, clock, warn, lockTimeoutMs }: StateOptions): Journal {
  const path = join(folder, JOURNAL_FILE)
  try {
    return openJournal({
      path,
      ...(lockTimeoutMs !== undefined && { lockTimeoutMs }),
      now: () => clock.now(),
      onQuarantine: (to, from) => warn(quarantineWarning(path, to, from)),
    })
  } catch (error) {
    throw error instanceof NewerFormat ? newerState(folder, error) : error
  }
}

function withUsageError<Result>(path: string, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    if (error instanceof RushesError) throw error
    throw new RushesError('usage', `Cannot use the journal ${describeError(error, path)}.`, {
      hint: `${
        error instanceof HeldFile
          ? 'End that process, then run the command again.'
          : 'Check that the folder is writable and that the disk has space.'
      } To use another folder, set RUSHES_STATE_DIR.`,
      cause: error,
    })
  }
}

/**
 * Opens the journal. This function and every method of the journal throw `usage`. A method may find a corrupt page long
 * after the file was opened; it then quarantines the file and repeats its call on a new file. It also repeats the call
 * on the new file when the journal was removed or another process has replaced it. The rows of this command are written
 * to the new file.
 */
export function openStateJournal(options: StateOptions): Journal {
  const path = join(options.folder, JOURNAL_FILE)
  let journal = withUsageError(path, () => open(options))
  let isCorrupt = false

  /** Opens the new file and writes the rows of this command to it. After a failure the next call tries again. */
  function replace(): void {
    journal.close()
    // Warns only for a removed file: the process that quarantines a file prints its own warning.
    const removed = journal.wasRemoved()
    const next = open({ ...options, lockTimeoutMs: undefined })
    try {
      next.restore(journal.ownRows())
    } catch (error) {
      next.close()
      throw error
    }
    if (removed)
      options.warn(
        `The journal ${path} was removed while this command was running. ` +
          'The new journal contains only the runs created since, and those of this command.',
      )
    journal = next
    isCorrupt = false
  }

  function quarantineAndReplace(): void {
    isCorrupt = true
    journal.quarantine()
    replace()
  }

  function call(name: keyof Journal, args: readonly unknown[]): unknown {
    const method = () => (journal[name] as (...args: readonly unknown[]) => unknown)(...args)
    if (isCorrupt) quarantineAndReplace()
    else if (!journal.isCurrent()) replace()
    try {
      return method()
    } catch (error) {
      if (isCorruption(error)) quarantineAndReplace()
      else if (journal.isCurrent()) throw error
      else replace()
      return method()
    }
  }

  /**
   * Closes the journal. If the file was removed after the last call, first writes the rows of this command to a new
   * file.
   */
  function close(): void {
    try {
      if (!journal.isCurrent() && hasRows(journal.ownRows())) replace()
    } catch (error) {
      options.warn(`Cannot write the journal ${describeError(error, path)}. Keep the ids that were printed.`)
    }
    journal.close()
  }

  const methods = (Object.keys(journal) as (keyof Journal)[]).map((name) => [
    name,
    (...args: readonly unknown[]) => withUsageError(path, () => call(name, args)),
  ])
  return { ...Object.fromEntries(methods), close }
}

/** Length of one wait for the lock, which blocks the process. A signal takes effect within this time. */
const LOCK_SLICE_MS = 500

/**
 * Opens the journal and waits for the lock of another process. Each attempt blocks this process, so it waits in slices.
 * Also rejects with the signal's reason.
 */
export async function whenUnlocked(
  open: (lockTimeoutMs: number) => Journal,
  signal: AbortSignal,
  waitMs = LOCK_TIMEOUT_MS,
): Promise<Journal> {
  for (let waitedMs = LOCK_SLICE_MS; ; waitedMs += LOCK_SLICE_MS) {
    try {
      const journal = open(LOCK_SLICE_MS)
      journal.setLockTimeout(LOCK_TIMEOUT_MS)
      return journal
    } catch (error) {
      if (waitedMs >= waitMs || !(error instanceof RushesError && isBusy(error.cause))) throw error
    }
    await new Promise((resolve) => setImmediate(resolve))
    signal.throwIfAborted()
  }
}

export interface StateLedgerOptions extends StateOptions {
  /** From `keyHashOf`. */
  readonly keyHash: string
}

/**
 * Opens the ledger that all processes share. While its file cannot be used, the limit applies to this process only,
 * with a warning. Throws `usage` for a newer format.
 */
export function openStateLedger({ folder, clock, warn, keyHash }: StateLedgerOptions): Ledger & {
  close(): void
} {
  const path = join(folder, LEDGER_FILE)
  let isOpening = true
  const onLost = (error: unknown) => {
    if (isOpening && error instanceof NewerFormat) throw newerState(folder, error)
    warn(
      'The rate limit applies to this process alone from now on, not to all rushes processes. ' +
        `${error instanceof RushesError ? error.message : `Cannot use ${describeError(error, path)}.`}`,
    )
  }
  const ledger = withFallback(() => openSharedLedger({ path, keyHash, clock }), { clock, onLost })
  isOpening = false
  return ledger
}
