/** Errors for runs that a command no longer waits for, with the command that resumes them. */

import { stillRunning } from '../../client/run-errors.js'
import { RushesError } from '../../errors.js'
import { type Interruption, interrupted } from '../../host/interrupts.js'
import { quoteWord } from '../../host/shell.js'
import type { Run } from '../../runs/run.js'
import { commandLine, type ServiceFlags } from '../settings/globals.js'
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

/** How to resume more runs. `wait --all` misses those that have ended, and those that are not in the journal. */
export type ResumeMany = 'wait --all' | 'same command'

export const resumeManyOf = ({ all = false, label }: RunChoice): ResumeMany =>
  all && label === undefined ? 'wait --all' : 'same command'

/** Why a command no longer waits for a run. `not finished`: it did not wait. */
export type Left =
  | { readonly why: 'not finished' }
  | { readonly why: 'time limit'; readonly timeoutMs: number }
  | { readonly why: 'signal'; readonly reason: Interruption }

export interface LeftOptions {
  readonly isLocal: boolean
  /** `download` if the command does not wait. */
  readonly verb: 'wait' | 'download'
  readonly many: ResumeMany
  resume(verb: ResumeVerb, ids: readonly string[] | 'all'): string
}

/** Returns one error for runs that are left for one reason. */
export function leftError(left: Left, runs: readonly Run[], options: LeftOptions): RushesError {
  const { isLocal, verb } = options
  const [only] = runs.length === 1 ? runs : []
  const runId = only?.id
  const subject = runId ?? `${runs.length} runs`
  const [is, was] = only === undefined ? ['are', 'were'] : ['is', 'was']
  if (left.why === 'signal') {
    const going = `${is} ${isLocal ? 'not finished' : 'still running'}`
    const state = verb === 'download' ? `${was} not downloaded` : going
    return interrupted(
      left.reason,
      `Interrupted. ${subject} ${state}.`,
      howToGoOn(runs, options, true),
      runId,
    )
  }
  if (left.why === 'time limit') {
    const message = stillRunning(subject, left.timeoutMs, isLocal, is)
    return new RushesError('wait_timeout', message, { hint: howToGoOn(runs, options), runId })
  }
  const status = only?.state === undefined ? '' : ` (${only.state.status})`
  const message = `${subject} ${is} not finished${status} and ${was} not downloaded.`
  return new RushesError('wait_timeout', message, {
    hint: howToGoOn(runs, { ...options, verb: 'wait' }),
    runId,
  })
}

/** How to resume, and how to stop the runs. Runs that were only to be downloaded have ended. */
function howToGoOn(runs: readonly Run[], { verb, many, resume }: LeftOptions, mayStop = false): string {
  // `wait --all` does not find runs that the journal could not take.
  const isNamed = runs.length <= MAX_NAMED || (many === 'wait --all' && runs[0]?.known?.row === undefined)
  if (!isNamed && many === 'same command') return 'Resume with the same command.'
  const ids = isNamed ? runs.map(({ id }) => id) : 'all'
  const list = isNamed ? '' : ' `rushes list` shows their ids.'
  const it = runs.length === 1 ? 'it' : 'them'
  const stop = mayStop && verb === 'wait' ? ` Stop ${it} with \`${resume('cancel', ids)}\`.` : ''
  return `Resume with \`${resume(isNamed ? verb : 'wait', ids)}\`.${list}${stop}`
}

/** Adds the hint how to resume, unless the run has ended or is unknown, or the error already has this hint. */
export function withResumeHint(error: RushesError, { id, state }: Run, { resume }: LeftOptions): RushesError {
  if (error.code === 'wait_timeout' || error.code === 'interrupted') return error
  const isOver = error.httpStatus === 404 || (state !== undefined && state.phase !== 'running')
  const hint = [error.hint, isOver ? undefined : `Resume with \`${resume('wait', [id])}\`.`]
  return error.with({ hint: hint.filter(Boolean).join(' ') || undefined, runId: id })
}
