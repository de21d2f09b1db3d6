/** Signals as the commands see them: data, and two `AbortSignal`s. */
import { EXIT } from '../errors.js'

export const SIGNAL_EXITS = { SIGINT: EXIT.sigint, SIGTERM: EXIT.sigterm, SIGHUP: EXIT.sighup } as const
export type SignalName = keyof typeof SIGNAL_EXITS

/** Why a command is asked to end: a signal, or a reader of standard output that went away. */
export class Interruption extends Error {
  override readonly name = 'Interruption'
  readonly by: SignalName | 'stdout closed'
  readonly exitCode: number

  constructor(by: SignalName | 'stdout closed') {
    super(`ended by ${by}`)
    this.by = by
    this.exitCode = by === 'stdout closed' ? EXIT.stdoutClosed : SIGNAL_EXITS[by]
  }
}

export interface Interrupts {
  /** Aborted with an `Interruption`: end soon, but find out what became of an unanswered create. */
  readonly first: AbortSignal
  /** Aborted with an `Interruption`: end now. */
  readonly second: AbortSignal
}

export interface InterruptSource extends Interrupts {
  /** The first call asks to end soon, the second to end now; a closed standard output is not waited for. */
  interrupt(by: SignalName | 'stdout closed'): void
}

export function createInterrupts(): InterruptSource {
  const first = new AbortController()
  const second = new AbortController()
  return {
    first: first.signal,
    second: second.signal,
    interrupt(by) {
      const reason = new Interruption(by)
      if (first.signal.aborted || by === 'stdout closed') second.abort(reason)
      first.abort(reason)
    },
  }
}
