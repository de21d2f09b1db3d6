/** Errors for runs that a command no longer waits for, with the command that resumes them. */

import { stillRunning } from '../../client/run-errors.js'
import { RushesError } from '../../errors.js'
import { interrupted } from '../../host/interrupts.js'
import { quoteWord } from '../../host/shell.js'
import type { Result, Run } from '../../runs/run.js'
import type { Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import { commandLine, type ServiceFlags } from '../settings/globals.js'

/**
 * Returns the command to resume: `wait` waits again, `download` downloads the outputs of finished runs, `cancel` stops
 * the runs. `all`: every unfinished run at the address. `flags`: those of the outputs.
 */
export function resumeCommand(
  globals: ServiceFlags,
  verb: 'wait' | 'download' | 'cancel',
  ids: readonly string[] | 'all',
  flags: readonly string[] = [],
): string {
  // Both commands download to the current folder by default.
  const isImplied = globals.local || verb === 'download'
  const needed = flags.filter((flag) => !(isImplied && flag === '-d'))
  return commandLine(verb, globals, [...needed, ...(ids === 'all' ? ['--all'] : idArguments(ids))])
}

const idArguments = (ids: readonly string[]): readonly string[] => [
  ...(ids.some((id) => id.startsWith('-')) ? ['--'] : []),
  ...ids.map((id) => quoteWord(id).replace(/^'(-[\w.-]*)'$/, '$1')),
]

/** Why a command no longer waits for a run. `not finished`: it did not wait. */
export type Left = Extract<Result, { is: 'running' }>['why']

/** The command that leaves the runs. */
export interface Leaving {
  readonly ctx: Context
  readonly delivery: Delivery
  /** Whether it has created the runs, so that `wait --all` finds them. */
  readonly creates: boolean
}

/** Returns one error for runs that are left for one reason. */
export function leftError(why: Left, runs: readonly Run[], leaving: Leaving): RushesError {
  const { ctx, delivery } = leaving
  const { patience = 0 } = delivery
  const isLocal = ctx.globals.local
  const isOnce = patience === 'once'
  const [only] = runs.length === 1 ? runs : []
  const runId = only?.id
  const subject = runId ?? `${runs.length} runs`
  const is = only === undefined ? 'are' : 'is'
  const hint = resumeHint(runs, leaving, why === 'signal' && !isOnce)
  if (why !== 'signal' && !isOnce)
    return new RushesError('wait_timeout', stillRunning(subject, patience, isLocal, is), { hint, runId })
  const message = `${subject} ${is} ${isLocal || isOnce ? 'not finished' : 'still running'}.`
  return why === 'signal'
    ? interrupted(ctx.interrupts.first.reason, `Interrupted. ${message}`, hint, runId)
    : new RushesError('wait_timeout', message, { hint, runId })
}

/** Maximum number of ids in the command to resume. */
const MAX_NAMED = 10

/** How to resume, and how to stop the runs. */
function resumeHint(
  runs: readonly Run[],
  { ctx: { globals }, delivery, creates }: Leaving,
  mayStop: boolean,
): string {
  // `wait --all` does not find runs that the journal could not take.
  const isNamed = runs.length <= MAX_NAMED || (creates && runs[0]?.known?.row === undefined)
  if (!isNamed && !creates) return 'Resume with the same command.'
  const ids = isNamed ? runs.map(({ id }) => id) : 'all'
  const resume = resumeCommand(globals, 'wait', ids, delivery.again(runs.length))
  const it = runs.length === 1 ? 'it' : 'them'
  const stop = mayStop ? ` Stop ${it} with \`${resumeCommand(globals, 'cancel', ids)}\`.` : ''
  return `Resume with \`${resume}\`.${stop}`
}

/** Adds the hint how to resume, unless the run has ended or is unknown. */
export function withResumeHint(
  error: RushesError,
  { id, state }: Run,
  { ctx: { globals }, delivery }: Leaving,
): RushesError {
  const isOver = error.httpStatus === 404 || (state !== undefined && state.phase !== 'running')
  const resume = `Resume with \`${resumeCommand(globals, 'wait', [id], delivery.again(1))}\`.`
  const hint = [error.hint, isOver ? undefined : resume].filter(Boolean).join(' ')
  return error.with({ hint: hint || undefined, runId: id })
}
