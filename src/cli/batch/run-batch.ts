/** Carries a plan out and reports: a path or an object for each row as it ends, progress, the summary. */
import { setMaxListeners } from 'node:events'
import { activeSteps, carryOut, needsService, type RowResult } from '../../batch/carry-out/index.js'
import { removeLeftovers, writeLock } from '../../batch/lock/file.js'
import { createLockKeeper, type LockKeeper } from '../../batch/lock/keeper.js'
import { expectationOf } from '../../batch/plan/expected.js'
import { countsOf, type Plan, type Step } from '../../batch/plan/index.js'
import { describeFileError } from '../../download/file-errors.js'
import { EXIT, RushesError } from '../../errors.js'
import { RUNS_LIMIT } from '../../protocol/limits.js'
import type { Connection, Context } from '../context/context.js'
import { formatDuration } from '../flags/duration.js'
import { asRushesError, exitCodeOf, interrupted, stopsCreating } from '../process/exit.js'
import { Interruption } from '../process/interrupts.js'
import type { Recorder } from '../runs/record.js'
import { createProgress, type Progress } from '../terminal/progress.js'
import { adopted } from './adopt.js'
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
export async function runBatch(ctx: Context, prepared: Prepared): Promise<number> {
  const { manifest, lockPath } = prepared
  const plan = await adoptedPlan(ctx, prepared.plan)
  const active = activeSteps(plan)
  const connection = active.some(needsService)
    ? await ctx.connect({ missing: prepared.missing, render: true })
    : undefined
  await removeLeftovers(lockPath)
  const keeper = createLockKeeper(plan.lock, (lock) =>
    writeLock(lockPath, manifest.path, lock).catch((error) => {
      throw unwritable(lockPath, error)
    }),
  )
  const report = createReport(ctx, prepared)
  for (const note of notesOf(plan)) ctx.out.note(note)
  const progress = await createProgress(ctx, active.length)
  const timeLeft = createTimeLeft(ctx, active.length)
  const onResult = (result: RowResult): void => {
    progress.runEnded(nameOf(result.step, result.run))
    const left = timeLeft()
    if (left !== undefined) progress.expects(undefined)
    progress.activity(left)
    report.row(result)
  }
  const code = await carryOutPlan(ctx, { prepared, plan, connection, keeper, progress, onResult })
  progress.end()
  // An earlier write may have failed: try again, and report it.
  const lockError = await keeper.write().then(() => undefined, asRushesError)
  if (lockError !== undefined) ctx.out.error(lockError)
  const errors = [
    ...report.end(plan, (name) => keeper.entry(name)?.pending?.state === 'accepted'),
    ...(lockError === undefined ? [] : [lockError]),
  ]
  return code === EXIT.ok ? exitCodeOf(errors) : code
}

interface Work {
  readonly prepared: Prepared
  readonly plan: Plan
  readonly connection: Connection | undefined
  readonly keeper: LockKeeper
  readonly progress: Progress
  onResult(result: RowResult): void
}

/** The exit code where a signal ended it, else 0. */
async function carryOutPlan(ctx: Context, work: Work): Promise<number> {
  const { out, interrupts, clock } = ctx
  const { plan, connection, progress } = work
  const { manifest, options } = work.prepared
  const onGrace = () => out.note('Waiting up to 10 s for the answer to the creates; once more ends at once.')
  // Where no row needs the service, no journal is opened: the disk may be read-only.
  const recorder = connection && (await ctx.recorder())
  if (recorder !== undefined) expectRuns(recorder, work)
  // Every row in flight adds a listener.
  setMaxListeners(0, interrupts.first, interrupts.second)
  try {
    await carryOut({
      plan,
      keeper: work.keeper,
      folder: manifest.folder,
      service:
        connection && (await createBatchService(ctx, connection, { overwrite: options.overwrite, onGrace })),
      clock,
      random: ctx.random,
      budget: RUNS_LIMIT,
      load: () => connection?.client.load() ?? 0,
      concurrency: options.concurrency,
      timeoutMs: options.patienceMs,
      durationsOf: (model) => recorder?.durations(model) ?? [],
      signal: interrupts.first,
      stopsCreating: (error) => options.failFast || stopsBatch(error),
      onStatus: (step, id, status) => progress.status(nameOf(step, id), status),
      onResult: work.onResult,
    })
    return EXIT.ok
  } catch (thrown) {
    if (!(thrown instanceof Interruption)) throw thrown
    return endedBy(ctx, thrown, manifest.path)
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

/** With fewer rows done there is no estimate. */
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

/** Without an address the journal cannot be searched, and unconfirmed rows stay so. */
async function adoptedPlan(ctx: Context, plan: Plan): Promise<Plan> {
  if (plan.counts.unconfirmed === 0) return plan
  try {
    return adopted(plan, await ctx.recorder())
  } catch (error) {
    if (asRushesError(error).code !== 'no_base_url') throw error
    return plan
  }
}

const unwritable = (path: string, error: unknown): RushesError =>
  new RushesError(
    'download_failed',
    `The lock file ${path} cannot be written: ${describeFileError(error)}.`,
    {
      hint: 'Nothing more is created without it. What exists is in rushes list; the same command goes on when there is room.',
      cause: error,
    },
  )

const nameOf = ({ entry }: Step, run: string | undefined): string => `${entry.name} (${run ?? 'no run'})`

function endedBy({ out, interrupts }: Context, reason: Interruption, manifest: string): number {
  const error: RushesError = interrupted(
    reason,
    'Interrupted; runs that exist go on.',
    `The same command goes on from here, and nothing is paid twice: rushes batch ${manifest}`,
  )
  if (!(interrupts.first.aborted && error.exitCode === EXIT.stdoutClosed)) out.error(error)
  return error.exitCode
}
