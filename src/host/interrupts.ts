/** Interruptions of a command: a signal, or a reader that closed standard output; and the error for the user. */
import { EXIT, messageOf, RushesError, usageError } from '../errors.js'
import { isCurrentFolderGone } from './system-error.js'

/**
 * Converts anything thrown to the error to show. An unexpected error is a bug, and its hint explains how to report it.
 */
export function asRushesError(thrown: unknown): RushesError {
  if (thrown instanceof RushesError) return thrown
  if (thrown instanceof Interruption) return interrupted(thrown)
  if (isCurrentFolderGone(thrown))
    return usageError(
      'The current folder no longer exists.',
      'Change to another folder, then run the command again.',
    )
  const message = messageOf(thrown)
  return new RushesError('internal', `Unexpected error: ${message}`, {
    hint: 'This is a bug in rushes. Run the command again with --debug and report the output.',
    cause: thrown,
  })
}

export const interrupted = (
  reason: Interruption,
  message = 'Interrupted.',
  hint?: string,
  runId?: string,
): RushesError =>
  new RushesError('interrupted', message, { exitCode: reason.exitCode, hint, cause: reason, runId })

export const SIGNAL_EXITS = { SIGINT: EXIT.sigint, SIGTERM: EXIT.sigterm, SIGHUP: EXIT.sighup } as const
export type SignalName = keyof typeof SIGNAL_EXITS

/** The reason why a command must end: a signal, or a reader that closed standard output. */
export class Interruption extends Error {
  override readonly name = 'Interruption'
  readonly by: SignalName | 'stdout closed'
  readonly exitCode: number
  /** Standard output is closed: the program ends without a message. */
  readonly isSilent: boolean

  constructor(by: SignalName | 'stdout closed') {
    super(`ended by ${by}`)
    this.by = by
    this.isSilent = by === 'stdout closed'
    this.exitCode = by === 'stdout closed' ? EXIT.stdoutClosed : SIGNAL_EXITS[by]
  }
}

export interface Interrupts {
  /** Aborted with an `Interruption`: end soon, but find out the outcome of an unanswered create. */
  readonly first: AbortSignal
  /** Aborted with an `Interruption`: end now. */
  readonly second: AbortSignal
}

export interface InterruptSource extends Interrupts {
  /** The first interruption. */
  readonly reason: Interruption | undefined
  /**
   * The first call aborts `first`, the second call `second`. A closed standard output never aborts `second`: it is not
   * a request to stop, and the outcome of a create must still be found out.
   */
  interrupt(by: SignalName | 'stdout closed'): void
}

export function createInterrupts(): InterruptSource {
  const [first, second] = [new AbortController(), new AbortController()]
  return {
    first: first.signal,
    second: second.signal,
    get reason() {
      return first.signal.reason
    },
    interrupt(by) {
      const reason = new Interruption(by)
      if (first.signal.aborted && !reason.isSilent) second.abort(reason)
      first.abort(reason)
    },
  }
}
