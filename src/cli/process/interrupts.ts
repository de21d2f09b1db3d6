/** Signals as the commands see them: data, and two `AbortSignal`s. */
import { EXIT } from '../../errors.js'

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
  /** That of the first, once there is one. */
  readonly reason: Interruption | undefined
  /** The first call asks to end soon, the second to end now; a closed standard output is not waited for. */
  interrupt(by: SignalName | 'stdout closed'): void
}

/** The signals are made when they are asked for: a short command ends before anybody would heed them. */
export function createInterrupts(): InterruptSource {
  const [first, second] = [createLatch(), createLatch()]
  return {
    get first() {
      return first.signal()
    },
    get second() {
      return second.signal()
    },
    get reason() {
      return first.reason()
    },
    interrupt(by) {
      const reason = new Interruption(by)
      if (first.reason() !== undefined || by === 'stdout closed') second.abort(reason)
      first.abort(reason)
    },
  }
}

function createLatch() {
  let controller: AbortController | undefined
  let why: Interruption | undefined
  return {
    reason: () => why,
    signal(): AbortSignal {
      if (controller === undefined) {
        controller = new AbortController()
        if (why !== undefined) controller.abort(why)
      }
      return controller.signal
    },
    abort(reason: Interruption): void {
      why ??= reason
      controller?.abort(why)
    },
  }
}
