/** `rushes status` and `rushes cancel`: send a request for each run, and show its status. */
import type { Command } from 'commander'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { asRushesError, Interruption } from '../../host/interrupts.js'
import { retry } from '../../host/retry.js'
import { createSlots } from '../../host/slots.js'
import type { Journal, JournalRun } from '../../journal/index.js'
import { RUNS_LIMIT } from '../../protocol/limits.js'
import { errorCodeOf, isCanceled, isOutcomeUnknown, type RunState } from '../../protocol/run-state.js'
import { printable } from '../../protocol/text.js'
import { endErrorOf } from '../../runs/follow.js'
import type { CommandEnvironment, Connection, ConnectOptions, Context } from '../context/context.js'
import { ErrorGroups, exitCodeOf } from '../runs/error-groups.js'
import { isFree, isOnDisk } from '../runs/journal-rows.js'
import { addRunIds, type RunChoice, selectRuns } from '../runs/run-selection.js'
import { endHint } from '../settings/globals.js'
import { confirm } from '../terminal/confirm.js'
import { tabRow } from '../terminal/format.js'
import { runJson } from '../terminal/run-json.js'
import { printTable } from '../terminal/table.js'

interface StatusFlags extends Omit<RunChoice, 'ids'> {
  readonly exitStatus?: boolean
}

export function register(command: Command, { act }: CommandEnvironment): void {
  act(addRunIds(command).option('--exit-status', 'Exit with 10 if a run has failed'), statusCommand)
}

async function statusCommand(ctx: Context, flags: StatusFlags, words: readonly string[]): Promise<number> {
  const { ctx: service, ids } = await selectRuns(ctx, { ...flags, ids: words })
  const { errors, states } = await showRuns(service, ids, ({ client, journal, address }, id) =>
    client.get(id, ctx.interrupts.first, (state) => journal.status(address, { state })),
  )
  const hasFailed = flags.exitStatus === true && states.some(({ phase }) => phase === 'failed')
  return exitCodeOf(errors) || (hasFailed ? EXIT.runFailed : EXIT.ok)
}

interface StatusSource extends Connection {
  readonly address: string
  readonly journal: Journal
  /** Returns the row of a run. Undefined if it has none, or if the journal cannot be read. */
  find(id: string): JournalRun | undefined
}

interface ShowRunsOptions extends ConnectOptions {
  /** Called for every run before the first request. If it throws, no request is sent. */
  check?(service: StatusSource, id: string): Promise<void>
}

/** Sends a request for each run, records and prints its state, and prints the errors. */
async function showRuns(
  ctx: Context,
  ids: readonly string[],
  ask: (service: StatusSource, id: string) => Promise<RunState>,
  { check, ...needs }: ShowRunsOptions = {},
): Promise<{ readonly errors: readonly RushesError[]; readonly states: readonly RunState[] }> {
  const { out } = ctx
  if (ids.length === 0) return { errors: [], states: [] }
  const connection = await ctx.connect(needs)
  const journal = await ctx.openJournal()
  const address = await ctx.address()
  const find = (id: string) => journal.tryRead(() => journal.find(address, id))
  const service: StatusSource = { ...connection, address, journal, find }
  for (const id of ids) await check?.(service, id)
  // Limits the requests in flight to the rate limit. More would only wait for a slot, and each would need its own abort
  // handling.
  const inFlight = createSlots(RUNS_LIMIT.requests)
  const answers = ids.map((id) =>
    inFlight.use(async (): Promise<RunState | RushesError | Interruption> => {
      try {
        const state = await ask(service, id)
        journal.status(address, { state })
        return state
      } catch (thrown) {
        if (thrown instanceof Interruption) return thrown
        const error = asRushesError(thrown).with({ runId: id })
        if (error.code === 'run_not_found') journal.notFound(address, id, error)
        return error
      }
    }),
  )
  const states: RunState[] = []
  const errors: RushesError[] = []
  const groups = new ErrorGroups()
  const rows: (readonly string[])[] = []
  for (const waiting of answers) {
    const answer = await waiting
    if (answer instanceof Interruption) throw answer
    let error = answer instanceof RushesError ? answer : endError(answer, ctx.globals.local)
    if (!(answer instanceof RushesError)) {
      states.push(answer)
      printState(ctx, service, answer, { error, rows })
      // That a run failed is an answer, and an error only with `--exit-status`.
      if (error?.code === 'run_failed') error = undefined
    }
    if (error === undefined) continue
    errors.push(error)
    if (groups.add(error)) out.error(error)
  }
  await printTable(out, [], rows)
  for (const error of groups.repeated()) out.error(error)
  return { errors, states }
}

function endError(state: RunState, isLocal: boolean): RushesError | undefined {
  return endErrorOf(state, isLocal)?.with({ next: endHint(state, isLocal) })
}

/**
 * Shows the files of the run that are on the disk: on a terminal, and for a local run, whose URLs stop working when this
 * process ends. On a terminal the row is added to `rows`, because columns are aligned only after all are known.
 */
function printState(
  { out, globals }: Context,
  { journal, find }: StatusSource,
  state: RunState,
  { error, rows }: { readonly error: RushesError | undefined; readonly rows: (readonly string[])[] },
): void {
  const { id, status, urls } = state
  const row = find(id)
  const files = row === undefined ? [] : journal.filesOf(row).filter(isOnDisk)
  const showsFiles = globals.local || (out.stdoutIsTerminal && files.length > 0)
  const locations = showsFiles ? files.map(({ path }) => path) : urls
  const cells = [id, status, locations.join(' ')].map(printable)
  if (out.mode.json) out.json(runJson({ ...row, id, state, files, error }))
  else if (out.stdoutIsTerminal) rows.push(cells)
  else out.line(tabRow(cells))
}

/** The service repeats a cancel that a provider does not confirm for two minutes. */
const MAX_STOPPING_MS = 150_000
const STOPPING_STEP_MS = 1_000
const STEPS_BEFORE_NOTE = 3

interface CancelFlags extends Omit<RunChoice, 'ids'> {
  readonly yes?: boolean
}

export function registerCancel(command: Command, { act }: CommandEnvironment): void {
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
    if (phase === 'succeeded') out.note(`${id} had already ended (${status}).`)
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
    return new RushesError('run_failed', `The run is not canceled (${status}); it continues.`, {
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
