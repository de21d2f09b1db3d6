/** `rushes status`: shows the current status of runs. */
import { type Command, Option } from 'commander'
import { EXIT, type RushesError } from '../../errors.js'
import type { RunState } from '../../protocol/run-state.js'
import type { Context } from '../context/context.js'
import { asRushesError, exitCodeOf } from '../process/exit.js'
import { Interruption } from '../process/interrupts.js'
import { checkIds, readIds } from '../process/stdin.js'
import { type KnownRun, knownRun } from '../runs/known-run.js'
import { inOrder } from '../runs/print-order.js'
import { alignedRow, tabRow, widthsOf } from '../terminal/cell-rows.js'
import { type RunRecord, runJson } from '../terminal/run-json.js'
import { statusCells } from '../terminal/status-cell.js'
import type { CommandEnvironment } from './command-environment.js'

export interface StatusOptions {
  readonly ids: readonly string[]
  readonly exitStatus: boolean
}

export function register(command: Command, { run }: CommandEnvironment, showStatus = statusCommand): void {
  command
    .argument('<id...>', 'run ids; - reads them from standard input, one a line')
    .addOption(new Option('--exit-status', 'exit 10 when a run has failed'))
    .action((ids: string[], flags: { exitStatus?: boolean }) =>
      run(command, (ctx) => showStatus(ctx, { ids, exitStatus: flags.exitStatus === true })),
    )
}

export async function statusCommand(ctx: Context, options: StatusOptions): Promise<number> {
  const { out } = ctx
  const ids = checkIds(await readIds(options.ids, ctx.stdin, ctx.interrupts.first))
  const { client } = await ctx.connect()
  const recorder = await ctx.recorder()
  const errors: RushesError[] = []
  const seen: RunState[] = []
  const turns = inOrder<RunState | RushesError>((item) => {
    if (!('phase' in item)) {
      errors.push(item)
      out.error(item)
    } else if (out.mode.json) out.json(runJson(recordOf(item, knownRun(item.id, recorder.find(item.id)))))
    // A table needs all rows before its columns are aligned.
    else if (out.stdoutIsTerminal) seen.push(item)
    else out.line(tabRow(statusCells(item)))
  })
  let failed = false
  await Promise.all(
    ids.map(async (id, index) => {
      try {
        const state = await client.get(id, ctx.interrupts.first)
        recorder.recordStatus({ state })
        failed ||= state.phase === 'failed'
        turns.settle(index, state)
      } catch (thrown) {
        if (thrown instanceof Interruption) throw thrown
        const error = asRushesError(thrown).with({ runId: id })
        if (error.code === 'run_not_found') recorder.recordNotFound(error, id)
        turns.settle(index, error)
      }
    }),
  )
  const widths = widthsOf(seen.map(statusCells), out.columns)
  for (const state of seen) out.line(alignedRow(statusCells(state), widths))
  return exitCodeOf(errors) || (options.exitStatus && failed ? EXIT.runFailed : EXIT.ok)
}

const recordOf = (state: RunState, { kind, model, createdAt, elapsedMs }: KnownRun): RunRecord => ({
  id: state.id,
  kind,
  model,
  state,
  service: state.service,
  files: [],
  error: undefined,
  createdAt,
  finishedAt: undefined,
  elapsedMs,
})
