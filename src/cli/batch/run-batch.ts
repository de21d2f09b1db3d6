/** Runs a plan and prints a path or an object for each row as it ends, the progress, and the summary. */
import { dirname, relative, resolve } from 'node:path'
import { activeSteps, needsService } from '../../batch/plan/index.js'
import { removeLeftovers } from '../../batch/results/leftovers.js'
import { moveFiles } from '../../batch/results/move-files.js'
import { movedResult } from '../../batch/results/rows.js'
import { withExtension } from '../../download/file-names.js'
import { EXIT, type RushesError, usageError } from '../../errors.js'
import { nameProblem, reasonUnwritable } from '../../host/file-system.js'
import { asRushesError, Interruption, interrupted } from '../../host/interrupts.js'
import { listNames } from '../../protocol/text.js'
import type { RunsSession } from '../../runs/run.js'
import { carryOut, stopsCreating } from '../../runs/schedule.js'
import type { Connection, Context } from '../context/context.js'
import { sessionOf } from '../runs/carry-out.js'
import { exitCodeOf } from '../runs/error-groups.js'
import { OutputUrls } from '../runs/run-outputs.js'
import { RunsView } from '../runs/runs-view.js'
import { plural } from '../terminal/format.js'
import { BatchLock } from './batch-lock.js'
import { BatchRow } from './batch-row.js'
import { type PreparedBatch, sumPlan } from './prepare.js'
import { planLine, Report, reportPlan, warnOfLeft } from './report.js'

/** Runs the batch, whose claim is held. Returns the exit code. */
export async function runBatch(ctx: Context, batch: PreparedBatch): Promise<number> {
  const { plan, missing, options } = batch
  const { limit } = options
  const active = activeSteps(plan)
  refuseUnwritable(batch)
  const isConnected = active.some(needsService)
  if (isConnected && missing.length > 0) throw ctx.missingError(missing)
  const connection = isConnected ? await ctx.connect({ render: true }) : undefined
  for (const { action, model, flight } of active) {
    if (action.do === 'create' && model !== undefined) connection?.checkModel?.(model)
    else if (flight?.run !== undefined) await connection?.checkRun?.(flight.run)
  }
  const reserved = await limit
    .reserve(() => sumPlan(plan, limit.prices))
    .catch(async (error: unknown) => {
      // Standard output has only the rows of batches that were carried out.
      await reportPlan(ctx, batch, false)
      throw error
    })
  const report = new Report(ctx, batch)
  try {
    return await carryOutBatch(ctx, batch, connection, report)
  } finally {
    const { runs, millionths } = report.estimate
    limit.giveBack({ runs: reserved.runs - runs, millionths: reserved.millionths - millionths })
  }
}

/** An extension as long as those of the known types of media. */
const SAMPLE_EXTENSION = 'webp'

/**
 * Throws `usage` if the output of a run cannot be written, before anything is paid for. Not for files that are only
 * renamed.
 */
function refuseUnwritable({ manifest, plan }: PreparedBatch): void {
  const checked = new Set<string>()
  for (const { entry, outputs } of activeSteps(plan).filter(needsService))
    for (const { file } of outputs) {
      const path = resolve(manifest.folder, withExtension(file, SAMPLE_EXTENSION))
      const folder = relative('.', dirname(path)) || '.'
      const reason = nameProblem(path) ?? (checked.has(folder) ? undefined : reasonUnwritable(folder))
      checked.add(folder)
      if (reason !== undefined)
        throw usageError(
          `Cannot write ${file} (${entry.name}, line ${entry.at.line}): ${reason}. Nothing was sent.`,
          'Make the folder writable, or change its output.',
        )
    }
}

async function carryOutBatch(
  ctx: Context,
  prepared: PreparedBatch,
  connection: Connection | undefined,
  report: Report,
): Promise<number> {
  const { folder } = prepared.manifest
  const lock = await BatchLock.open(ctx, prepared, connection !== undefined)
  await removeLeftovers(prepared.plan, folder, prepared.lockPath)
  const steps = await moveFiles(prepared.plan.steps, {
    disk: prepared.plan.disk,
    lock: lock.file,
    folder,
    signal: ctx.interrupts.first,
    fileSystem: ctx.parts.fileSystem,
  }).catch((error: unknown) => lock.throwFailed(error))
  const plan = { ...prepared.plan, steps }
  const batch = { ...prepared, plan }
  warnOfLeft(ctx, plan)
  if (plan.counts.create > 0) ctx.out.note(planLine(ctx, plan, batch.options.limit.prices))
  const view = await RunsView.open(ctx, activeSteps(plan).length)
  let lockErrors: readonly RushesError[] = []
  try {
    if (connection !== undefined) await carryOutRows(ctx, batch, { connection, lock, report, view })
    // Their files were only renamed.
    else for (const step of activeSteps(plan)) report.row(movedResult(step, lock.file.get(step.entry.name)))
  } finally {
    view.end(lock.journal, connection === undefined ? '' : await ctx.address())
    lockErrors = await lock.finish()
  }
  const { errors, notStarted } = await report.end(plan)
  const stopped = interruptedBatch(ctx, batch, report)
  const reason = stopped ?? (notStarted > 0 ? lock.failure : undefined)
  const failures = [...lockErrors, ...stopReasons([...errors, ...lockErrors], reason, notStarted)]
  // Without a message if the reader closed standard output.
  for (const error of failures) if (error.exitCode !== EXIT.stdoutClosed) ctx.out.error(error)
  if (stopped !== undefined) return stopped.exitCode
  const code = exitCodeOf([...errors, ...failures])
  // Exit code 2 means that nothing was sent.
  return code === EXIT.usage && report.sent.size > 0 ? EXIT.runFailed : code
}

interface Running {
  readonly connection: Connection
  readonly lock: BatchLock
  readonly report: Report
  readonly view: RunsView
}

async function carryOutRows(
  ctx: Context,
  batch: PreparedBatch,
  { connection, lock, report, view }: Running,
): Promise<void> {
  const { options, plan } = batch
  const runs: RunsSession = {
    ...(await sessionOf(ctx, connection, lock.journal)),
    policy: 'required',
    concurrency: options.concurrency,
    timeoutMs: options.timeoutMs,
    noCreates: lock.noCreates,
    isFailFast: options.flags.failFast,
    stopsCreates: stopsBatch,
  }
  const { address, clock, interrupts } = runs
  const parts = {
    ctx,
    batch,
    lock,
    runs,
    outputs: new OutputUrls({ ...connection, address, clock, signal: interrupts.first }),
    downloader: await ctx.downloader(connection.fetch),
  }
  const steps = activeSteps(plan)
  const names = new Set(steps.map(({ entry }) => entry.name))
  const rows = steps.map((step) => new BatchRow(step, names, parts))
  for await (const event of carryOut(rows, runs)) {
    view.see(event)
    const isUnconfirmed = event.is === 'ended' && event.result.is === 'unconfirmed'
    if (event.is === 'created' || isUnconfirmed) report.sent.add(event.run.row.name)
    if (event.is !== 'ended') continue
    const result = rows[event.run.index]?.resultOf(event.run, event.result)
    if (result !== undefined) report.row(result)
  }
}

/**
 * Returns the error that stopped the batch, unless it is known already. A batch with rows that were not started never
 * ends without an error.
 */
export function stopReasons(
  known: readonly RushesError[],
  stopped: RushesError | undefined,
  notStarted: number,
): readonly RushesError[] {
  if (stopped !== undefined) return known.some(({ message }) => message === stopped.message) ? [] : [stopped]
  if (notStarted === 0 || known.length > 0) return []
  return [asRushesError(new Error(`${plural(notStarted, 'run was', 'runs were')} not started`))]
}

/**
 * Whether the error stops further creates. A refused input of one row says nothing about other rows, so it does not.
 * All other stopping errors do.
 */
const stopsBatch = (error: RushesError): boolean => {
  const concernsOneRow =
    (error.httpStatus === 400 && error.code !== 'model_not_found') || error.httpStatus === 413
  return stopsCreating(error) && !concernsOneRow
}

function interruptedBatch(
  { globals, interrupts }: Context,
  { options }: PreparedBatch,
  report: Report,
): RushesError | undefined {
  const { aborted, reason } = interrupts.first
  if (!aborted || !(reason instanceof Interruption)) return undefined
  const where = globals.local ? 'Queued until the batch continues' : 'Still running on the service'
  const fateOf = (what: string, names: readonly string[]) =>
    names.length === 0 ? '' : ` ${what}: ${listNames(names)}.`
  const fate = fateOf(where, report.left(false)) + fateOf('Succeeded, and not downloaded', report.left(true))
  const force = options.flags.force
    ? ' --force is left out, because it would pay again for runs that are done.'
    : ''
  return interrupted(
    reason,
    `Interrupted.${fate}`,
    `Continue without paying twice with ${options.continuation}.${force}`,
  )
}
