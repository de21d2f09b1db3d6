/**
 * Writes the journal for one command. A write fails if the file is locked for longer than the timeout, the disk is
 * full, or the folder is read-only. The next write, and the end of the command, first repeat the failed writes.
 */
import { messageOf, RushesError } from '../errors.js'
import { errorCode } from '../host/system-error.js'
import { type Journal, LOCK_TIMEOUT_MS, RepeatedRequest } from '../journal/index.js'

type JournalWork<Result> = (journal: Journal) => Result

export interface JournalWrites {
  /** Reads the journal. Undefined if it cannot be read. Failed writes may be missing from the result. */
  read<Result>(work: JournalWork<Result>): Result | undefined
  /** Repeats failed writes, then reads. Throws a `RushesError` if either fails. */
  readWhole<Result>(work: JournalWork<Result>): Result
  /** Writes to the journal. Throws a `RushesError` if that fails. */
  required<Result>(work: JournalWork<Result>): Result
  /** Writes to the journal. Undefined if that fails. Throws only `RepeatedRequest`. */
  bestEffort<Result>(work: JournalWork<Result>): Result | undefined
  /** Writes to the journal. Undefined if that fails: the write is then repeated before the next one. Never throws. */
  repeated<Result>(work: JournalWork<Result>): Result | undefined
  /** Called when the command ends: repeats failed writes once. Never throws. */
  end(): void
}

export interface JournalWritesOptions {
  /** Opens the journal, or returns the open one. Throws when it cannot be opened within `lockTimeoutMs`. */
  journal(lockTimeoutMs: number): Journal
  /** Error of the last attempt to open the journal. */
  readonly failure?: unknown
  warn(message: string): void
  note(message: string): void
}

/** Timeout for the lock while the journal cannot be used: each call blocks the process for this time. */
const LOST_LOCK_TIMEOUT_MS = 100
/** Timeout for the lock at the end of the command. */
const END_LOCK_TIMEOUT_MS = 2_000
/** Maximum number of failed writes kept in memory, for a session that runs for days without a journal. */
const MAX_FAILED_WRITES = 10_000

export function createJournalWrites({ journal, failure, warn, note }: JournalWritesOptions): JournalWrites {
  let isLost = false
  let isWarned = false
  const failedWrites: JournalWork<unknown>[] = []

  function warnOnce(error: unknown): void {
    if (!isWarned)
      warn(
        `${messageOf(error)} Until it can be used, the runs of this command will not be remembered. Keep the ` +
          `ids that are printed.`,
      )
    isWarned = true
  }

  const timeoutMs = () => (isLost ? LOST_LOCK_TIMEOUT_MS : LOCK_TIMEOUT_MS)

  function opened(lockTimeoutMs: number): Journal {
    const open = journal(lockTimeoutMs)
    if (isLost) open.setLockTimeout(lockTimeoutMs)
    return open
  }

  function noteRecovery(open: Journal): void {
    if (isLost) open.setLockTimeout(LOCK_TIMEOUT_MS)
    isLost = false
    if (isWarned) note('The journal can be written again.')
    isWarned = false
  }

  function repeatThenRun<Result>(work: JournalWork<Result>, lockTimeoutMs: number): Result {
    try {
      const open = opened(lockTimeoutMs)
      repeatFailedWrites(open)
      return work(open)
    } catch (error) {
      if (!hasInvalidValue(error)) isLost = true
      throw error
    }
  }

  const write = <Result>(work: JournalWork<Result>, lockTimeoutMs: number): Result =>
    repeatThenRun((open) => {
      const result = work(open)
      noteRecovery(open)
      return result
    }, lockTimeoutMs)

  function repeatFailedWrites(open: Journal): void {
    if (failedWrites.length === 0) return
    for (let next = failedWrites[0]; next !== undefined; next = failedWrites[0]) {
      try {
        next(open)
      } catch (error) {
        if (!hasInvalidValue(error)) throw error
        warnOfDroppedWrite(error)
      }
      failedWrites.shift()
    }
    noteRecovery(open)
  }

  /** Does not wait for a lock, so that commands which only read are not delayed. */
  function tryFailedWrites(open: Journal): void {
    if (failedWrites.length === 0) return
    open.setLockTimeout(0)
    try {
      repeatFailedWrites(open)
    } catch {
      // The write failed, but the journal can still be read.
    }
    open.setLockTimeout(timeoutMs())
  }

  const warnOfDroppedWrite = (error: unknown): void =>
    warn(`${messageOf(error)} The journal does not contain this change.`)

  function orUndefined<Result>(
    work: JournalWork<Result>,
    onFailure: (error: unknown) => void,
  ): Result | undefined {
    try {
      return write(work, timeoutMs())
    } catch (error) {
      onFailure(error)
      if (hasInvalidValue(error)) warnOfDroppedWrite(error)
      else warnOnce(error)
      return undefined
    }
  }

  if (failure !== undefined) {
    isLost = true
    warnOnce(failure)
  }
  return {
    read(work) {
      try {
        const open = opened(timeoutMs())
        tryFailedWrites(open)
        return work(open)
      } catch (error) {
        isLost = true
        warnOnce(error)
        return undefined
      }
    },
    readWhole: (work) => orNothingSent(() => repeatThenRun(work, LOCK_TIMEOUT_MS)),
    required: (work) => orNothingSent(() => write(work, LOCK_TIMEOUT_MS)),
    bestEffort: (work) =>
      orUndefined(work, (error) => {
        if (error instanceof RepeatedRequest) throw error
      }),
    repeated: (work) =>
      orUndefined(work, (error) => {
        if (!hasInvalidValue(error)) failedWrites.push(work)
        if (failedWrites.length > MAX_FAILED_WRITES) failedWrites.shift()
      }),
    end() {
      if (failedWrites.length === 0) return
      try {
        repeatThenRun(() => {}, END_LOCK_TIMEOUT_MS)
      } catch {
        // The user was warned when the first write failed.
      }
    },
  }
}

function orNothingSent<Result>(work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    if (error instanceof RepeatedRequest || !(error instanceof RushesError)) throw error
    throw error.with({ consequence: 'Nothing was sent.' })
  }
}

/** libsql has no name for error 3091, a value of the wrong type. */
const INVALID_VALUE_ERRORS =
  /^(SQLITE_(CONSTRAINT_(CHECK|FOREIGNKEY|NOTNULL|PRIMARYKEY|UNIQUE)|MISMATCH|TOOBIG|RANGE)|UNKNOWN_SQLITE_ERROR_3091)$/

/**
 * Whether the write would fail each time because its values are invalid. Such a write is not repeated, since it would
 * block all later ones.
 */
function hasInvalidValue(error: unknown): boolean {
  if (error instanceof RepeatedRequest) return true
  const cause = error instanceof RushesError ? error.cause : error
  const code = errorCode(cause)
  return code === undefined ? cause !== undefined : INVALID_VALUE_ERRORS.test(code)
}
