/** Errors for runs that a command no longer waits for, with the command that resumes them. */
import { RushesError } from '../../errors.js'
import { type Interruption, interrupted } from '../../host/interrupts.js'
import { quoteWord } from '../../protocol/text.js'
import type { Run } from '../../runs/run.js'
import { commandLine, type ServiceFlags } from '../settings/globals.js'
import { formatDuration } from '../terminal/format.js'
import type { RunChoice } from './run-selection.js'

/** `cancel` is the command that stops the runs. */
export type ResumeVerb = 'wait' | 'download' | 'cancel'

interface ResumeContext {
  readonly globals: ServiceFlags
  /** Output flags, as given. */
  readonly delivery: readonly string[]
}

/**
 * Returns the command to resume: `wait` waits again, `download` downloads the outputs of finished runs. `all`: every
 * unfinished run at the address.
 */
export function resumeCommand(
  { globals, delivery }: ResumeContext,
  verb: ResumeVerb,
  ids: readonly string[] | 'all',
): string {
  // Both commands download to the current folder by default.
  const isImplied = globals.local || verb === 'download'
  const flags = (verb === 'cancel' ? [] : delivery)
    .filter((flag) => !(isImplied && flag === '-d'))
    .map((flag) => (flag.startsWith('-') ? flag : quoteWord(flag)))
  return commandLine(verb, globals, [...flags, ...(ids === 'all' ? ['--all'] : idArguments(ids))])
}

const idArguments = (ids: readonly string[]): readonly string[] => [
  ...(ids.some((id) => id.startsWith('-')) ? ['--'] : []),
  ...ids.map((id) => quoteWord(id).replace(/^'(-[\w.-]*)'$/, '$1')),
]

/** Maximum number of ids in the command to resume. */
const MAX_NAMED = 10

interface Unfinished {
  readonly isLocal: boolean
  /** `download` if the command does not wait. */
  readonly verb: 'wait' | 'download'
  /** Returns the command to resume. `all`: every unfinished run at the address. */
  resume(verb: ResumeVerb, ids: readonly string[] | 'all'): string
  /** How to resume with more than `MAX_NAMED` runs. */
  readonly many: ResumeMany
  /** Whether `wait --all` finds the run. */
  isRemembered(id: string): boolean
  /** Position of the run in the command. */
  positionOf(id: string): number
}

/**
 * How to resume many runs. With explicit ids, the same command: `wait --all` misses finished runs, and runs that are
 * not in the journal. `all`: few runs, too, of a command that names none.
 */
export type ResumeMany = 'all' | 'wait --all' | 'same command' | 'same ids'

export const resumeManyOf = ({ ids, all = false, label }: RunChoice): ResumeMany =>
  all && label === undefined ? 'all' : ids.includes('-') ? 'same ids' : 'same command'

export interface UnfinishedRuns {
  /** Returns the error for one run. `report` combines the errors of all runs. */
  interrupted(id: string, reason: Interruption): RushesError
  limitPassed(id: string, timeoutMs: number): RushesError
  notFinished(id: string, lastStatus: string | undefined): RushesError
  /** Whether one of these functions returned the error. */
  has(error: RushesError): boolean
  /** Returns one error per kind, for all of its runs. */
  report(): readonly RushesError[]
}

export function createUnfinishedRuns(unfinished: Unfinished): UnfinishedRuns {
  const all = new Set<RushesError>()
  const interruptedIds: string[] = []
  const timedOutIds: string[] = []
  const unfinishedIds: string[] = []
  let reason: Interruption | undefined
  let limitMs = 0
  let status: string | undefined
  const track = (error: RushesError): RushesError => {
    all.add(error)
    return error
  }
  return {
    interrupted(id, by) {
      reason = by
      interruptedIds.push(id)
      return track(wasInterrupted(by, [id], unfinished))
    },
    limitPassed(id, timeoutMs) {
      limitMs = timeoutMs
      timedOutIds.push(id)
      return track(limitPassed(timeoutMs, [id], unfinished))
    },
    notFinished(id, lastStatus) {
      unfinishedIds.push(id)
      status = lastStatus
      return track(notFinished([id], unfinished, status))
    },
    has: (error) => all.has(error),
    report() {
      const inOrder = (ids: string[]) =>
        ids.sort((one, other) => unfinished.positionOf(one) - unfinished.positionOf(other))
      for (const ids of [interruptedIds, timedOutIds, unfinishedIds]) inOrder(ids)
      return [
        ...(unfinishedIds.length > 0
          ? [notFinished(unfinishedIds, unfinished, unfinishedIds.length === 1 ? status : undefined)]
          : []),
        ...(timedOutIds.length > 0 ? [limitPassed(limitMs, timedOutIds, unfinished)] : []),
        ...(reason === undefined ? [] : [wasInterrupted(reason, interruptedIds, unfinished)]),
      ]
    },
  }
}

/** Adds the hint how to resume, unless the run has ended or is unknown, or the error already has this hint. */
export function withResumeHint(
  error: RushesError,
  { id, state }: Run,
  resume: Unfinished['resume'],
): RushesError {
  if (error.code === 'wait_timeout' || error.code === 'interrupted') return error
  const isOver = error.httpStatus === 404 || (state !== undefined && state.phase !== 'running')
  const hint = [error.hint, ...(isOver ? [] : [`Resume with \`${resume('wait', [id])}\`.`])]
    .filter((each) => each !== undefined)
    .join(' ')
  return error.with({ hint: hint === '' ? undefined : hint, runId: id })
}

function wasInterrupted(reason: Interruption, runs: readonly string[], unfinished: Unfinished): RushesError {
  const { subject, is, was, runId } = subjectOf(runs)
  const state =
    unfinished.verb === 'download'
      ? `${was} not downloaded`
      : `${is} ${unfinished.isLocal ? 'not finished' : 'still running'}`
  const hint = [resumeHint(runs, unfinished), ...stopHint(runs, unfinished)].join(' ')
  return interrupted(reason, `Interrupted. ${subject} ${state}.`, hint, runId)
}

function limitPassed(timeoutMs: number, runs: readonly string[], unfinished: Unfinished): RushesError {
  const { subject, is, runId } = subjectOf(runs)
  const limit = timeoutMs < 1_000 ? `${Math.round(timeoutMs)} ms` : formatDuration(timeoutMs)
  const message = unfinished.isLocal
    ? `Timed out after ${limit}; ${subject} ${is} not finished.`
    : `${subject} ${is} still running after ${limit}.`
  return new RushesError('wait_timeout', message, { hint: resumeHint(runs, unfinished), runId })
}

/** Returns the error of `download` without a timeout. */
function notFinished(runs: readonly string[], unfinished: Unfinished, status?: string): RushesError {
  const { subject, is, was, runId } = subjectOf(runs)
  const state = status === undefined ? '' : ` (${status})`
  return new RushesError('wait_timeout', `${subject} ${is} not finished${state} and ${was} not downloaded.`, {
    hint: resumeHint(runs, { ...unfinished, verb: 'wait' }),
    runId,
  })
}

function subjectOf(runs: readonly string[]) {
  const [only = ''] = runs
  return runs.length === 1
    ? { subject: only, is: 'is', was: 'was', runId: only }
    : { subject: `${runs.length} runs`, is: 'are', was: 'were', runId: undefined }
}

/** Runs that were only to be downloaded have ended. Without a command that names the runs, returns no hint. */
function stopHint(runs: readonly string[], { verb, resume, many }: Unfinished): readonly string[] {
  const isNamed = runs.length <= MAX_NAMED
  if (verb === 'download' || (!isNamed && many !== 'wait --all' && many !== 'all')) return []
  return [`Stop ${runs.length === 1 ? 'it' : 'them'} with \`${resume('cancel', isNamed ? runs : 'all')}\`.`]
}

function resumeHint(runs: readonly string[], { verb, resume, many, isRemembered }: Unfinished): string {
  const [first = ''] = runs
  const isNamed = many !== 'all' && runs.length <= MAX_NAMED
  if (isNamed || (many === 'wait --all' && !isRemembered(first)))
    return `Resume with \`${resume(verb, runs)}\`.`
  if (many === 'all' || many === 'wait --all')
    return `Resume with \`${resume('wait', 'all')}\`. \`rushes list\` shows their ids.`
  return many === 'same ids'
    ? 'Resume with the same command, and the same ids on standard input.'
    : 'Resume with the same command.'
}
