/** What a command says of runs that it does not wait for any longer: how they are, and how to resume. */
import { RushesError } from '../../errors.js'
import type { RunState } from '../../protocol/run-state.js'
import { formatDuration } from '../flags/duration.js'
import type { RunChoice } from '../flags/run-ids.js'
import { interrupted } from '../process/exit.js'
import type { Interruption } from '../process/interrupts.js'
import type { FollowedRun } from './follow-run.js'

/** Of more runs than this, the command to resume names no ids. */
const MAX_NAMED = 10

export interface Unfinished {
  readonly isLocal: boolean
  /** `download` for runs that are not waited for. */
  readonly verb: 'wait' | 'download'
  /** The command that resumes; for all unfinished runs of the address when no ids are given. */
  resume(verb: 'wait' | 'download', ids: readonly string[] | 'all'): string
  /** How to resume with more than `MAX_NAMED` runs. */
  readonly many: ManyRuns
  /** Whether `wait --all` finds the run. */
  isRemembered(id: string): boolean
}

/** The journal need not know runs whose ids were given, and `wait --all` does not find finished ones. */
export type ManyRuns = 'wait --all' | 'same command' | 'same ids'

export const manyRunsOf = ({ ids, all = false }: RunChoice): ManyRuns =>
  all ? 'wait --all' : ids.includes('-') ? 'same ids' : 'same command'

export interface UnfinishedRuns {
  /** The error of one run, which is reported together with those of the others. */
  interrupted(id: string, reason: Interruption): RushesError
  /** `errorAtLimit`: see `Follower` of the client. */
  limitPassed(id: string, timeoutMs: number, errorAtLimit: (limit: RushesError) => RushesError): RushesError
  notFinished(state: RunState): RushesError
  /** Whether it is one of these errors. */
  has(error: RushesError): boolean
  /** One error of each kind, for all of its runs. */
  report(): readonly RushesError[]
}

export function createUnfinishedRuns(unfinished: Unfinished): UnfinishedRuns {
  const all = new Set<RushesError>()
  const cut: string[] = []
  const late: string[] = []
  const pending: string[] = []
  let reason: Interruption | undefined
  let limitMs = 0
  let status: string | undefined
  const noted = (error: RushesError): RushesError => {
    all.add(error)
    return error
  }
  return {
    interrupted(id, by) {
      reason = by
      cut.push(id)
      return noted(wasInterrupted(by, [id], unfinished))
    },
    limitPassed(id, timeoutMs, errorAtLimit) {
      const limit = limitPassed(timeoutMs, [id], unfinished)
      const error = errorAtLimit(limit)
      if (error !== limit) return error
      limitMs = timeoutMs
      late.push(id)
      return noted(limit)
    },
    notFinished(state) {
      pending.push(state.id)
      status = state.status
      return noted(notFinished([state.id], unfinished, status))
    },
    has: (error) => all.has(error),
    report: () => [
      ...(pending.length > 0
        ? [notFinished(pending, unfinished, pending.length === 1 ? status : undefined)]
        : []),
      ...(late.length > 0 ? [limitPassed(limitMs, late, unfinished)] : []),
      ...(reason === undefined ? [] : [wasInterrupted(reason, cut, unfinished)]),
    ],
  }
}

/** Of a run that continues every message says how to resume. */
export function withWayBack(
  error: RushesError,
  { known: { id }, state }: FollowedRun,
  resume: Unfinished['resume'],
): RushesError {
  const saysSo = error.code === 'wait_timeout' || error.code === 'interrupted'
  if (saysSo) return error
  const isOver = error.httpStatus === 404 || state?.phase === 'failed'
  const hint = [error.hint, ...(isOver ? [] : [`Resume with \`${resume('wait', [id])}\`.`])]
    .filter((each) => each !== undefined)
    .join(' ')
  return error.with({ hint: hint === '' ? undefined : hint, runId: id })
}

function wasInterrupted(reason: Interruption, runs: readonly string[], unfinished: Unfinished): RushesError {
  const { subject, is, was, runId } = about(runs)
  const state =
    unfinished.verb === 'download'
      ? `${was} not downloaded`
      : `${is} ${unfinished.isLocal ? 'queued' : 'still running'}`
  return interrupted(reason, `Interrupted. ${subject} ${state}.`, wayBack(runs, unfinished), runId)
}

function limitPassed(timeoutMs: number, runs: readonly string[], unfinished: Unfinished): RushesError {
  const { subject, is, runId } = about(runs)
  const limit = timeoutMs < 1_000 ? `${Math.round(timeoutMs)} ms` : formatDuration(timeoutMs)
  const message = unfinished.isLocal
    ? `${subject} did not finish within ${limit} and ${is} queued again.`
    : `${subject} ${is} still running after ${limit}.`
  return new RushesError('wait_timeout', message, { hint: wayBack(runs, unfinished), runId })
}

/** For `download` without a wait limit. */
function notFinished(runs: readonly string[], unfinished: Unfinished, status?: string): RushesError {
  const { subject, is, was, runId } = about(runs)
  const state = status === undefined ? '' : ` (${status})`
  return new RushesError('wait_timeout', `${subject} ${is} not finished${state} and ${was} not downloaded.`, {
    hint: wayBack(runs, { ...unfinished, verb: 'wait' }),
    runId,
  })
}

function about(runs: readonly string[]) {
  const [only = ''] = runs
  return runs.length === 1
    ? { subject: only, is: 'is', was: 'was', runId: only }
    : { subject: `${runs.length} runs`, is: 'are', was: 'were', runId: undefined }
}

function wayBack(runs: readonly string[], { verb, resume, many, isRemembered }: Unfinished): string {
  const [first = ''] = runs
  const isNamed = runs.length <= MAX_NAMED || (many === 'wait --all' && !isRemembered(first))
  if (isNamed) return `Resume with \`${resume(verb, runs)}\`.`
  if (many === 'wait --all')
    return `Resume with \`${resume('wait', 'all')}\`. \`rushes list\` shows their ids.`
  return many === 'same ids'
    ? 'Resume with the same command, and the same ids on standard input.'
    : 'Resume with the same command.'
}
