/** Carries a plan out: creates and looks by the schedule, files as they are done, and a word for each row as it ends. */
import { setMaxListeners } from 'node:events'
import { removeLeftovers, writeLock } from '../../batch/lock/file.js'
import { createLockKeeper, type LockKeeper } from '../../batch/lock/keeper.js'
import { expectationOf } from '../../batch/plan/expected.js'
import { countsOf, type Plan, type Step } from '../../batch/plan/index.js'
import { runSchedule } from '../../batch/schedule/index.js'
import { inWords } from '../../download/trouble.js'
import { EXIT, RushesError } from '../../errors.js'
import { RUNS_LIMIT } from '../../protocol/limits.js'
import type { Connection, Context } from '../context/context.js'
import { formatDuration } from '../flags/duration.js'
import { asRushesError, exitCodeOf, interrupted } from '../process/exit.js'
import { Interruption } from '../process/interrupts.js'
import { createProgress, type Progress } from '../terminal/progress.js'
import { adopted } from './adopt.js'
import type { Prepared } from './prepare.js'
import { createReport } from './report.js'
import { type Active, copyInPlace, createRow, type RowParts, type RowResult } from './row.js'
import { notesOf } from './show.js'

/** Statuses after which no further create would fare better: the key, the account. */
const ENDING: readonly number[] = [EXIT.key, EXIT.account]

/** Before that many are done, nothing is said of the end. */
const FEWEST_DONE = 3

/** The exit code of the command. */
export async function runBatch(ctx: Context, prepared: Prepared): Promise<number> {
  const { manifest, lockPath } = prepared
  const plan = await adoptedPlan(ctx, prepared.plan)
  const active = plan.steps.filter(isActive)
  const connection = active.some(asksService)
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
  const startedAtMs = ctx.clock.monotonic()
  let open = active.length
  /** From how long those took that are done: the limit, and the runs themselves, are both in it. */
  const timeLeft = (): string | undefined => {
    open--
    const done = active.length - open
    if (open === 0 || done < FEWEST_DONE) return undefined
    return `about ${formatDuration(((ctx.clock.monotonic() - startedAtMs) / done) * open)} left`
  }
  const settle = (result: RowResult): void => {
    progress.runEnded(nameOf(result.step, result.run))
    const left = timeLeft()
    if (left !== undefined) progress.expects(undefined)
    progress.activity(left)
    report.row(result)
  }
  const copies = active
    .filter((step) => !asksService(step))
    .map((step) => copy(step, keeper, manifest.folder, settle))
  const code =
    connection === undefined
      ? EXIT.ok
      : await carryOut(ctx, {
          prepared,
          connection,
          keeper,
          progress,
          settle,
          steps: active.filter(asksService),
        })
  await Promise.all(copies)
  progress.end()
  // Whatever could not be written before may be now; if not, this says so.
  const lockError = await keeper.write().then(() => undefined, asRushesError)
  if (lockError !== undefined) ctx.out.error(lockError)
  const errors = [
    ...report.end(plan, (name) => keeper.entry(name)?.pending?.state === 'accepted'),
    ...(lockError === undefined ? [] : [lockError]),
  ]
  return code === EXIT.ok ? exitCodeOf(errors) : code
}

/** Without an address nothing can be looked up; whatever is unconfirmed then stays so. */
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
  new RushesError('download_failed', `The lock file ${path} cannot be written: ${inWords(error)}.`, {
    hint: 'Nothing more is created without it. What exists is in rushes list; the same command goes on when there is room.',
    cause: error,
  })

const nameOf = ({ entry }: Step, run: string | undefined): string => `${entry.name} (${run ?? 'no run'})`

const isActive = (step: Step): step is Active => step.action.do === 'make' || step.action.do === 'fetch'
const asksService = ({ action }: Active): boolean => action.do === 'make' || action.copyFrom === undefined

async function copy(
  step: Active,
  keeper: LockKeeper,
  folder: string,
  settle: (result: RowResult) => void,
): Promise<void> {
  try {
    settle(await copyInPlace({ keeper, folder }, step))
  } catch (error) {
    settle({ step, result: 'failed', error: asRushesError(error) })
  }
}

interface Work {
  readonly prepared: Prepared
  readonly connection: Connection
  readonly keeper: LockKeeper
  readonly progress: Progress
  readonly steps: readonly Active[]
  settle(result: RowResult): void
}

/** Everything that the service is asked for; the exit code where a signal ended it, else 0. */
async function carryOut(ctx: Context, work: Work): Promise<number> {
  const { out, interrupts, clock } = ctx
  const { connection, keeper, progress, steps } = work
  const { manifest, options } = work.prepared
  const recorder = await ctx.recorder()
  let stopped = false
  const parts: RowParts = {
    ctx,
    client: connection.client,
    recorder,
    downloader: await ctx.downloader(connection.fetch),
    keeper,
    address: await ctx.address(),
    folder: manifest.folder,
    patienceMs: options.patienceMs,
    overwrite: options.overwrite,
    onStatus: (step, id, status) => progress.status(nameOf(step, id), status),
    onLockTrouble() {
      stopped = true
    },
    onGrace: () => out.note('Waiting up to 10 s for the answer to the creates; once more ends at once.'),
  }
  const rows = steps.map((step) =>
    createRow(parts, step, (result) => {
      const { error } = result
      if (error !== undefined && (options.failFast || ENDING.includes(error.exitCode))) stopped = true
      work.settle(result)
    }),
  )
  for (const model of new Set(steps.map((step) => step.model)))
    progress.runBegan(model, model === undefined ? undefined : recorder.usual(model))
  const { requests } = countsOf(steps)
  const { expectedMs } = expectationOf(steps, requests, {
    ...RUNS_LIMIT,
    concurrency: options.concurrency,
    usualMs: (model) => recorder.usual(model)?.medianMs,
  })
  if (expectedMs !== undefined) progress.expects(expectedMs)
  // Every row that is under way listens to them.
  setMaxListeners(0, interrupts.first, interrupts.second)
  const underway = new Set<Promise<unknown>>()
  let code: number = EXIT.ok
  try {
    await runSchedule({
      tasks: rows.map(({ task }) => tracked(task, underway)),
      clock,
      budget: RUNS_LIMIT,
      concurrency: options.concurrency,
      learned: (model) => recorder.took(model),
      mayCreate: () => !stopped && !interrupts.first.aborted,
      signal: interrupts.first,
    })
  } catch (thrown) {
    if (!(thrown instanceof Interruption)) throw thrown
    code = endedBy(ctx, thrown, manifest.path)
  }
  await Promise.allSettled(underway)
  await Promise.all(rows.map(({ settled }) => settled()))
  return code
}

/** The same task, whose creates and looks are waited for when the schedule was ended early. */
function tracked<Task extends { create?: () => Promise<boolean>; look(): Promise<unknown> }>(
  task: Task,
  underway: Set<Promise<unknown>>,
): Task {
  const track = <Result>(work: Promise<Result>): Promise<Result> => {
    underway.add(work)
    work.finally(() => underway.delete(work)).catch(() => {})
    return work
  }
  const { create } = task
  return { ...task, look: () => track(task.look()), ...(create && { create: () => track(create()) }) }
}

function endedBy({ out, interrupts }: Context, reason: Interruption, manifest: string): number {
  const error: RushesError = interrupted(
    reason,
    'Interrupted; runs that exist go on.',
    `The same command goes on from here, and nothing is paid twice: rushes batch ${manifest}`,
  )
  if (!(interrupts.first.aborted && error.exitCode === EXIT.stdoutClosed)) out.error(error)
  return error.exitCode
}
