/** `rushes list` and `rushes show`: the runs created on this machine, from the journal. They send no requests. */
import type { Command } from 'commander'
import { EXIT } from '../../errors.js'
import { quoteWord } from '../../host/shell.js'
import type { Journal, JournalRun } from '../../journal/index.js'
import { DEFAULTS } from '../../protocol/defaults.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { SHOW } from '../flags/delivery.js'
import { createFileFinder, flagsToReach, nameOfRun } from '../runs/journal-rows.js'
import { listCells, printRuns, showRows } from '../runs/run-cells.js'
import { addFilterOptions, addRunId, type FilterOptions, filterOf, selectRun } from '../runs/run-selection.js'
import { tabRow } from '../terminal/format.js'
import { listJson } from '../terminal/run-json.js'
import { printTable } from '../terminal/table.js'

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

interface ShowFlags {
  readonly last?: boolean
  readonly show?: boolean
}

export function registerShow(command: Command, { act }: CommandEnvironment): void {
  act(addRunId(command).option(...SHOW), showCommand)
}

export async function showCommand(ctx: Context, { last, show }: ShowFlags, name?: string): Promise<number> {
  const { out, clock } = ctx
  const journal = await ctx.journal()
  const run = await selectRun(ctx, name, last)
  const files = journal.filesOf(run)
  if (out.mode.json) {
    out.json(listJson(run, files))
    return EXIT.ok
  }
  const rows = showRows(run, files, { nowMs: clock.now(), isTerminal: out.stdoutIsTerminal })
  await printTable(out, [], rows)
  if (run.phase === 'running')
    out.note(
      `This is the status of the last request. For the current status, run \`rushes status ${nameOfRun(run)}\`.`,
    )
  if (show === true) await drawFiles(ctx, run, journal)
  return EXIT.ok
}

/** Draws the files that are still there. */
async function drawFiles(ctx: Context, run: JournalRun, journal: Journal): Promise<void> {
  const { openPictures } = await import('../runs/pictures.js')
  const { files, missing } = createFileFinder(ctx, journal)(run)
  const pictures = files.length === 0 ? undefined : await openPictures(ctx, 'flag')
  for (const { path, content_type = `${run.kind}/*` } of files) await pictures?.draw({ path, content_type })
  if (run.phase !== 'succeeded' || (files.length > 0 && missing === 0)) return
  const words = [...(await flagsToReach(ctx, run)), quoteWord(nameOfRun(run)), '--show']
  ctx.out.note(
    `Not every result of this run is on this machine. Download it with \`rushes download ${words.join(' ')}\`.`,
  )
}
