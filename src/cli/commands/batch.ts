/** `rushes batch`: creates only the assets of a manifest that are missing or out of date. */
import { type Command, Option } from 'commander'
import type { Claim } from '../../batch/lock/claim.js'
import type { Expectation } from '../../batch/plan/expected.js'
import { EXIT } from '../../errors.js'
import { isSystemError } from '../../host/system-error.js'
import { loadManifest } from '../batch/load.js'
import { type BatchFlags, batchOptionsOf } from '../batch/options.js'
import { treeRows } from '../batch/plan-tree.js'
import { type Prepared, prepare, refuseImpossible } from '../batch/prepare.js'
import { neverWritable, runBatch } from '../batch/run-batch.js'
import {
  isAllUpToDate,
  modelsNote,
  notesOf,
  runsByModel,
  stepCells,
  stepJson,
  summaryLine,
} from '../batch/show.js'
import type { Context } from '../context/context.js'
import { repeated } from '../flags/repeated.js'
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
  ['--timeout <duration>', 'How long to wait for each run: 90s, 15m, 0 for no limit (default 30m)'],
]

export function register(command: Command, { run }: CommandEnvironment, doBatch = batchCommand): void {
  command.argument('<manifest>', 'YAML, JSON, JSON Lines or CSV file; - reads standard input')
  for (const [flags, about] of ROWS) {
    const option = new Option(flags, about)
    command.addOption(flags.startsWith('--only') ? option.argParser(repeated) : option)
  }
  command.action((manifest: string, flags: BatchFlags) =>
    run(command, (ctx) => doBatch(ctx, { manifest, flags })),
  )
}

export async function batchCommand(ctx: Context, { manifest, flags }: BatchRequest): Promise<number> {
  const words = { word: manifest, flags }
  const options = await batchOptionsOf(ctx, flags)
  const loaded = await loadManifest(ctx, manifest, options)
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

function check(ctx: Context, { plan }: Prepared): number {
  showPlan(ctx, plan)
  return isAllUpToDate(plan) ? EXIT.ok : EXIT.runFailed
}

async function dryRun(ctx: Context, prepared: Prepared): Promise<number> {
  const { expect } = await import('../batch/expect.js')
  showPlan(ctx, prepared.plan, await expect(ctx, prepared))
  refuseImpossible(prepared)
  if (prepared.missing.length > 0) throw missingError(prepared.missing)
  return EXIT.ok
}

function showPlan({ out }: Context, plan: Prepared['plan'], expectation?: Expectation): void {
  if (out.mode.json) {
    for (const step of plan.steps) out.json(stepJson(step))
    const { leastMs = null, expectedMs = null } = expectation ?? {}
    const models = Object.fromEntries(runsByModel(plan))
    out.json({ summary: { ...plan.counts, least_ms: leastMs, expected_ms: expectedMs, models } })
    return
  }
  const rows = out.stdoutIsTerminal ? treeRows(plan.steps) : plan.steps.map(stepCells)
  const widths = widthsOf(rows, out.columns)
  for (const row of rows) out.line(out.stdoutIsTerminal ? alignedRow(row, widths) : tabRow(row))
  for (const note of notesOf(plan)) out.note(note)
  const models = modelsNote(plan)
  if (models !== undefined) out.note(models)
  out.note(summaryLine(plan, expectation))
}
