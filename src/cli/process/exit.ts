/** From anything that was thrown to a `RushesError`, and from several errors to one exit code. */
import { EXIT, messageOf, RushesError } from '../../errors.js'
import { Interruption } from './interrupts.js'

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

/** Stop further creates of the command: they would fail the same way, or might be paid twice. */
const STOPPING: readonly number[] = [EXIT.refused, EXIT.key, EXIT.account, EXIT.outcomeUnknown]

export const stopsCreating = (error: RushesError): boolean => STOPPING.includes(error.exitCode)

/** 0 without errors. A code outside the list (a signal, closed standard output) comes first. */
export function exitCodeOf(errors: readonly Pick<RushesError, 'exitCode'>[]): number {
  const codes = errors.map(({ exitCode }) => exitCode)
  const other = codes.find((code) => !PRECEDENCE.includes(code))
  return other ?? PRECEDENCE.find((code) => codes.includes(code)) ?? EXIT.ok
}

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
