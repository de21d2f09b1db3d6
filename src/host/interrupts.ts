/** Why a command must end early: a signal, or a reader that closed standard output; and the error that says so. */
import { setMaxListeners } from 'node:events'
import { EXIT, messageOf, RushesError } from '../errors.js'

/** The error to show. Anything unexpected is a bug, and its hint says how to report it. */
export function asRushesError(thrown: unknown): RushesError {
  if (thrown instanceof RushesError) return thrown
  if (thrown instanceof Interruption) return interrupted(thrown)
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

/** Why a command must end: a signal, or a reader that closed standard output. */
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
   * The first call aborts `first`, the second call `second`. A closed standard output never counts as the second:
   * it is not a request to stop, and the outcome of a create must still be known.
   */
  interrupt(by: SignalName | 'stdout closed'): void
}

export function createInterrupts(): InterruptSource {
  const [first, second] = [new AbortController(), new AbortController()]
  // Every run of a command may listen. Node warns on standard error from the eleventh listener on.
  setMaxListeners(0, first.signal, second.signal)
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
