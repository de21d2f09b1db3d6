/** Signals as data, and as two `AbortSignal`s for the commands. */
import { setMaxListeners } from 'node:events'
import { EXIT } from '../../errors.js'

export const SIGNAL_EXITS = { SIGINT: EXIT.sigint, SIGTERM: EXIT.sigterm, SIGHUP: EXIT.sighup } as const
export type SignalName = keyof typeof SIGNAL_EXITS

/** Why a command must end: a signal, or a reader that closed standard output. */
export class Interruption extends Error {
  override readonly name = 'Interruption'
  readonly by: SignalName | 'stdout closed'
  readonly exitCode: number
  /** Nobody reads standard output any longer: the program ends without a word. */
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
   * The first call aborts `first`, the second call `second`. A closed standard output is never the second one: nobody has
   * asked to stop, and the answer to a create that was sent is still waited for.
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

const ITEMS_PER_TURN = 250

/** The items in order. Of thousands, each of which asks the journal, signals are heeded in between: rejects with the reason. */
export async function* inTurns<Item>(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Item> {
  for (const [index, item] of items.entries()) {
    if (index % ITEMS_PER_TURN === ITEMS_PER_TURN - 1) {
      await new Promise((resolve) => setImmediate(resolve))
      signal.throwIfAborted()
    }
    yield item
  }
}
