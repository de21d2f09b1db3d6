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

/** State of the writes of one command. */
interface WriteState {
  readonly options: JournalWritesOptions
  /** Writes to repeat, oldest first. */
  readonly failedWrites: JournalWork<unknown>[]
  /** The last use of the journal failed. */
  isLost: boolean
  isWarned: boolean
}

export function createJournalWrites(options: JournalWritesOptions): JournalWrites {
  const state: WriteState = { options, failedWrites: [], isLost: false, isWarned: false }
  if (options.failure !== undefined) lose(state, options.failure)
  return {
    read: (work) => read(state, work),
    readWhole: (work) => orNothingSent(() => repeatThenRun(state, work, LOCK_TIMEOUT_MS)),
    required: (work) => orNothingSent(() => write(state, work, LOCK_TIMEOUT_MS)),
    bestEffort: (work) =>
      writeOrWarn(state, work, (error) => {
        if (error instanceof RepeatedRequest) throw error
      }),
    repeated: (work) =>
      writeOrWarn(state, work, (error) => {
        if (!hasInvalidValue(error)) state.failedWrites.push(work)
        if (state.failedWrites.length > MAX_FAILED_WRITES) state.failedWrites.shift()
      }),
    end() {
      if (state.failedWrites.length === 0) return
      try {
        repeatThenRun(state, () => {}, END_LOCK_TIMEOUT_MS)
      } catch {
        // The user was warned when the first write failed.
      }
    },
  }
}

function lose(state: WriteState, error: unknown): void {
  state.isLost = true
  warnOnce(state, error)
}

function warnOnce(state: WriteState, error: unknown): void {
  if (!state.isWarned)
    state.options.warn(
      `${messageOf(error)} Until it can be used, the runs of this command will not be remembered. Keep the ` +
        `ids that are printed.`,
    )
  state.isWarned = true
}

const warnOfDroppedWrite = ({ options }: WriteState, error: unknown): void =>
  options.warn(`${messageOf(error)} The journal does not contain this change.`)

const timeoutOf = ({ isLost }: WriteState): number => (isLost ? LOST_LOCK_TIMEOUT_MS : LOCK_TIMEOUT_MS)

function opened({ options, isLost }: WriteState, lockTimeoutMs: number): Journal {
  const open = options.journal(lockTimeoutMs)
  if (isLost) open.setLockTimeout(lockTimeoutMs)
  return open
}

function noteRecovery(state: WriteState, open: Journal): void {
  if (state.isLost) open.setLockTimeout(LOCK_TIMEOUT_MS)
  state.isLost = false
  if (state.isWarned) state.options.note('The journal can be written again.')
  state.isWarned = false
}

function read<Result>(state: WriteState, work: JournalWork<Result>): Result | undefined {
  try {
    const open = opened(state, timeoutOf(state))
    tryFailedWrites(state, open)
    return work(open)
  } catch (error) {
    lose(state, error)
    return undefined
  }
}

function repeatThenRun<Result>(state: WriteState, work: JournalWork<Result>, lockTimeoutMs: number): Result {
  try {
    const open = opened(state, lockTimeoutMs)
    repeatFailedWrites(state, open)
    return work(open)
  } catch (error) {
    if (!hasInvalidValue(error)) state.isLost = true
    throw error
  }
}

const write = <Result>(state: WriteState, work: JournalWork<Result>, lockTimeoutMs: number): Result =>
  repeatThenRun(
    state,
    (open) => {
      const result = work(open)
      noteRecovery(state, open)
      return result
    },
    lockTimeoutMs,
  )

/** Returns undefined if the write fails. Calls `onFailure` before the warning. */
function writeOrWarn<Result>(
  state: WriteState,
  work: JournalWork<Result>,
  onFailure: (error: unknown) => void,
): Result | undefined {
  try {
    return write(state, work, timeoutOf(state))
  } catch (error) {
    onFailure(error)
    if (hasInvalidValue(error)) warnOfDroppedWrite(state, error)
    else warnOnce(state, error)
    return undefined
  }
}

function repeatFailedWrites(state: WriteState, open: Journal): void {
  const { failedWrites } = state
  if (failedWrites.length === 0) return
  for (let next = failedWrites[0]; next !== undefined; next = failedWrites[0]) {
    try {
      next(open)
    } catch (error) {
      if (!hasInvalidValue(error)) throw error
      warnOfDroppedWrite(state, error)
    }
    failedWrites.shift()
  }
  noteRecovery(state, open)
}

/** Does not wait for a lock, so that commands which only read are not delayed. */
function tryFailedWrites(state: WriteState, open: Journal): void {
  if (state.failedWrites.length === 0) return
  open.setLockTimeout(0)
  try {
    repeatFailedWrites(state, open)
  } catch {
    // The write failed, but the journal can still be read.
  }
  open.setLockTimeout(timeoutOf(state))
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
