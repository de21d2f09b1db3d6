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

/**
 * How to resume many runs. With explicit ids, the same command: `wait --all` misses finished runs, and runs that are
 * not in the journal. `all`: few runs, too, of a command that names none.
 */
export type ResumeMany = 'all' | 'wait --all' | 'same command' | 'same ids'

export const resumeManyOf = ({ ids, all = false, label }: RunChoice): ResumeMany =>
  all && label === undefined ? 'all' : ids.includes('-') ? 'same ids' : 'same command'

export interface UnfinishedOptions {
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

/** Why a command no longer waits for a run. `not finished`: it did not wait. */
export type Left =
  | { readonly why: 'not finished'; readonly status: string | undefined }
  | { readonly why: 'time limit'; readonly timeoutMs: number }
  | { readonly why: 'signal'; readonly reason: Interruption }

/** The runs that a command no longer waits for. */
export class UnfinishedRuns {
  readonly #options: UnfinishedOptions
  readonly #errors = new Set<RushesError>()
  readonly #groups = new Map<Left['why'], { readonly left: Left; readonly ids: string[] }>()

  constructor(options: UnfinishedOptions) {
    this.#options = options
  }

  /** Returns the error of one run. `report` combines the errors of all. */
  add(id: string, left: Left): RushesError {
    const ids = this.#groups.get(left.why)?.ids ?? []
    ids.push(id)
    this.#groups.set(left.why, { left, ids })
    const error = unfinishedError(left, [id], this.#options)
    this.#errors.add(error)
    return error
  }

  /** Whether `add` returned the error. */
  has(error: RushesError): boolean {
    return this.#errors.has(error)
  }

  /** Returns one error for each reason, for all of its runs. */
  report(): readonly RushesError[] {
    const { positionOf } = this.#options
    return (['not finished', 'time limit', 'signal'] as const).flatMap((why) => {
      const group = this.#groups.get(why)
      if (group === undefined) return []
      const ids = group.ids.sort((one, other) => positionOf(one) - positionOf(other))
      return unfinishedError(group.left, ids, this.#options)
    })
  }
}

/** Adds the hint how to resume, unless the run has ended or is unknown, or the error already has this hint. */
export function withResumeHint(
  error: RushesError,
  { id, state }: Run,
  resume: UnfinishedOptions['resume'],
): RushesError {
  if (error.code === 'wait_timeout' || error.code === 'interrupted') return error
  const isOver = error.httpStatus === 404 || (state !== undefined && state.phase !== 'running')
  const hint = [error.hint, ...(isOver ? [] : [`Resume with \`${resume('wait', [id])}\`.`])]
    .filter((each) => each !== undefined)
    .join(' ')
  return error.with({ hint: hint === '' ? undefined : hint, runId: id })
}

function unfinishedError(left: Left, runs: readonly string[], options: UnfinishedOptions): RushesError {
  const { isLocal, verb } = options
  const [only = ''] = runs
  const [subject, is, was] = runs.length === 1 ? [only, 'is', 'was'] : [`${runs.length} runs`, 'are', 'were']
  const runId = runs.length === 1 ? only : undefined
  if (left.why === 'signal') {
    const going = `${is} ${isLocal ? 'not finished' : 'still running'}`
    const state = verb === 'download' ? `${was} not downloaded` : going
    const hint = [resumeHint(runs, options), ...stopHint(runs, options)].join(' ')
    return interrupted(left.reason, `Interrupted. ${subject} ${state}.`, hint, runId)
  }
  if (left.why === 'not finished') {
    const status = runs.length > 1 || left.status === undefined ? '' : ` (${left.status})`
    const message = `${subject} ${is} not finished${status} and ${was} not downloaded.`
    return new RushesError('wait_timeout', message, {
      hint: resumeHint(runs, { ...options, verb: 'wait' }),
      runId,
    })
  }
  const message = stillRunning(subject, left.timeoutMs, isLocal, is)
  return new RushesError('wait_timeout', message, { hint: resumeHint(runs, options), runId })
}

/** Runs that were only to be downloaded have ended. Without a command that names the runs, returns no hint. */
function stopHint(runs: readonly string[], { verb, resume, many }: UnfinishedOptions): readonly string[] {
  const isNamed = runs.length <= MAX_NAMED
  if (verb === 'download' || (!isNamed && many !== 'wait --all' && many !== 'all')) return []
  return [`Stop ${runs.length === 1 ? 'it' : 'them'} with \`${resume('cancel', isNamed ? runs : 'all')}\`.`]
}

function resumeHint(
  runs: readonly string[],
  { verb, resume, many, isRemembered }: UnfinishedOptions,
): string {
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
