/** Prints a plan: all of it as the answer, or what is to be done as notes. */
import type { Expectation } from '../../batch/plan/expected.js'
import type { Plan, Step } from '../../batch/plan/index.js'
import type { Context } from '../context/context.js'
import { missingError } from '../settings/missing.js'
import { alignedRow, tabRow, widthsOf } from '../terminal/cell-rows.js'
import { writeJobSummary } from './job-summary.js'
import { leftRunsJson, warnOfLeftRuns } from './left-runs.js'
import { treeRows } from './plan-tree.js'
import { type Prepared, refuseImpossible } from './prepare.js'
import { createJsonOutput } from './report-file.js'
import { modelsNote, notesOf, runsByModel, stepCells, stepJson, summaryLine } from './show.js'
import { planRow } from './summary-rows.js'

/** Of `--dry-run`: with an estimate of the time. */
export async function printDryRun(ctx: Context, prepared: Prepared): Promise<void> {
  const { expect } = await import('./expect.js')
  printPlan(ctx, prepared, await expect(ctx, prepared))
}

/** Throws `usage` for a plan that cannot be carried out with these flags, files and models. */
export function refusePlan(prepared: Prepared): void {
  refuseImpossible(prepared)
  if (prepared.missing.length > 0) throw missingError(prepared.missing)
}

export function printPlan(
  ctx: Context,
  { plan, manifest, flags }: Prepared,
  expectation?: Expectation,
): void {
  const { out } = ctx
  const json = createJsonOutput(ctx, flags.report)
  const selected = plan.steps.filter(({ action }) => action.do !== 'skip')
  for (const step of selected) json(stepJson(step))
  const { leastMs = null, expectedMs = null } = expectation ?? {}
  const runs = Object.fromEntries(runsByModel(plan))
  const left = leftRunsJson(plan)
  json({
    summary: {
      ...plan.counts,
      least_ms: leastMs,
      expected_ms: expectedMs,
      models: runs,
      not_waited_for: left,
    },
  })
  warnOfLeftRuns(ctx, plan)
  if (out.mode.json) return
  const rows = out.stdoutIsTerminal ? treeRows(selected) : selected.map(stepCells)
  const widths = widthsOf(rows, out.columns)
  for (const row of rows) out.line(out.stdoutIsTerminal ? alignedRow(row, widths) : tabRow(row))
  for (const note of notesOf(plan)) out.note(note)
  const models = modelsNote(plan)
  if (models !== undefined) out.note(models)
  const line = summaryLine(plan, expectation)
  out.note(line)
  writeJobSummary(ctx, { manifest, line, hasResults: false, rows: selected.map(planRow) })
}

/** The rows that something is to be done for, or that cannot be done. Prints nothing when there are none. */
export async function printWork(ctx: Context, prepared: Prepared): Promise<void> {
  const { out, stderr } = ctx
  const { plan } = prepared
  warnOfLeftRuns(ctx, plan)
  const steps = openSteps(plan)
  if (steps.length === 0) return
  const { expect } = await import('./expect.js')
  const rows = treeRows(steps)
  const widths = widthsOf(rows, stderr.columns)
  for (const row of rows) out.note(alignedRow(row, widths))
  const models = modelsNote(plan)
  if (models !== undefined) out.note(models)
  out.note(summaryLine(plan, await expect(ctx, prepared)))
}

function openSteps({ steps }: Plan): readonly Step[] {
  const open = steps.filter(({ action }) => action.do !== 'up_to_date' && action.do !== 'skip')
  const names = new Set(open.map(({ entry }) => entry.name))
  // In the tree a row is below another one only if that one is shown.
  return open.map((step) => ({ ...step, sources: step.sources.filter((name) => names.has(name)) }))
}
