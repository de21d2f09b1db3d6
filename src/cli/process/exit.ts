/** The exit code of a command with several errors. */
import { EXIT } from '../../errors.js'

/**
 * Precedence of exit codes when there are several errors: the first in this list is the exit code. `usage` is last,
 * because a usage error means that nothing was sent.
 */
const PRECEDENCE: readonly number[] = [
  EXIT.outcomeUnknown,
  EXIT.bug,
  EXIT.account,
  EXIT.key,
  EXIT.refused,
  EXIT.rateLimited,
  EXIT.serviceBroken,
  EXIT.network,
  EXIT.notFound,
  EXIT.runFailed,
  EXIT.waitTimeout,
  EXIT.downloadFailed,
  EXIT.usage,
]

/** Returns 0 without errors. A code outside the list (a signal, closed standard output) has the highest precedence. */
export function exitCodeOf(errors: readonly { readonly exitCode: number }[]): number {
  const codes = errors.map(({ exitCode }) => exitCode)
  const other = codes.find((code) => !PRECEDENCE.includes(code))
  return other ?? PRECEDENCE.find((code) => codes.includes(code)) ?? EXIT.ok
}

const ITEMS_PER_TURN = 250

/**
 * Yields the items in order, with pauses in which signals are handled: thousands of journal reads block the process.
 * Rejects with the signal's reason.
 */
export async function* inTurns<Item>(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Item> {
  for (const [index, item] of items.entries()) {
    if (index % ITEMS_PER_TURN === ITEMS_PER_TURN - 1) {
      await new Promise((resolve) => setImmediate(resolve))
      signal.throwIfAborted()
    }
    yield item
  }
}
