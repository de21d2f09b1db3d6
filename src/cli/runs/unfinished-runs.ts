/** What a command says of runs that it does not wait for any longer: how they are, and how to resume. */
import { RushesError } from '../../errors.js'
import type { RunState } from '../../protocol/run-state.js'
import { formatDuration } from '../flags/duration.js'
import { interrupted } from '../process/exit.js'
import type { Interruption } from '../process/interrupts.js'

/** Of more runs than this, the command to resume names no ids. */
const MAX_NAMED = 10

export interface Unfinished {
  readonly isLocal: boolean
  /** The command that resumes; for all unfinished runs of the address when no ids are given. */
  resume(ids: readonly string[] | 'all'): string
}

export const wasInterrupted = (
  reason: Interruption,
  runs: readonly string[],
  { isLocal, resume }: Unfinished,
): RushesError =>
  about(runs, (subject, isOne) =>
    interrupted(
      reason,
      `Interrupted. ${subject} ${isOne ? 'is' : 'are'} ${isLocal ? 'queued' : 'still running'}.`,
      wayBack(runs, resume),
    ),
  )

export const limitPassed = (
  timeoutMs: number,
  runs: readonly string[],
  { isLocal, resume }: Unfinished,
): RushesError =>
  about(runs, (subject, isOne) => {
    const limit = timeoutMs < 1_000 ? `${Math.round(timeoutMs)} ms` : formatDuration(timeoutMs)
    const message = isLocal
      ? `${subject} did not finish within ${limit} and ${isOne ? 'is' : 'are'} queued again.`
      : `${subject} ${isOne ? 'is' : 'are'} still running after ${limit}.`
    return new RushesError('wait_timeout', message, { hint: wayBack(runs, resume) })
  })

/** For `download` without a wait limit. */
export const notFinished = ({ id, status }: RunState, resume: Unfinished['resume']): RushesError =>
  new RushesError('wait_timeout', `${id} is not finished (${status}); nothing was downloaded.`, {
    runId: id,
    hint: wayBack([id], resume),
  })

function about(
  runs: readonly string[],
  errorOf: (subject: string, isOne: boolean) => RushesError,
): RushesError {
  const [only = ''] = runs
  return runs.length === 1 ? errorOf(only, true).with({ runId: only }) : errorOf(`${runs.length} runs`, false)
}

const wayBack = (runs: readonly string[], resume: Unfinished['resume']): string =>
  runs.length <= MAX_NAMED
    ? `Resume with: ${resume(runs)}`
    : `Resume with: ${resume('all')}. Their ids: rushes list`
