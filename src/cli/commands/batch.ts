/** `rushes batch`: creates only the assets of a manifest that are missing or out of date. */
import type { Command } from 'commander'
import type { BatchClaim } from '../../batch/lock/claim.js'
import { activeSteps } from '../../batch/plan/index.js'
import { EXIT, RushesError } from '../../errors.js'
import { asRushesError } from '../../host/interrupts.js'
import { isSystemError } from '../../host/system-error.js'
import { unsent, unwritable } from '../batch/batch-lock.js'
import { annotate, checkReport } from '../batch/ci-reports.js'
import { type BatchFlags, batchOptionsOf } from '../batch/options.js'
import { loadManifest, prepare, refuseImpossible, refusePlan } from '../batch/prepare.js'
import { annotatePlan, printPlan } from '../batch/report.js'
import { runBatch } from '../batch/run-batch.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { timeoutOption } from '../flags/delivery.js'
import { repeated } from '../flags/values.js'
import type { CostLimit } from '../models/cost-limit.js'

interface BatchRequest {
  /** Path of the manifest. */
  readonly manifest: string
  readonly flags: BatchFlags
  /** Called with the absolute path of each local image before the image is read. May throw. */
  readonly onMedia?: (path: string, parameter: string) => void
  /** Of the session that runs the batch. */
  readonly limit?: CostLimit
}

export function register(command: Command, { act }: CommandEnvironment): void {
  command
    .argument('<manifest>', 'YAML, JSON, JSON Lines or CSV file')
    .option('--check', 'Change nothing; exit with 10 if a file is missing or out of date; needs no key')
    .option('--dry-run', 'Print the plan and change nothing')
    .option(
      '--only <glob>',
      'Only runs whose name or output matches, and the runs that they use (repeatable)',
      repeated,
    )
    .option('--force', 'Create runs again even if they are up to date')
    .option('--max-runs <n>', 'Exit with 2 if more than n runs would be created')
    .option('--max-cost <amount>', 'Exit with 2 if the estimate is higher, or if a run has no price')
    .option('--concurrency <n>', 'Maximum number of runs at the same time (default: no limit)')
    .option('--fail-fast', 'Create no further runs after the first failure')
    .option('--resubmit-unconfirmed', 'Resend requests with unknown outcome (may be charged twice)')
    .option('--allow-outside', 'Allow outputs outside the folder of the manifest')
    .option('--overwrite', 'Replace files that are not in the lock file')
    .option('--report <path>', 'Also write the results to this file, as one JSON document')
    .addOption(timeoutOption('How long to wait for each run'))
  act(command, (ctx, flags: BatchFlags, manifest: string) => runManifest(ctx, { manifest, flags }))
}

/** Maximum length of a hint in an annotation. */
const MAX_HINT = 1_000

export async function runManifest(ctx: Context, request: BatchRequest): Promise<number> {
  try {
    return await doBatch(ctx, request)
  } catch (thrown) {
    const { message, hint = '' } = asRushesError(thrown)
    annotate(ctx, { title: 'rushes batch', message: `${message}\n${hint.slice(0, MAX_HINT)}`.trim() })
    throw thrown
  }
}

async function doBatch(ctx: Context, { manifest, flags, onMedia, limit }: BatchRequest): Promise<number> {
  const options = await batchOptionsOf(ctx, manifest, flags, limit)
  const loaded = await loadManifest(ctx, options, onMedia)
  if (options.mode === 'dry run') {
    const prepared = await prepare(ctx, loaded, options)
    await printPlan(ctx, prepared)
    await refusePlan(prepared)
    return EXIT.ok
  }
  if (flags.report !== undefined) checkReport(flags.report, loaded)
  if (options.mode === 'check') {
    const prepared = await prepare(ctx, loaded, options)
    await printPlan(ctx, prepared)
    return annotatePlan(ctx, prepared) === 0 ? EXIT.ok : EXIT.runFailed
  }
  // Claims the lock file before it is read. Another batch may be about to write to it, and its runs must not be paid
  // for again.
  const claim = await claimOrError(loaded.lockPath)
  try {
    const prepared = await prepare(ctx, loaded, options)
    refuseImpossible(prepared)
    // Without anything to do, the folder may be read-only.
    if (claim instanceof RushesError && activeSteps(prepared.plan).length > 0) throw claim
    return await runBatch(ctx, prepared)
  } finally {
    if (!(claim instanceof RushesError)) claim.release()
  }
}

/** Returns the error of a folder that cannot be written. Throws `usage` if another batch is running. */
async function claimOrError(lockPath: string): Promise<BatchClaim | RushesError> {
  const { claimBatch } = await import('../../batch/lock/claim.js')
  try {
    return claimBatch(lockPath)
  } catch (error) {
    if (!isSystemError(error)) throw error
    return unsent(unwritable(lockPath, error))
  }
}
