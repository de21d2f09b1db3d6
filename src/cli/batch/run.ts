/** Carries a plan out: creates and looks by the schedule, files as they are done, and a word for each row as it ends. */
import { setMaxListeners } from 'node:events'
import { writeLock } from '../../batch/lock/file.js'
import { createLockKeeper } from '../../batch/lock/keeper.js'
import type { Plan, Step } from '../../batch/plan/index.js'
import { runSchedule } from '../../batch/schedule/index.js'
import { EXIT, type RushesError } from '../../errors.js'
import { RUNS_LIMIT } from '../../protocol/limits.js'
import type { Context } from '../context.js'
import { asRushesError, exitCodeOf, interrupted } from '../exit.js'
import { Interruption } from '../interrupts.js'
import { createProgress } from '../progress.js'
import { adopted } from './adopt.js'
import type { Prepared } from './prepare.js'
import { createReport } from './report.js'
import { type Active, copyInPlace, createRow, type RowParts, type RowResult } from './row.js'
import { notesOf } from './show.js'

/** Statuses after which no further create would fare better: the key, the account. */
const ENDING: readonly number[] = [EXIT.key, EXIT.account]

/** The exit code of the command. */
export async function runBatch(ctx: Context, prepared: Prepared): Promise<number> {
  const { out, interrupts, clock } = ctx
  const { manifest, lockPath, options, missing } = prepared
  const needsService = prepared.plan.steps.some(
    ({ action }) => action.do === 'make' || (action.do === 'fetch' && action.copyFrom === undefined),
  )
  const connection = needsService ? await ctx.connect({ missing, render: true }) : undefined
  const recorder = await ctx.recorder()
  const address = needsService ? await ctx.address() : ''
  const plan: Plan = adopted(prepared.plan, recorder)
  const keeper = createLockKeeper(plan.lock, (lock) => writeLock(lockPath, manifest.path, lock))
  const report = createReport(ctx, prepared)
  for (const note of notesOf(plan)) out.note(note)

  const active = plan.steps.filter(isActive)
  const progress = await createProgress(ctx, active.length)
  const underway = new Set<Promise<unknown>>()
  let stopped = false
  const settle = (result: RowResult): void => {
    progress.runEnded()
    report.row(result)
    const { error } = result
    if (error !== undefined && (options.failFast || ENDING.includes(error.exitCode))) stopped = true
  }
  // Every row that is under way listens to it.
  setMaxListeners(0, interrupts.first, interrupts.second)

  let code = EXIT.ok as number
  if (connection !== undefined) {
    const parts: RowParts = {
      ctx,
      client: connection.client,
      recorder,
      downloader: await ctx.downloader(connection.fetch),
      keeper,
      address,
      folder: manifest.folder,
      patienceMs: options.patienceMs,
      overwrite: options.overwrite,
      onStatus: (id, status) => progress.status(id, status),
      onGrace: () => out.note('Waiting up to 10 s for the answer to the creates; once more ends at once.'),
    }
    const copies = active.flatMap((step) =>
      step.action.do === 'fetch' && step.action.copyFrom !== undefined
        ? [
            copyInPlace(parts, step, step.action.copyFrom).then(settle, (error) =>
              settle(failed(step, error)),
            ),
          ]
        : [],
    )
    const rows = active
      .filter(({ action }) => action.do === 'make' || action.copyFrom === undefined)
      .map((step) => createRow(parts, step, settle))
    for (const { model } of new Map(active.map((step) => [step.model, step])).values())
      progress.runBegan(model, model === undefined ? undefined : recorder.usual(model))
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
    await Promise.all([...copies, ...rows.map(({ settled }) => settled())])
  } else
    for (const step of active)
      if (step.action.do === 'fetch' && step.action.copyFrom !== undefined)
        settle(await copyInPlace({ keeper, folder: manifest.folder } as RowParts, step, step.action.copyFrom))
  progress.end()
  await keeper.write()
  const errors = report.end(plan)
  return code === EXIT.ok ? exitCodeOf(errors) : code
}

const isActive = (step: Step): step is Active => step.action.do === 'make' || step.action.do === 'fetch'

const failed = (step: Step, error: unknown): RowResult => ({
  step,
  result: 'failed',
  error: asRushesError(error),
})

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
