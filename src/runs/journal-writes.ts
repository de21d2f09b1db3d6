/**
 * Writes the journal for one command. A call fails when the file is locked for longer than the timeout, the
 * disk is full, or the folder is
 * read-only. The next call first repeats the missed writes; so does the end of the command.
 */
import { messageOf, RushesError } from '../errors.js'
import { errorCode } from '../host/system-error.js'
import { type Journal, LOCK_TIMEOUT_MS, RepeatedRequest } from '../journal/index.js'

type JournalWork<Result> = (journal: Journal) => Result

export interface JournalWrites {
  /** Undefined when the journal cannot be read. While it cannot be written, it does not have the missed writes. */
  read<Result>(work: JournalWork<Result>): Result | undefined
  /** Repeats missed writes before it reads. Throws a `RushesError` if that fails. */
  readWhole<Result>(work: JournalWork<Result>): Result
  /** Throws a `RushesError` when the journal cannot be written. */
  required<Result>(work: JournalWork<Result>): Result
  /** Undefined when the journal cannot be written. Throws `RepeatedRequest` alone. */
  bestEffort<Result>(work: JournalWork<Result>): Result | undefined
  /** Undefined when the journal cannot be written: then it is repeated before the next call. Throws nothing. */
  repeated<Result>(work: JournalWork<Result>): Result | undefined
  /** Repeats the missed writes once more, when the command ends. Throws nothing. */
  end(): void
}

export interface JournalWritesOptions {
  /** Opens the journal, or returns the open one. Throws when it cannot be opened within `lockTimeoutMs`. */
  journal(lockTimeoutMs: number): Journal
  /** Why it cannot be opened, where that was tried. */
  readonly failure?: unknown
  warn(message: string): void
  note(message: string): void
}

/** While the journal cannot be used, each call blocks the process for as long as this. */
const LOST_LOCK_TIMEOUT_MS = 100
/** At the end of the command. */
const END_LOCK_TIMEOUT_MS = 2_000
/** Of a session that runs for days without a journal. */
const MAX_MISSED = 10_000

export function createJournalWrites({ journal, failure, warn, note }: JournalWritesOptions): JournalWrites {
  let isLost = false
  let isWarned = false
  const missed: JournalWork<unknown>[] = []

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

  function noteReturn(open: Journal): void {
    if (isLost) open.setLockTimeout(LOCK_TIMEOUT_MS)
    isLost = false
    if (isWarned) note('The journal can be written again.')
    isWarned = false
  }

  function whole<Result>(work: JournalWork<Result>, lockTimeoutMs: number): Result {
    try {
      const open = opened(lockTimeoutMs)
      repeatMissed(open)
      return work(open)
    } catch (error) {
      if (!isHopeless(error)) isLost = true
      throw error
    }
  }

  const write = <Result>(work: JournalWork<Result>, lockTimeoutMs: number): Result =>
    whole((open) => {
      const result = work(open)
      noteReturn(open)
      return result
    }, lockTimeoutMs)

  function repeatMissed(open: Journal): void {
    if (missed.length === 0) return
    for (let next = missed[0]; next !== undefined; next = missed[0]) {
      try {
        next(open)
      } catch (error) {
        if (!isHopeless(error)) throw error
        warnOfDropped(error)
      }
      missed.shift()
    }
    noteReturn(open)
  }

  /** Without waiting for a lock: what only reads continues. */
  function tryMissed(open: Journal): void {
    if (missed.length === 0) return
    open.setLockTimeout(0)
    try {
      repeatMissed(open)
    } catch {
      // The journal can still be read.
    }
    open.setLockTimeout(timeoutMs())
  }

  const warnOfDropped = (error: unknown): void =>
    warn(`${messageOf(error)} The journal does not contain this change.`)

  function orUndefined<Result>(
    work: JournalWork<Result>,
    onFailure: (error: unknown) => void,
  ): Result | undefined {
    try {
      return write(work, timeoutMs())
    } catch (error) {
      onFailure(error)
      if (isHopeless(error)) warnOfDropped(error)
      else warnOnce(error)
      return undefined
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

  if (failure !== undefined) {
    isLost = true
    warnOnce(failure)
  }
  return {
    read(work) {
      try {
        const open = opened(timeoutMs())
        tryMissed(open)
        return work(open)
      } catch (error) {
        isLost = true
        warnOnce(error)
        return undefined
      }
    },
    readWhole: (work) => orNothingSent(() => whole(work, LOCK_TIMEOUT_MS)),
    required: (work) => orNothingSent(() => write(work, LOCK_TIMEOUT_MS)),
    bestEffort: (work) =>
      orUndefined(work, (error) => {
        if (error instanceof RepeatedRequest) throw error
      }),
    repeated: (work) =>
      orUndefined(work, (error) => {
        if (!isHopeless(error)) missed.push(work)
        if (missed.length > MAX_MISSED) missed.shift()
      }),
    end() {
      if (missed.length === 0) return
      try {
        whole(() => {}, END_LOCK_TIMEOUT_MS)
      } catch {
        // It was warned of when the first write failed.
      }
    },
  }
}

/** libsql has no name for a value of the wrong type, 3091. */
const HOPELESS =
  /^(SQLITE_(CONSTRAINT_(CHECK|FOREIGNKEY|NOTNULL|PRIMARYKEY|UNIQUE)|MISMATCH|TOOBIG|RANGE)|UNKNOWN_SQLITE_ERROR_3091)$/

/** The values are at fault, not the lock, the disk or the file: it would fail each time, and hold up all later writes. */
function isHopeless(error: unknown): boolean {
  if (error instanceof RepeatedRequest) return true
  const cause = error instanceof RushesError ? error.cause : error
  const code = errorCode(cause)
  return code === undefined ? cause !== undefined : HOPELESS.test(code)
}
