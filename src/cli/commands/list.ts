/** `rushes list`: lists the runs created on this machine. */
import type { Command } from 'commander'
import { EXIT } from '../../errors.js'
import { DEFAULTS } from '../../protocol/defaults.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { listCells, printRuns } from '../runs/run-cells.js'
import { addFilterOptions, type FilterOptions, filterOf } from '../runs/run-selection.js'
import { tabRow } from '../terminal/format.js'
import { listJson } from '../terminal/run-json.js'

export function register(command: Command, { act }: CommandEnvironment): void {
  act(addFilterOptions(command, { limit: DEFAULTS.listLimit }), listCommand)
}

export async function listCommand(ctx: Context, options: FilterOptions): Promise<number> {
  const { out } = ctx
  const filter = await filterOf(ctx, options)
  const journal = await ctx.journal()
  const runs = journal.list(filter)
  if (out.mode.json) for (const run of runs) out.json(listJson(run, journal.filesOf(run)))
  else if (!out.stdoutIsTerminal) for (const run of runs) out.line(tabRow(listCells(run)))
  else if (runs.length === 0) out.note('No runs found.')
  else await printRuns(ctx, journal, runs)
  return EXIT.ok
}
