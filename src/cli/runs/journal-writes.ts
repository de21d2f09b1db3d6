/**
 * How one command uses the journal. A call fails when the file is locked for longer than the timeout, the disk is full,
 * or the folder is read-only. The next write tries again, and first repeats what was missed.
 */
import { messageOf, RushesError } from '../../errors.js'
import { type Journal, LOCK_TIMEOUT_MS, RepeatedRequest } from '../../journal/index.js'

export type JournalWork<Result> = (journal: Journal) => Result

export interface JournalWrites {
  /** Undefined when the journal cannot be read. It may not have what was missed. */
  read<Result>(work: JournalWork<Result>): Result | undefined
  /** Throws a `RushesError` when the journal cannot be written. */
  required<Result>(work: JournalWork<Result>): Result
  /** Undefined when the journal cannot be written. Throws `RepeatedRequest` alone. */
  bestEffort<Result>(work: JournalWork<Result>): Result | undefined
  /** Undefined when the journal cannot be written: then it is repeated before the next write. Throws nothing. */
  repeated<Result>(work: JournalWork<Result>): Result | undefined
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
/** Of a session that runs for days without a journal. */
const MAX_MISSED = 10_000

export function createJournalWrites({ journal, failure, warn, note }: JournalWritesOptions): JournalWrites {
  let isLost = false
  let isWarned = false
  const missed: JournalWork<unknown>[] = []

  function warnOnce(error: unknown): void {
    if (!isWarned)
      warn(
        `${messageOf(error)} Until it can be used, the runs of this command will not be remembered. Keep the ids that are printed.`,
      )
    isWarned = true
  }

  const timeoutMs = () => (isLost ? LOST_LOCK_TIMEOUT_MS : LOCK_TIMEOUT_MS)

  function opened(lockTimeoutMs: number): Journal {
    const open = journal(lockTimeoutMs)
    if (isLost) open.setLockTimeout(lockTimeoutMs)
    return open
  }

  function write<Result>(work: JournalWork<Result>, lockTimeoutMs: number): Result {
    try {
      const open = opened(lockTimeoutMs)
      repeatMissed(open)
      const result = work(open)
      if (isLost) open.setLockTimeout(LOCK_TIMEOUT_MS)
      isLost = false
      if (isWarned) note('The journal can be written again.')
      isWarned = false
      return result
    } catch (error) {
      // Not the journal's failure: the create must not be sent.
      if (!(error instanceof RepeatedRequest)) isLost = true
      throw error
    }
  }

  function repeatMissed(open: Journal): void {
    for (let next = missed[0]; next !== undefined; next = missed[0]) {
      try {
        next(open)
      } catch (error) {
        if (!(error instanceof RepeatedRequest)) throw error
      }
      missed.shift()
    }
  }

  function orUndefined<Result>(
    work: JournalWork<Result>,
    onFailure: (error: unknown) => void,
  ): Result | undefined {
    try {
      return write(work, timeoutMs())
    } catch (error) {
      onFailure(error)
      warnOnce(error)
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
        return work(opened(timeoutMs()))
      } catch (error) {
        isLost = true
        warnOnce(error)
        return undefined
      }
    },
    required(work) {
      try {
        return write(work, LOCK_TIMEOUT_MS)
      } catch (error) {
        if (error instanceof RepeatedRequest || !(error instanceof RushesError)) throw error
        throw error.with({ consequence: 'Nothing was sent.' })
      }
    },
    bestEffort: (work) =>
      orUndefined(work, (error) => {
        if (error instanceof RepeatedRequest) throw error
      }),
    repeated: (work) =>
      orUndefined(work, (error) => {
        if (!(error instanceof RepeatedRequest)) missed.push(work)
        if (missed.length > MAX_MISSED) missed.shift()
      }),
  }
}
