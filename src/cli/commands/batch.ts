/** `rushes batch`: creates only the assets of a manifest that are missing or out of date. */
import { type Command, Option } from 'commander'
import type { Claim } from '../../batch/lock/claim.js'
import type { Expectation } from '../../batch/plan/expected.js'
import { EXIT } from '../../errors.js'
import { isSystemError } from '../../host/system-error.js'
import { annotate, annotateExit, MAX_LINE_ANNOTATIONS } from '../batch/annotations.js'
import { writeJobSummary } from '../batch/job-summary.js'
import { loadManifest } from '../batch/load.js'
import { type BatchFlags, batchOptionsOf } from '../batch/options.js'
import { treeRows } from '../batch/plan-tree.js'
import { type Prepared, prepare, refuseImpossible } from '../batch/prepare.js'
import { beginReport, createJsonOutput } from '../batch/report-file.js'
import { neverWritable, runBatch } from '../batch/run-batch.js'
import {
  isAllUpToDate,
  modelsNote,
  notesOf,
  runsByModel,
  stepCells,
  stepJson,
  stepWords,
  summaryLine,
} from '../batch/show.js'
import { planRow } from '../batch/summary-rows.js'
import type { Context } from '../context/context.js'
import { repeated } from '../flags/repeated.js'
import { asRushesError } from '../process/exit.js'
import { missingError } from '../settings/missing.js'
import { alignedRow, tabRow, widthsOf } from '../terminal/cell-rows.js'
import type { CommandEnvironment } from './command-environment.js'

export interface BatchRequest {
  /** A path, or `-`. */
  readonly manifest: string
  readonly flags: BatchFlags
}

const ROWS: readonly (readonly [string, string])[] = [
  ['--check', 'Change nothing; exit with 10 if a file is missing or out of date; needs no key'],
  ['--dry-run', 'Print the plan and change nothing'],
  ['--only <glob>', 'Only runs whose name or output matches, and the runs that they use (repeatable)'],
  ['--force', 'Create runs again even if they are up to date'],
  ['--max-runs <n>', 'Exit with 2 if more than n runs would be created'],
  ['--concurrency <n>', 'Maximum number of runs at the same time (default: no limit)'],
  ['--fail-fast', 'Create no further runs after the first failure'],
  ['--resubmit-unconfirmed', 'Send creates with an unknown outcome again; may pay twice'],
  ['--allow-outside', 'Allow outputs outside the folder of the manifest'],
  ['--overwrite', 'Replace files that are not in the lock file'],
  ['--report <path>', 'Also write the lines of --json to this file'],
  ['--timeout <duration>', 'How long to wait for each run: 90s, 15m, 0 for no limit (default 30m)'],
]

export function register(command: Command, { run }: CommandEnvironment, batch = batchCommand): void {
  command.argument('<manifest>', 'YAML, JSON, JSON Lines or CSV file; - reads standard input')
  for (const [flags, about] of ROWS) {
    const option = new Option(flags, about)
    command.addOption(flags.startsWith('--only') ? option.argParser(repeated) : option)
  }
  command.action((manifest: string, flags: BatchFlags) =>
    run(command, (ctx) => batch(ctx, { manifest, flags })),
  )
}

export async function batchCommand(ctx: Context, request: BatchRequest): Promise<number> {
  const isCheck = request.flags.check === true
  try {
    const code = await doBatch(ctx, request)
    await annotateExit(ctx, { code, isCheck })
    return code
  } catch (thrown) {
    const error = asRushesError(thrown)
    await annotateExit(ctx, { code: error.exitCode, isCheck, error })
    throw thrown
  }
}

async function doBatch(ctx: Context, { manifest, flags }: BatchRequest): Promise<number> {
  const words = { word: manifest, flags }
  const options = await batchOptionsOf(ctx, flags)
  const loaded = await loadManifest(ctx, manifest, options)
  beginReport(flags.report, loaded)
  if (options.mode === 'check') return check(ctx, await prepare(ctx, loaded, options, words))
  if (options.mode === 'dry run') return await dryRun(ctx, await prepare(ctx, loaded, options, words))
  // Before the lock file is read: another batch may be about to write into it, and its runs must not be paid again.
  const claim = await claimFor(ctx, loaded.lockPath)
  try {
    const prepared = await prepare(ctx, loaded, options, words)
    refuseImpossible(prepared)
    return await runBatch(ctx, prepared, claim)
  } finally {
    await claim.release()
  }
}

/** Where the folder cannot be written, every check fails: a batch with nothing to do needs none. */
async function claimFor({ clock, out, interrupts }: Context, lockPath: string): Promise<Claim> {
  const { claimBatch } = await import('../../batch/lock/claim.js')
  try {
    return await claimBatch({ lockPath, clock, signal: interrupts.first, onObserve: out.note })
  } catch (error) {
    if (!isSystemError(error)) throw error
    const failed = neverWritable(lockPath, error)
    return { check: () => Promise.reject(failed), lost: new AbortController().signal, async release() {} }
  }
}

function check(ctx: Context, prepared: Prepared): number {
  const { plan, manifest } = prepared
  showPlan(ctx, prepared)
  const missing = plan.steps.filter(({ action }) => action.do !== 'up_to_date' && action.do !== 'skip')
  for (const step of missing.slice(0, MAX_LINE_ANNOTATIONS)) {
    const [action, name = '', file, reason] = stepWords(step)
    annotate(ctx, {
      title: name,
      message: `${file}: ${action}${reason ? ` (${reason})` : ''}`,
      at: { path: manifest.path, line: step.entry.at.line },
    })
  }
  return isAllUpToDate(plan) ? EXIT.ok : EXIT.runFailed
}

async function dryRun(ctx: Context, prepared: Prepared): Promise<number> {
  const { expect } = await import('../batch/expect.js')
  showPlan(ctx, prepared, await expect(ctx, prepared))
  refuseImpossible(prepared)
  if (prepared.missing.length > 0) throw missingError(prepared.missing)
  return EXIT.ok
}

function showPlan(ctx: Context, { plan, manifest, flags }: Prepared, expectation?: Expectation): void {
  const { out } = ctx
  const json = createJsonOutput(ctx, flags.report)
  for (const step of plan.steps) json(stepJson(step))
  const { leastMs = null, expectedMs = null } = expectation ?? {}
  const runs = Object.fromEntries(runsByModel(plan))
  json({ summary: { ...plan.counts, least_ms: leastMs, expected_ms: expectedMs, models: runs } })
  if (out.mode.json) return
  const rows = out.stdoutIsTerminal ? treeRows(plan.steps) : plan.steps.map(stepCells)
  const widths = widthsOf(rows, out.columns)
  for (const row of rows) out.line(out.stdoutIsTerminal ? alignedRow(row, widths) : tabRow(row))
  for (const note of notesOf(plan)) out.note(note)
  const models = modelsNote(plan)
  if (models !== undefined) out.note(models)
  const line = summaryLine(plan, expectation)
  out.note(line)
  const selected = plan.steps.filter(({ action }) => action.do !== 'skip')
  writeJobSummary(ctx, { manifest, line, hasResults: false, rows: selected.map(planRow) })
}
