/** Prints a plan: all of it on standard output, or the rows with work on standard error. */
import type { LeftRun, Plan, PlanStep } from '../../batch/plan/index.js'
import type { Context } from '../context/context.js'
import type { Prices } from '../models/prices.js'
import { resumeCommand } from '../runs/resume.js'
import { printTable } from '../terminal/table.js'
import { planRow, writeJobSummary, writeReport } from './ci-reports.js'
import { estimateJson, estimateNote, sumPlan } from './estimates.js'
import type { PreparedBatch } from './prepare.js'
import { leftRunsJson, modelsNote, notesOf, stepCells, stepJson, stepWords, summaryLine } from './show.js'

export function printPlan(ctx: Context, prepared: PreparedBatch): void {
  const { out } = ctx
  const { plan, options } = prepared
  const { prices } = options.limit
  reportPlan(ctx, prepared, out.mode.json)
  warnOfLeftRuns(ctx, plan)
  if (out.mode.json) return
  const selected = selectedSteps(plan)
  printTable(out, [], selected.map(out.stdoutIsTerminal ? stepWords : stepCells))
  for (const note of notesOf(plan)) out.note(note)
  const models = modelsNote(sumPlan(plan, prices))
  if (models !== undefined) out.note(models)
  out.note(planLine(ctx, plan, prices))
}

/** Writes the plan to the `--report` file and to the job summary. `prints`: whether it is also printed, as lines of JSON. */
export function reportPlan(ctx: Context, prepared: PreparedBatch, prints: boolean): void {
  const { plan, manifest, flags, options } = prepared
  const { prices } = options.limit
  const estimate = sumPlan(plan, prices)
  const selected = selectedSteps(plan)
  const runs = selected.map(stepJson)
  const summary = {
    ...plan.counts,
    models: Object.fromEntries([...estimate.byModel].map(([model, { runs }]) => [model, runs])),
    ...estimateJson(estimate),
    not_waited_for: leftRunsJson(plan),
  }
  if (prints) for (const each of [...runs, { summary }]) ctx.out.json(each)
  if (options.mode !== 'dry run') writeReport(ctx, flags.report, { runs, summary })
  const line = planLine(ctx, plan, prices)
  writeJobSummary(ctx, { manifest, line, hasResults: false, rows: selected.map(planRow) })
}

const selectedSteps = ({ steps }: Plan): readonly PlanStep[] =>
  steps.filter(({ action }) => action.do !== 'skip')

/** `5 runs: 3 up to date, 2 to create. Estimate: 3 credits` */
export const planLine = ({ globals }: Context, plan: Plan, prices: Prices): string =>
  `${summaryLine(plan)}${estimateNote(sumPlan(plan, prices), globals)}`

/** Maximum number of rows printed: one screen. `--json` has all rows. */
const MAX_SHOWN = 20

/** Warns about runs that no row uses: they may be paid for. */
export function warnOfLeftRuns({ out, globals }: Context, { left }: Plan): void {
  const commandFor = (run: string) => resumeCommand({ globals, delivery: ['-d'] }, 'wait', [run])
  for (const each of left.slice(0, MAX_SHOWN)) out.warn(warningOf(each, commandFor))
  const more = left.length - MAX_SHOWN
  if (more > 0) out.warn(`${more} more runs are not waited for. --json names them all.`)
}

function warningOf(
  { flight: { name, run, key }, why }: LeftRun,
  commandFor: (run: string) => string,
): string {
  const shownKey = key === undefined ? '' : ` (${key})`
  if (run === undefined)
    return (
      `${name}: the outcome of an earlier create${shownKey} is unknown, and ${WHY[why]}. ` +
      'A run may exist that nothing waits for: check the runs of your account.'
    )
  const unless = why === 'waiting' ? ' unless they have the same bytes as before' : ''
  return (
    `${name}: ${run} has not been downloaded, and ${WHY[why]}. This batch does not wait for it${unless}. ` +
    `To get its result: ${commandFor(run)}`
  )
}

const WHY: Readonly<Record<LeftRun['why'], string>> = {
  changed: 'the manifest has changed since',
  waiting: 'files that it uses are still to come',
  forced: '--force creates it again',
  removed: 'the manifest no longer has it',
}
