/** Carries a plan out and reports: a path or an object for each row as it ends, progress, the summary. */
import { activeSteps, carryOut, needsService, type RowResult } from '../../batch/carry-out/index.js'
import type { Claim } from '../../batch/lock/claim.js'
import { isWritten, removeLeftovers, writeLock } from '../../batch/lock/file.js'
import { createLockKeeper, type LockKeeper } from '../../batch/lock/keeper.js'
import { expectationOf } from '../../batch/plan/expected.js'
import { countsOf, type Plan, type Step } from '../../batch/plan/index.js'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { onAbort } from '../../host/abort.js'
import { describeError } from '../../host/system-error.js'
import { identityOf } from '../../journal/identity.js'
import { RUNS_LIMIT } from '../../protocol/limits.js'
import type { Connection, Context } from '../context/context.js'
import { formatDuration } from '../flags/duration.js'
import { asRushesError, exitCodeOf, interrupted, stopsCreating } from '../process/exit.js'
import { Interruption } from '../process/interrupts.js'
import type { Recorder } from '../runs/record.js'
import { createProgress, type Progress } from '../terminal/progress.js'
import { adoptedPlan } from './adopt.js'
import { batchCommandLine } from './command-line.js'
import { warnOfLeftRuns } from './left-runs.js'
import type { Prepared } from './prepare.js'
import { createReport } from './report.js'
import { createBatchService } from './service.js'
import { notesOf } from './show.js'

/** A refusal of a row's own input says nothing about the next row; every other stopping error does. */
const stopsBatch = (error: RushesError): boolean => {
  const concernsRowAlone =
    (error.httpStatus === 400 && error.code !== 'model_not_found') || error.httpStatus === 413
  return stopsCreating(error) && !concernsRowAlone
}

/** The exit code of the command. */
export async function runBatch(ctx: Context, prepared: Prepared, claim: Claim): Promise<number> {
  const { manifest, lockPath } = prepared
  const plan = await adoptedPlan(ctx, prepared)
  const active = activeSteps(plan)
  if (active.length > 0) await claim.check()
  const connection = active.some(needsService)
    ? await ctx.connect({ missing: prepared.missing, render: true })
    : undefined
  await removeLeftovers(lockPath)
  let isWritten = false
  const keeper = createLockKeeper(plan.lock, async (lock) => {
    await claim.check()
    await writeLock(lockPath, manifest.path, lock).catch((error) => {
      throw isWritten ? unwritable(lockPath, error) : neverWritable(lockPath, error)
    })
    isWritten = true
  })
  const report = createReport(ctx, prepared)
  for (const note of notesOf(plan)) ctx.out.note(note)
  // With --watch this has been said with the plan.
  if (!prepared.options.watch) warnOfLeftRuns(ctx, plan)
  const progress = await createProgress(ctx, active.length)
  const timeLeft = createTimeLeft(ctx, active.length)
  const onResult = (result: RowResult): void => {
    progress.runEnded(nameOf(result.step, result.run))
    const left = timeLeft()
    if (left !== undefined) progress.expects(undefined)
    progress.activity(left)
    report.row(result)
  }
  const stopped = await carryOutPlan(ctx, { prepared, plan, connection, keeper, claim, progress, onResult })
  progress.end()
  if (ctx.globals.local) await recordQueued(ctx, active, keeper)
  const lockError = await finishLock(ctx, { prepared, plan, claim, keeper })
  const errors = report.end(plan, (name) => keeper.entry(name)?.pending?.state === 'accepted')
  for (const error of [lockError, stopped])
    if (error !== undefined && !isClosedStdout(ctx, error)) ctx.out.error(error)
  if (stopped?.code === 'interrupted') return stopped.exitCode
  return exitCodeOf([...errors, ...[lockError, stopped].filter((each) => each !== undefined)])
}

/** Nobody renders the rest of the local runs any longer. */
async function recordQueued(ctx: Context, steps: readonly Step[], keeper: LockKeeper): Promise<void> {
  const recorder = await ctx.recorder()
  for (const { entry } of steps) {
    const pending = keeper.entry(entry.name)?.pending
    if (pending?.state === 'accepted') recorder.recordQueued(pending.run)
  }
}

/** An earlier write may have failed: tries again. Writes nothing where nothing has changed. */
async function finishLock(
  { out }: Context,
  {
    prepared: { lockPath, manifest },
    plan,
    claim,
    keeper,
  }: Pick<Work, 'prepared' | 'plan' | 'claim' | 'keeper'>,
): Promise<RushesError | undefined> {
  const hasWorked = activeSteps(plan).length > 0
  if (claim.lost.aborted || (!hasWorked && isWritten(lockPath, manifest.path, plan.lock))) return undefined
  const error = await keeper.write().then(() => undefined, asRushesError)
  if (error === undefined || hasWorked) return error
  // Every selected file is up to date, and only the bookkeeping of renamed or removed rows is missing.
  out.warn(error.message)
  return undefined
}

/** The reader of standard output has gone: nothing is said. */
const isClosedStdout = ({ interrupts }: Context, { exitCode }: RushesError): boolean =>
  interrupts.first.aborted && exitCode === EXIT.stdoutClosed

interface Work {
  readonly prepared: Prepared
  readonly plan: Plan
  readonly connection: Connection | undefined
  readonly keeper: LockKeeper
  readonly claim: Claim
  readonly progress: Progress
  onResult(result: RowResult): void
}

/** The error of a signal or of a lost claim that stopped it; else undefined. */
async function carryOutPlan(ctx: Context, work: Work): Promise<RushesError | undefined> {
  const { out, interrupts, clock } = ctx
  const { plan, connection, progress, claim } = work
  const { manifest, options } = work.prepared
  const onGrace = () =>
    out.note(
      'Waiting up to 10 s for the responses to the creates that were sent. Press Ctrl-C again to stop now.',
    )
  // Where no row needs the service, no journal is opened: the disk may be read-only.
  const recorder = connection && (await ctx.recorder())
  if (recorder !== undefined) expectRuns(recorder, work)
  const stop = new AbortController()
  for (const each of [interrupts.first, claim.lost]) onAbort(each, () => stop.abort(each.reason))
  try {
    await carryOut({
      plan,
      keeper: work.keeper,
      folder: manifest.folder,
      service:
        connection &&
        (await createBatchService(ctx, connection, {
          folder: manifest.folder,
          words: work.prepared,
          madeOf: (name) => work.keeper.entry(name)?.made,
          claim,
          signal: stop.signal,
          onGrace,
        })),
      clock,
      random: ctx.random,
      identity: identityOf,
      budget: RUNS_LIMIT,
      load: () => connection?.client.load() ?? 0,
      concurrency: options.concurrency,
      timeoutMs: options.patienceMs,
      durationsOf: (model) => recorder?.durations(model) ?? [],
      signal: stop.signal,
      stopsCreating: (error) => options.failFast || stopsBatch(error),
      onStatus: (step, id, status) => progress.status(nameOf(step, id), status),
      onResult: work.onResult,
    })
    return undefined
  } catch (thrown) {
    if (thrown instanceof RushesError && thrown === claim.lost.reason) return thrown
    if (!(thrown instanceof Interruption)) throw thrown
    return interruptedBatch(ctx, thrown, work.prepared)
  }
}

/** Tells the progress how long runs of these models, and the whole batch, usually take. */
function expectRuns(recorder: Recorder, { plan, prepared, progress }: Work): void {
  const steps = activeSteps(plan).filter(needsService)
  for (const model of new Set(steps.map((step) => step.model)))
    progress.runBegan(model, model === undefined ? undefined : recorder.typicalDuration(model))
  const { expectedMs } = expectationOf(steps, countsOf(steps).requests, {
    ...RUNS_LIMIT,
    concurrency: prepared.options.concurrency,
    usualMs: (model) => recorder.typicalDuration(model)?.medianMs,
  })
  if (expectedMs !== undefined) progress.expects(expectedMs)
}

/** An estimate needs this many finished rows. */
const MIN_DONE = 3

/** Called as each row ends: how long the others will take, from the time per row so far. */
function createTimeLeft({ clock }: Context, rows: number): () => string | undefined {
  const startedAtMs = clock.monotonic()
  let open = rows
  return () => {
    open--
    const done = rows - open
    if (open === 0 || done < MIN_DONE) return undefined
    return `about ${formatDuration(((clock.monotonic() - startedAtMs) / done) * open)} left`
  }
}

/** Every create is preceded by a write of the lock file. */
export const neverWritable = (path: string, error: unknown): RushesError =>
  usageError(
    `Cannot write the lock file ${describeError(error, path)}. Nothing was sent.`,
    'Check that the folder is writable and that the disk has space.',
  )

const unwritable = (path: string, error: unknown): RushesError =>
  new RushesError('download_failed', `Cannot write the lock file ${describeError(error, path)}.`, {
    hint: 'Nothing more is created without it. Accepted runs are in `rushes list`. When the folder is writable again, run the same command: it continues from there.',
    cause: error,
  })

const nameOf = ({ entry }: Step, run: string | undefined): string => `${entry.name} (${run ?? 'no run'})`

function interruptedBatch({ globals }: Context, reason: Interruption, prepared: Prepared): RushesError {
  const fate = globals.local ? 'Created local runs stay queued.' : 'Created runs continue on the service.'
  const force = prepared.options.force
    ? ' --force is left out, because it would pay again for rows that are done.'
    : ''
  return interrupted(
    reason,
    `Interrupted. ${fate}`,
    `Continue without paying twice with \`${batchCommandLine(globals, prepared)}\`.${force}`,
  )
}
