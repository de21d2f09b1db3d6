/** Runs a plan and prints a path or an object for each row as it ends, the progress, and the summary. */
import { dirname, relative, resolve } from 'node:path'
import type { BatchClaim } from '../../batch/lock/claim.js'
import { type LockKeeper, removeLeftovers } from '../../batch/lock/file.js'
import { type BatchLock, openLock } from '../../batch/lock/open-lock.js'
import { inputToSend } from '../../batch/manifest/index.js'
import type { Plan, PlanStep } from '../../batch/plan/index.js'
import { moveFiles } from '../../batch/results/move-files.js'
import { activeSteps, needsService, type RowResult } from '../../batch/results/rows.js'
import { withExtension } from '../../download/file-names.js'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { onAbort } from '../../host/abort.js'
import { reasonUnwritable } from '../../host/directories.js'
import { asRushesError, Interruption, interrupted } from '../../host/interrupts.js'
import { identityOf } from '../../journal/identity.js'
import { carryOutPlan } from '../../runs/batch.js'
import { stopsCreating } from '../../runs/create.js'
import type { Connection, Context } from '../context/context.js'
import type { ServiceFlags } from '../flags/globals.js'
import { exitCodeOf } from '../process/exit.js'
import { withRunOutputs } from '../runs/run-outputs.js'
import { GRACE_NOTE, plural } from '../terminal/format.js'
import { createProgress, type Progress } from '../terminal/progress.js'
import { estimateOf, refuseCost, sumPlan, sumSteps } from './estimates.js'
import { takeUnsent } from './known-creates.js'
import { type BatchWords, batchCommandLine } from './options.js'
import type { PreparedBatch } from './prepare.js'
import { planLine, reportPlan, warnOfLeftRuns } from './print-plan.js'
import { createReport } from './report.js'
import { notesOf } from './show.js'
import { createSourceUrls } from './source-urls.js'

/**
 * Whether the error stops further creates. A refused input of one row says nothing about other rows, so it does not.
 * All other stopping errors do.
 */
const stopsBatch = (error: RushesError): boolean => {
  const concernsOneRow =
    (error.httpStatus === 400 && error.code !== 'model_not_found') || error.httpStatus === 413
  return stopsCreating(error) && !concernsOneRow
}

/** Runs the batch. Returns the exit code. */
export async function runBatch(ctx: Context, prepared: PreparedBatch, claim: BatchClaim): Promise<number> {
  const { lockPath, plan: planned, prices } = prepared
  const active = activeSteps(planned)
  if (active.length > 0) await claim.check()
  refuseUnwritable(ctx, prepared)
  const isConnected = active.some(needsService)
  if (isConnected && prepared.missing.length > 0) throw await ctx.missingError(prepared.missing)
  const connection = isConnected ? await ctx.connect({ render: true }) : undefined
  for (const { action, model, locked } of active) {
    const rendered = action.do === 'create' ? model : locked?.pending?.model
    if (rendered !== undefined) connection?.checkModel?.(rendered)
  }
  await checkLimits(ctx, prepared)
  const hasUnsent = await takeUnsent(ctx.recorder, prepared.lock, prepared.plan.lock)
  await removeLeftovers(lockPath)
  const lock = openLock({
    ...prepared,
    claim,
    clock: ctx.clock,
    continuation: `\`${batchCommandLine(ctx.globals, prepared)}\``,
  })
  const { keeper } = lock
  if (hasUnsent) await keeper.write()
  const plan = { ...planned, steps: await movedSteps(ctx, prepared, keeper) }
  const report = createReport(ctx, prepared)
  for (const note of notesOf(plan)) ctx.out.note(note)
  warnOfLeftRuns(ctx, plan)
  if (planned.counts.create > 0) ctx.out.note(planLine(ctx, plan, prices))
  const progress = await createProgress(ctx, active.length)
  const onResult = (result: RowResult): void => {
    progress.runEnded(result.run, result.step.entry.name)
    report.row(result)
  }
  let hasSent = false
  const onSending = () => {
    hasSent = true
  }
  const sent: PlanStep[] = []
  const stopped = await carryOutUntilStopped(ctx, {
    prepared,
    plan,
    connection,
    lock,
    claim,
    progress,
    onSending,
    onSent: (step) => sent.push(step),
    onResult,
  })
  progress.end()
  if (ctx.globals.local) await recordQueued(ctx, active, keeper)
  const lockErrors = await lock.finish(ctx.out.warn)
  const estimate = sumSteps(sent, prices)
  const exists = (name: string) => keeper.entry(name)?.pending?.state === 'accepted'
  const { errors, notStarted } = report.end(plan, exists, estimate)
  const failures = [...lockErrors, ...stopReasons([...errors, ...lockErrors], stopped, notStarted)]
  for (const error of failures) if (!isClosedStdout(ctx, error)) ctx.out.error(error)
  if (stopped?.code === 'interrupted') return stopped.exitCode
  const code = exitCodeOf([...errors, ...failures])
  // Exit code 2 means that nothing was sent.
  return code === EXIT.usage && hasSent ? EXIT.runFailed : code
}

/** Of the known types of media. */
const LONGEST_EXTENSION = 'webp'

/**
 * Throws `usage` if the output of a run cannot be written, before anything is paid for. Not for files that are only
 * renamed.
 */
function refuseUnwritable({ fileSystem }: Context, { manifest, plan }: PreparedBatch): void {
  const checked = new Set<string>()
  for (const { entry, outputs } of activeSteps(plan).filter(needsService))
    for (const { file } of outputs) {
      const row = `${entry.name}, line ${entry.at.line}`
      const path = withExtension(file, LONGEST_EXTENSION)
      const problem = fileSystem.nameProblem(resolve(manifest.folder, path))
      if (problem !== undefined)
        throw usageError(
          `Cannot write ${file} (${row}): ${problem}. Nothing was sent.`,
          'Change the output of the row.',
        )
      const folder = relative('.', resolve(manifest.folder, dirname(file))) || '.'
      const reason = checked.has(folder) ? undefined : reasonUnwritable(folder)
      checked.add(folder)
      if (reason !== undefined)
        throw usageError(
          `Cannot write ${file} (${row}): ${reason}. Nothing was sent.`,
          'Make the folder writable, or change the output of the row.',
        )
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
  return [asRushesError(new Error(`${plural(notStarted, 'row was', 'rows were')} not started`))]
}

/** Checks the limits of the cost, directly before the first create. Throws `usage`. */
async function checkLimits(ctx: Context, prepared: PreparedBatch): Promise<void> {
  const { plan, prices, options } = prepared
  try {
    await refuseCost(prepared)
  } catch (error) {
    // Standard output has only the rows of batches that were carried out.
    reportPlan(ctx, prepared, false)
    throw error
  }
  const { create } = plan.counts
  if (create > 0) options.allowance?.reserve(create, sumPlan(plan, prices))
}

async function movedSteps(
  { interrupts, out, fileSystem }: Context,
  { manifest: { folder }, plan: { steps, counts, disk } }: PreparedBatch,
  keeper: LockKeeper,
): Promise<readonly PlanStep[]> {
  try {
    return await moveFiles(steps, { disk, keeper, folder, signal: interrupts.first, fileSystem })
  } catch (thrown) {
    // All files are at their paths. Only the lock file could not be written.
    const isDone = counts.create + counts.download === 0
    if (!isDone || !(thrown instanceof RushesError)) throw thrown
    out.warn(thrown.message)
    return steps
  }
}

/** Marks unfinished local runs as queued: the embedded service ends with the command. */
async function recordQueued(ctx: Context, steps: readonly PlanStep[], keeper: LockKeeper): Promise<void> {
  const recorder = await ctx.recorder()
  for (const { entry } of steps) {
    const pending = keeper.entry(entry.name)?.pending
    if (pending?.state === 'accepted') recorder.recordQueued(pending.run)
  }
}

/** Whether the reader closed standard output: the program then ends without a message. */
const isClosedStdout = ({ interrupts }: Context, { exitCode }: RushesError): boolean =>
  interrupts.first.aborted && exitCode === EXIT.stdoutClosed

interface BatchRun {
  readonly prepared: PreparedBatch
  readonly plan: Plan
  readonly connection: Connection | undefined
  readonly lock: BatchLock
  readonly claim: BatchClaim
  readonly progress: Progress
  onSending(): void
  onSent(step: PlanStep): void
  onResult(result: RowResult): void
}

/** Returns the error of a signal, of a lost claim or of the lock file. Undefined if the batch was not stopped. */
async function carryOutUntilStopped(ctx: Context, batch: BatchRun): Promise<RushesError | undefined> {
  const { interrupts, globals } = ctx
  const { plan, connection, progress, claim, lock, prepared } = batch
  const { manifest, options, prices } = prepared
  const { folder } = manifest
  const { keeper } = lock
  const madeOf = (name: string) => keeper.entry(name)?.made
  // If no row needs the service, the journal is not opened: the disk may be read-only.
  const service = connection && (await serviceOf(ctx, connection))
  if (service !== undefined) for (const step of activeSteps(plan)) if (needsService(step)) progress.runBegan()
  const { first: signal } = interrupts
  const sources = service && createSourceUrls({ ...service, clock: ctx.clock, folder, madeOf, signal })
  const stop = new AbortController()
  for (const each of [interrupts.first, claim.lost]) onAbort(each, () => stop.abort(each.reason))
  try {
    return await carryOutPlan({
      ...{ plan, keeper, folder, service, claim, interrupts },
      manifest: prepared.source === '-' ? undefined : resolve(prepared.source),
      clock: ctx.clock,
      random: ctx.random,
      identity: identityOf,
      concurrency: options.concurrency,
      timeoutMs: options.patienceMs,
      signal: stop.signal,
      continuation: `\`${batchCommandLine(globals, prepared)}\``,
      payAgain: (row) => payAgain(globals, prepared, row),
      async inputOf({ entry }) {
        if (connection === undefined || sources === undefined) throw new Error('a create needs the service')
        return withRunOutputs(ctx, connection, await inputToSend(entry, sources.urlOf))
      },
      estimateOf: (step) => estimateOf(step, prices),
      stopsCreating: (error) => options.failFast || stopsBatch(error),
      isChanged: lock.isChanged,
      onGrace: () => ctx.out.note(GRACE_NOTE),
      onStatus: (step, id, status, detail) => progress.status(id, status, step.entry.name, detail),
      onDownloaded: (state) => sources?.learn(state),
      onSending: batch.onSending,
      onSent: batch.onSent,
      onResult: batch.onResult,
    })
  } catch (thrown) {
    if (thrown instanceof RushesError && thrown === claim.lost.reason) return thrown
    if (!(thrown instanceof Interruption)) throw thrown
    return interruptedBatch(ctx, thrown, prepared)
  }
}

const serviceOf = async (ctx: Context, { client, fetch }: Connection) => ({
  client,
  fetch,
  recorder: await ctx.recorder(),
  downloader: await ctx.downloader(fetch),
  address: await ctx.address(),
  isLocal: ctx.globals.local,
})

function payAgain(globals: ServiceFlags, { source, flags }: BatchWords, row: string): string {
  const command = batchCommandLine(globals, {
    source,
    flags: { ...flags, only: [] },
  })
  return `To create it again and pay again: \`${command} --only ${row} --force\``
}

function interruptedBatch({ globals }: Context, reason: Interruption, prepared: PreparedBatch): RushesError {
  const fate = globals.local
    ? 'Created local runs are not finished.'
    : 'Created runs continue on the service.'
  const force = prepared.options.force
    ? ' --force is left out, because it would pay again for rows that are done.'
    : ''
  return interrupted(
    reason,
    `Interrupted. ${fate}`,
    `Continue without paying twice with \`${batchCommandLine(globals, prepared)}\`.${force}`,
  )
}
