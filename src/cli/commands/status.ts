/** `rushes status`: shows the current status of runs. */
import type { Command } from 'commander'
import { endErrorOf } from '../../client/run-errors.js'
import { EXIT, RushesError } from '../../errors.js'
import { asRushesError, Interruption } from '../../host/interrupts.js'
import { createSlots } from '../../host/slots.js'
import type { Journal, JournalRun } from '../../journal/index.js'
import { RUNS_LIMIT } from '../../protocol/limits.js'
import type { RunState } from '../../protocol/run-state.js'
import { knownRun } from '../../runs/run.js'
import type { CommandEnvironment, Connection, ConnectOptions, Context } from '../context/context.js'
import { exitCodeOf } from '../process/exit.js'
import { ErrorGroups } from '../runs/error-groups.js'
import { isOnDisk } from '../runs/journal-rows.js'
import { statusCells } from '../runs/run-cells.js'
import { addRunIds, type RunChoice, selectRuns } from '../runs/run-selection.js'
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

export interface StatusSource extends Connection {
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
export async function showRuns(
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
    let error = answer instanceof RushesError ? answer : endErrorOf(answer, ctx.globals.local)
    if (!(answer instanceof RushesError)) {
      states.push(answer)
      await printState(ctx, service, answer, { error, rows })
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

/**
 * Shows the files of the run that are on the disk: on a terminal, and for a local run, whose URLs stop working when this
 * process ends. On a terminal the row is added to `rows`, because columns are aligned only after all are known.
 */
async function printState(
  { out }: Context,
  { journal, find, localFiles }: StatusSource,
  state: RunState,
  { error, rows }: { readonly error: RushesError | undefined; readonly rows: (readonly string[])[] },
): Promise<void> {
  const { id, urls } = state
  const row = find(id)
  const downloaded = row === undefined ? [] : journal.filesOf(row).filter(isOnDisk)
  const files = downloaded.length === 0 ? ((await localFiles?.(urls)) ?? []) : downloaded
  const showsFiles = localFiles !== undefined || (out.stdoutIsTerminal && files.length > 0)
  const cells = statusCells(state, showsFiles ? files.map(({ path }) => path) : urls)
  if (out.mode.json) out.json(runJson({ ...knownRun(id, row), state, files, error }))
  else if (out.stdoutIsTerminal) rows.push(cells)
  else out.line(tabRow(cells))
}
