/** `rushes cancel`: asks the service to cancel runs. */
import type { Command } from 'commander'
import { RushesError, usageError } from '../../errors.js'
import { retry } from '../../host/retry.js'
import { errorCodeOf, isCanceled, isOutcomeUnknown, type RunState } from '../../protocol/run-state.js'
import { printable } from '../../protocol/text.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { exitCodeOf } from '../process/exit.js'
import { isFree } from '../runs/journal-rows.js'
import { addRunIds, type RunChoice, selectRuns } from '../runs/run-selection.js'
import { confirm } from '../terminal/confirm.js'
import { type StatusSource, showRuns } from './status.js'

/** The service repeats a cancel that a provider does not confirm for two minutes. */
const MAX_STOPPING_MS = 150_000
const STOPPING_STEP_MS = 1_000
const STEPS_BEFORE_NOTE = 3

interface CancelFlags extends Omit<RunChoice, 'ids'> {
  readonly yes?: boolean
}

export function register(command: Command, { act }: CommandEnvironment): void {
  addRunIds(command, { hasAll: true }).option('--yes', 'Do not ask before canceling several runs with --all')
  act(command, cancelCommand)
}

export async function cancelCommand(
  ctx: Context,
  flags: CancelFlags,
  words: readonly string[],
): Promise<number> {
  const { out } = ctx
  const { ctx: service, ids } = await selectRuns(ctx, { ...flags, ids: words })
  const needsAnswer = flags.all === true && flags.yes !== true && ids.length > 1
  if (needsAnswer && (await confirm(ctx, `Cancel all ${ids.length} unfinished runs?`)) === 'no')
    throw usageError('Nothing was canceled.')
  const { errors, states } = await showRuns(service, ids, (source, id) => cancelRun(ctx, source, id), {
    render: true,
    check: checkJob,
  })
  for (const { id, status, phase } of states)
    if (phase === 'succeeded') out.note(`${id} had already ended (${printable(status)}).`)
  const refusals = states.flatMap((state) => refusalOf(state) ?? [])
  for (const refusal of refusals) out.error(refusal)
  return exitCodeOf([...errors, ...refusals])
}

/**
 * Throws `usage` if the model of a local run cannot run, for example without the provider's key: its job could not be
 * canceled, and would cost money.
 */
async function checkJob({ find, checkRun }: StatusSource, id: string): Promise<void> {
  const row = find(id)
  await checkRun?.(id, row !== undefined && !isFree(row))
}

/** Returns an error if the run, or its job at the provider, continues although the service has answered. */
function refusalOf(state: RunState): RushesError | undefined {
  const { id: runId, status, phase } = state
  if (phase === 'running')
    return new RushesError('run_failed', `The run is not canceled (${printable(status)}); it continues.`, {
      runId,
      hint: 'The service may still be canceling it. Repeat the command to see.',
    })
  if (!isCanceled(state) || !isOutcomeUnknown(state)) return undefined
  return new RushesError('run_failed', 'The job of the run was not canceled; it may continue.', {
    runId,
    hint: 'It may cost money: look at the list of its provider.',
  })
}

/** Resolves with the state of the run when its job at a provider is canceled too, or when it was too late. */
async function cancelRun(
  { clock, out, interrupts }: Context,
  { client }: StatusSource,
  id: string,
): Promise<RunState> {
  const { first: signal } = interrupts
  const deadlineMs = clock.monotonic() + MAX_STOPPING_MS
  return await retry<RunState, RunState>({
    attempt: (number) => (number === 1 ? client.cancel(id, signal) : client.get(id, signal)),
    decide(state, number) {
      if (errorCodeOf(state) !== 'canceling') return { done: state }
      if (clock.monotonic() >= deadlineMs)
        return {
          fail: new RushesError('wait_timeout', `The job of ${id} was not canceled in time.`, {
            hint: 'It may continue at its provider, and cost money. Repeat the command.',
          }),
        }
      if (number === STEPS_BEFORE_NOTE) out.note(`Canceling the job of ${id}, for up to 2 minutes.`)
      return { retryInMs: STOPPING_STEP_MS }
    },
    clock,
    signal,
  })
}
