/** The errors of runs that have ended without files, and of those that are waited for no longer. */
import { RushesError } from '../errors.js'
import { quoteWord } from '../host/shell.js'
import { isCanceled, isOutcomeUnknown, type RunState } from '../protocol/run-state.js'
import { printable, shortened } from '../protocol/text.js'
import { formatDuration } from '../protocol/units.js'

/**
 * Returns the error of a run that has succeeded without URLs. They may be late or withheld, and the run may be paid
 * for, so the hint does not say how to create another run.
 */
export function withoutUrls({ id, status, withoutUrls: why, failure }: RunState): RushesError {
  const reason = failure === undefined ? '' : ` The service says: ${shortened(printable(failure), 500)}`
  return new RushesError(
    'bad_response',
    `The run ended (${printable(status)}) without a file: ${why}.${reason}`,
    {
      runId: id,
      hint:
        'The service may have withheld the result (moderation). Your account shows whether it was charged. ' +
        `\`rushes show ${quoteWord(id)} --json\` prints the response, and \`rushes status ${quoteWord(id)}\` asks again.`,
    },
  )
}

/**
 * Returns the error of a run that has ended without files: the same in `run`, `wait` and `status`. `isLocal`: no account was
 * charged.
 */
export function endErrorOf(state: RunState, isLocal: boolean): RushesError | undefined {
  if (state.withoutUrls !== undefined) return withoutUrls(state)
  return state.phase === 'failed' ? runFailed(state, isLocal) : undefined
}

/** The sentence about a run, or several, that a command no longer waits for. */
export function stillRunning(subject: string, timeoutMs: number, isLocal: boolean, is = 'is'): string {
  const limit =
    timeoutMs < 1_000 ? `${Math.round(timeoutMs)} ms` : formatDuration(1_000 * Math.round(timeoutMs / 1_000))
  return isLocal
    ? `Timed out after ${limit}; ${subject} ${is} not finished.`
    : `${subject} ${is} still running after ${limit}.`
}

function runFailed(state: RunState, isLocal: boolean): RushesError {
  const end = /^failed$/i.test(state.status) ? 'failed' : `ended with the status ${state.status}`
  const reason = state.failure === undefined ? 'the service gave no reason.' : shortened(state.failure, 2_000)
  const message = isCanceled(state)
    ? state.failure === undefined
      ? 'The run was canceled.'
      : reason
    : `The run ${end}: ${reason}`
  const mentionsRefund = /\brefunded\b/i.test(state.failure ?? '')
  return new RushesError('run_failed', message, {
    runId: state.id,
    hint: isOutcomeUnknown(state)
      ? 'Nothing was downloaded. A run may exist at the provider and cost money: look at its list before you create it ' +
        `again. To fetch the result of its job, the operator of the service runs \`rushes admin run adopt ` +
        `${quoteWord(state.id)} <job>${isLocal ? ' --data <state folder>/local' : ''}\`.`
      : `Nothing was downloaded. ${isLocal || mentionsRefund ? '' : 'Your account shows whether it was charged. '}` +
        `\`rushes show ${quoteWord(state.id)}\` shows its input.`,
  })
}
