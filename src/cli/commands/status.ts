/** `rushes status`: shows the current status of runs. */
import { type Command, Option } from 'commander'
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
import { InOrder } from '../runs/print-run.js'
import { statusCells } from '../runs/run-cells.js'
import { addRunIds, type RunChoice, selectRuns } from '../runs/run-selection.js'
import { tabRow } from '../terminal/format.js'
import { type RunRecord, runJson } from '../terminal/run-json.js'

interface StatusOptions extends RunChoice {
  readonly exitStatus: boolean
}

export function register(command: Command, { run }: CommandEnvironment): void {
  addRunIds(command)
    .addOption(new Option('--exit-status', 'Exit with 10 if a run has failed'))
    .action((ids: string[], { last, exitStatus = false }: { last?: boolean; exitStatus?: boolean }) =>
      run(command, (ctx) => statusCommand(ctx, { ids, last, exitStatus })),
    )
}

export interface StatusSource extends Connection {
  readonly address: string
  readonly journal: Journal
  /** Returns the row of a run. Undefined if it has none, or if the journal cannot be read. */
  find(id: string): JournalRun | undefined
}

interface StatusRow {
  readonly record: RunRecord
  readonly cells: readonly string[]
}

/** Shows the status of each run. */
export async function statusCommand(ctx: Context, options: StatusOptions): Promise<number> {
  const { ctx: session, ids } = await selectRuns(ctx, options)
  const ask = ({ client, journal, address }: StatusSource, id: string) =>
    client.get(id, ctx.interrupts.first, (state) => journal.status(address, { state }))
  const { errors, states } = await showRuns(session, ids, ask)
  const hasFailed = options.exitStatus && states.some(({ phase }) => phase === 'failed')
  return exitCodeOf(errors) || (hasFailed ? EXIT.runFailed : EXIT.ok)
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
  options: ShowRunsOptions = {},
): Promise<{ readonly errors: readonly RushesError[]; readonly states: readonly RunState[] }> {
  const { out } = ctx
  if (ids.length === 0) return { errors: [], states: [] }
  const service = await serviceOf(ctx, options)
  for (const id of ids) await options.check?.(service, id)
  const errors: RushesError[] = []
  const groups = new ErrorGroups()
  const rows: (readonly string[])[] = []
  const printRow = ({ record, cells }: StatusRow) => {
    if (out.mode.json) out.json(runJson(record))
    // The columns of a table are aligned only after all rows are known.
    else if (out.stdoutIsTerminal) rows.push(cells)
    else out.line(tabRow(cells))
  }
  const print = (item: StatusRow | RushesError) => {
    if (!(item instanceof RushesError)) printRow(item)
    const error = item instanceof RushesError ? item : item.record.error
    // That a run failed is an answer, and an error only with `--exit-status`.
    if (error === undefined || error.code === 'run_failed') return
    errors.push(error)
    if (groups.add(error)) out.error(error)
  }
  const turns = new InOrder<StatusRow | RushesError>()
  const settle = (index: number, item: StatusRow | RushesError) => {
    for (const each of turns.add(index, item)) print(each)
  }
  const states: RunState[] = []
  // Limits the requests in flight to the rate limit. More would only wait for a slot, and each would need its own abort
  // handling.
  const inFlight = createSlots(RUNS_LIMIT.requests)
  const show = (id: string, index: number) =>
    inFlight.use(async () => {
      try {
        const state = await ask(service, id)
        service.journal.status(service.address, { state })
        states.push(state)
        settle(index, await statusRowOf(state, service, out.stdoutIsTerminal))
      } catch (thrown) {
        if (thrown instanceof Interruption) throw thrown
        const error = asRushesError(thrown).with({ runId: id })
        if (error.code === 'run_not_found') service.journal.notFound(service.address, id, error)
        settle(index, error)
      }
    })
  await Promise.all(ids.map(show))
  if (rows.length > 0) {
    const { printTable } = await import('../terminal/table.js')
    printTable(out, [], rows)
  }
  for (const error of groups.repeated()) out.error(error)
  return { errors, states }
}

async function serviceOf(ctx: Context, options: ConnectOptions): Promise<StatusSource> {
  const connection = await ctx.connect(options)
  const journal = await ctx.openJournal()
  const address = await ctx.address()
  const find = (id: string) => journal.tryRead(() => journal.find(address, id))
  return { ...connection, address, journal, find }
}

/**
 * Shows the files of the run that are on the disk: on a terminal, and for a local run, whose URLs stop working when this
 * process ends.
 */
async function statusRowOf(
  state: RunState,
  { journal, find, localFiles }: StatusSource,
  isTerminal: boolean,
): Promise<StatusRow> {
  const { id, service, urls } = state
  const row = find(id)
  const { kind, model, createdAt, elapsedMs } = knownRun(id, row)
  const downloaded = row === undefined ? [] : journal.filesOf(row).filter(isOnDisk)
  const isLocal = localFiles !== undefined
  const files = isLocal && downloaded.length === 0 ? await localFiles(urls) : downloaded
  const showsFiles = isLocal || (isTerminal && files.length > 0)
  const locations = showsFiles ? files.map(({ path }) => path) : urls
  const error = endErrorOf(state, isLocal)
  const details = { files, error, createdAt, finishedAt: undefined, elapsedMs }
  return { record: { id, kind, model, state, service, ...details }, cells: statusCells(state, locations) }
}
