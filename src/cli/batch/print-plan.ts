/** Prints a plan, and warnings about runs that no row uses. */
import type { LeftRun, Plan, PlanStep } from '../../batch/plan/index.js'
import type { Context } from '../context/context.js'
import { resumeCommand } from '../runs/resume.js'
import { printTable } from '../terminal/table.js'
import { planRow, writeJobSummary, writeReport } from './ci-reports.js'
import {
  estimateJson,
  leftRunsJson,
  notesOf,
  planLine,
  shownCells,
  stepCells,
  stepJson,
  sumPlan,
} from './plan-text.js'
import type { PreparedBatch } from './prepare.js'

export async function printPlan(ctx: Context, prepared: PreparedBatch): Promise<void> {
  const { out } = ctx
  const { plan, options } = prepared
  reportPlan(ctx, prepared, out.mode.json)
  warnOfLeftRuns(ctx, plan)
  if (out.mode.json) return
  const cells = out.stdoutIsTerminal ? shownCells : stepCells
  await printTable(out, [], selectedSteps(plan).map(cells))
  for (const note of notesOf(plan)) out.note(note)
  out.note(planLine(ctx, plan, options.limit.prices))
}

/** Writes the plan to the `--report` file and to the job summary. `prints`: whether it is also printed, as lines of JSON. */
export function reportPlan(ctx: Context, prepared: PreparedBatch, prints: boolean): void {
  const { plan, manifest, flags, options } = prepared
  const { prices } = options.limit
  const estimate = sumPlan(plan, prices)
  const runs = selectedSteps(plan).map(stepJson)
  const summary = {
    ...plan.counts,
    models: Object.fromEntries([...estimate.byModel].map(([model, each]) => [model, each.runs])),
    ...estimateJson(estimate),
    not_waited_for: leftRunsJson(plan),
  }
  if (prints) for (const each of [...runs, { summary }]) ctx.out.json(each)
  if (options.mode !== 'dry run') writeReport(ctx, flags.report, { runs, summary })
  const rows = openSteps(plan).map(planRow)
  writeJobSummary(ctx, { manifest, line: planLine(ctx, plan, prices), rows })
}

const selectedSteps = ({ steps }: Plan): readonly PlanStep[] =>
  steps.filter(({ action }) => action.do !== 'skip')

/** The selected rows that are not up to date. */
export const openSteps = (plan: Plan): readonly PlanStep[] =>
  selectedSteps(plan).filter(({ action }) => action.do !== 'up_to_date')

/** Maximum number of warnings: one screen. `--json` has all runs. */
const MAX_SHOWN = 20

const WHY: Readonly<Record<LeftRun['why'], string>> = {
  changed: 'the manifest has changed since',
  waiting: 'files that it uses are still to come',
  forced: '--force creates it again',
  removed: 'the manifest no longer has it',
}

/** Warns about runs that no row uses: they may be paid for. */
export function warnOfLeftRuns({ out, globals }: Context, { left }: Plan): void {
  for (const { flight, why } of left.slice(0, MAX_SHOWN)) {
    const { name, run, key } = flight
    if (run === undefined)
      out.warn(
        `${name}: the outcome of an earlier create${key === undefined ? '' : ` (${key})`} is unknown, and ${WHY[why]}. ` +
          'A run may exist that nothing waits for: check the runs of your account.',
      )
    else
      out.warn(
        `${name}: ${run} has not been downloaded, and ${WHY[why]}. This batch does not wait for it` +
          `${why === 'waiting' ? ' unless they have the same bytes as before' : ''}. ` +
          `To get its result: ${resumeCommand(globals, 'wait', [run], ['-d'])}`,
      )
  }
  const more = left.length - MAX_SHOWN
  if (more > 0) out.warn(`${more} more runs are not waited for. --json names them all.`)
}
