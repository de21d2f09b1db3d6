/** The exit code of a command, by its errors. */
import { EXIT, type RushesError } from '../../errors.js'

/**
 * Of several errors, the first code in this list is the exit code. A usage error says that nothing was sent, so it is
 * the last.
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

/** 0 without errors. A code outside the list (a signal, closed standard output) comes first. */
export function exitCodeOf(errors: readonly Pick<RushesError, 'exitCode'>[]): number {
  const codes = errors.map(({ exitCode }) => exitCode)
  const other = codes.find((code) => !PRECEDENCE.includes(code))
  return other ?? PRECEDENCE.find((code) => codes.includes(code)) ?? EXIT.ok
}

const ITEMS_PER_TURN = 250

/** The items in order, with pauses in which signals arrive, since thousands of journal reads block. Rejects with the reason. */
export async function* inTurns<Item>(items: readonly Item[], signal: AbortSignal): AsyncGenerator<Item> {
  for (const [index, item] of items.entries()) {
    if (index % ITEMS_PER_TURN === ITEMS_PER_TURN - 1) {
      await new Promise((resolve) => setImmediate(resolve))
      signal.throwIfAborted()
    }
    yield item
  }
}
