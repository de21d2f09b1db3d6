/** Runs a plan and prints a path or an object for each row as it ends, the progress, and the summary. */
import { dirname, relative, resolve } from 'node:path'
import { inputToSend, type SentReference } from '../../batch/manifest/index.js'
import { activeSteps, needsService, type Plan, type PlanStep } from '../../batch/plan/index.js'
import { moveFiles, removeRemains } from '../../batch/results/move-files.js'
import { withExtension } from '../../download/file-names.js'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { reasonUnwritable } from '../../host/directories.js'
import { nameProblem } from '../../host/file-system.js'
import { asRushesError, Interruption, interrupted } from '../../host/interrupts.js'
import { progressOf } from '../../protocol/parse.js'
import { type BatchEvent, type BatchOptions, carryOutPlan } from '../../runs/batch.js'
import type { RunsSession } from '../../runs/run.js'
import { stopsCreating } from '../../runs/schedule.js'
import type { Connection, Context } from '../context/context.js'
import type { CostEstimate } from '../models/prices.js'
import { exitCodeOf } from '../process/exit.js'
import { createRepeatedIds } from '../runs/print-run.js'
import { fileUrl, RowOutputs, withRunOutputs } from '../runs/references.js'
import type { ServiceFlags } from '../settings/globals.js'
import { GRACE_NOTE, plural } from '../terminal/format.js'
import { createProgress, type Progress } from '../terminal/progress.js'
import { estimateOf, sumPlan, sumSteps } from './estimates.js'
import { type BatchLock, openLock } from './open-lock.js'
import { type BatchWords, batchCommandLine } from './options.js'
import type { PreparedBatch } from './prepare.js'
import { planLine, reportPlan, warnOfLeftRuns } from './print-plan.js'
import { createReport } from './report.js'
import { notesOf } from './show.js'

/**
 * Whether the error stops further creates. A refused input of one row says nothing about other rows, so it does not.
 * All other stopping errors do.
 */
const stopsBatch = (error: RushesError): boolean => {
  const concernsOneRow =
    (error.httpStatus === 400 && error.code !== 'model_not_found') || error.httpStatus === 413
  return stopsCreating(error) && !concernsOneRow
}

/** Runs the batch, whose claim is held. Returns the exit code. */
export async function runBatch(ctx: Context, prepared: PreparedBatch): Promise<number> {
  const { plan: planned } = prepared
  const { limit } = prepared.options
  const active = activeSteps(planned)
  refuseUnwritable(prepared)
  const isConnected = active.some(needsService)
  if (isConnected && prepared.missing.length > 0) throw await ctx.missingError(prepared.missing)
  const connection = isConnected ? await ctx.connect({ render: true }) : undefined
  for (const { action, model, flight } of active) {
    if (action.do === 'create' && model !== undefined) connection?.checkModel?.(model)
    else if (flight?.run !== undefined) await connection?.checkRun?.(flight.run)
  }
  const sent: PlanStep[] = []
  const reserved = await reserve(ctx, prepared)
  try {
    return await carryOutBatch(ctx, prepared, connection, sent)
  } finally {
    const created = sumSteps(sent, limit.prices)
    limit.giveBack({
      runs: reserved.runs - created.runs,
      millionths: reserved.millionths - created.millionths,
    })
  }
}

/** Adds to `sent` the steps whose creates were accepted, or whose outcome is unknown. */
async function carryOutBatch(
  ctx: Context,
  prepared: PreparedBatch,
  connection: Connection | undefined,
  sent: PlanStep[],
): Promise<number> {
  const { plan: planned, options, manifest } = prepared
  const { prices } = options.limit
  const active = activeSteps(planned)
  const lock = await openLock(ctx, prepared, connection !== undefined)
  await removeRemains(planned.steps, manifest.folder, lock.file.batch)
  const plan = { ...planned, steps: await movedSteps(ctx, prepared, lock) }
  const report = createReport(ctx, prepared)
  for (const note of notesOf(plan)) ctx.out.note(note)
  warnOfLeftRuns(ctx, plan)
  if (planned.counts.create > 0) ctx.out.note(planLine(ctx, plan, prices))
  const progress = await createProgress(ctx, active.length)
  for (const step of active) if (needsService(step)) progress.runBegan()
  const running = new Set<string>()
  const repeated = createRepeatedIds(ctx)
  const see = (event: BatchEvent): void => {
    prepared.observer?.see(event)
    if (event.is === 'unanswered') ctx.out.note(GRACE_NOTE)
    else if (event.is === 'sent') sent.push(event.step)
    else if (event.is === 'run') {
      seeRun(event, progress, running)
      if (event.event.is === 'created') repeated(event.event.run)
    } else {
      progress.runEnded(event.result.run, event.result.step.entry.name)
      report.row(event.result)
    }
  }
  let lockErrors: readonly RushesError[] = []
  try {
    for await (const event of carryOutPlan(await optionsOf(ctx, prepared, plan, connection, lock))) see(event)
  } finally {
    progress.end()
    lockErrors = await lock.finish()
  }
  // A session of `rushes mcp` renders on.
  if (ctx.globals.local && prepared.observer === undefined && running.size > 0)
    lock.journal?.queued(await ctx.address(), [...running])
  const exists = (name: string) =>
    active.some(({ entry, action }) => entry.name === name && action.do === 'download') ||
    sent.some(({ entry }) => entry.name === name)
  const { errors, notStarted } = report.end(plan, exists, sumSteps(sent, prices))
  const { first } = ctx.interrupts
  const stopped =
    first.aborted && first.reason instanceof Interruption
      ? interruptedBatch(ctx, first.reason, prepared)
      : undefined
  const reason = stopped ?? (notStarted > 0 ? lock.failure : undefined)
  const failures = [...lockErrors, ...stopReasons([...errors, ...lockErrors], reason, notStarted)]
  for (const error of failures) if (!isClosedStdout(ctx, error)) ctx.out.error(error)
  if (stopped !== undefined) return stopped.exitCode
  const code = exitCodeOf([...errors, ...failures])
  // Exit code 2 means that nothing was sent.
  return code === EXIT.usage && sent.length > 0 ? EXIT.runFailed : code
}

function seeRun(
  { step, event }: Extract<BatchEvent, { is: 'run' }>,
  progress: Progress,
  running: Set<string>,
): void {
  const { name } = step.entry
  if (event.is === 'unanswered') return
  const { id, firstStatus } = event.run
  if (event.is === 'created') progress.status(id, firstStatus ?? 'accepted', name)
  if (event.is === 'status') progress.status(id, event.state.status, name, progressOf(event.state))
  if (event.is === 'created') running.add(id)
  if (event.is === 'ended' && event.result.is !== 'running') running.delete(id)
}

/** Of the known types of media. */
const LONGEST_EXTENSION = 'webp'

/**
 * Throws `usage` if the output of a run cannot be written, before anything is paid for. Not for files that are only
 * renamed.
 */
function refuseUnwritable({ manifest, plan }: PreparedBatch): void {
  const checked = new Set<string>()
  for (const { entry, outputs } of activeSteps(plan).filter(needsService))
    for (const { file } of outputs) {
      const row = `${entry.name}, line ${entry.at.line}`
      const path = withExtension(file, LONGEST_EXTENSION)
      const problem = nameProblem(resolve(manifest.folder, path))
      if (problem !== undefined)
        throw usageError(`Cannot write ${file} (${row}): ${problem}. Nothing was sent.`, 'Change its output.')
      const folder = relative('.', resolve(manifest.folder, dirname(file))) || '.'
      const reason = checked.has(folder) ? undefined : reasonUnwritable(folder)
      checked.add(folder)
      if (reason !== undefined)
        throw usageError(
          `Cannot write ${file} (${row}): ${reason}. Nothing was sent.`,
          'Make the folder writable, or change its output.',
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
  return [asRushesError(new Error(`${plural(notStarted, 'run was', 'runs were')} not started`))]
}

/** Reserves what the batch may create, directly before the first create. Throws `usage` beyond a limit. */
async function reserve(ctx: Context, prepared: PreparedBatch): Promise<CostEstimate> {
  const { plan, options } = prepared
  try {
    return await options.limit.reserve(() => sumPlan(plan, options.limit.prices))
  } catch (error) {
    // Standard output has only the rows of batches that were carried out.
    reportPlan(ctx, prepared, false)
    throw error
  }
}

async function movedSteps(
  { interrupts, out, parts: { fileSystem } }: Context,
  { manifest: { folder }, plan: { steps, counts, disk } }: PreparedBatch,
  { file }: BatchLock,
): Promise<readonly PlanStep[]> {
  try {
    return await moveFiles(steps, { disk, lock: file, folder, signal: interrupts.first, fileSystem })
  } catch (thrown) {
    // All files are at their paths. Only the lock file could not be written.
    const isDone = counts.create + counts.download === 0
    if (!isDone || !(thrown instanceof RushesError)) throw thrown
    out.warn(thrown.message)
    return steps
  }
}

/** Whether the reader closed standard output: the program then ends without a message. */
const isClosedStdout = ({ interrupts }: Context, { exitCode }: RushesError): boolean =>
  interrupts.first.aborted && exitCode === EXIT.stdoutClosed

async function optionsOf(
  ctx: Context,
  prepared: PreparedBatch,
  plan: Plan,
  connection: Connection | undefined,
  { file, name, journal, noCreates, throwFailed }: BatchLock,
): Promise<BatchOptions> {
  const { interrupts, globals, clock } = ctx
  const { manifest, options, isElsewhere } = prepared
  const { folder } = manifest
  const address = connection === undefined ? '' : await ctx.address()
  const session: RunsSession | undefined = connection && {
    client: connection.client,
    journal,
    policy: 'required',
    address,
    profile: ctx.profileName,
    clock,
    random: ctx.random,
    interrupts,
    concurrency: options.concurrency,
    timeoutMs: options.patienceMs,
    noCreates,
    isFailFast: options.failFast,
    stopsCreates: stopsBatch,
  }
  const madeOf = (row: string) => file.get(row)
  const sources =
    connection && new RowOutputs({ ...connection, address, clock, folder, madeOf, signal: interrupts.first })
  return {
    ...{ plan, lock: file, name, folder, isElsewhere },
    manifest: prepared.source === '-' ? undefined : resolve(prepared.source),
    service: session && connection && { session, downloader: await ctx.downloader(connection.fetch) },
    continuation: `\`${batchCommandLine(globals, prepared)}\``,
    payAgain: (row) => payAgain(globals, prepared, row),
    async inputOf({ entry }) {
      if (connection === undefined || sources === undefined) throw new Error('a create needs the service')
      const urlOf = async (reference: SentReference) =>
        reference.from === 'row' ? await sources.urlOf(reference) : await fileUrl(reference, entry.name)
      return withRunOutputs(ctx, connection, await inputToSend(entry, urlOf), entry.media)
    },
    estimateOf: (step) => estimateOf(step, options.limit.prices),
    dayLimit: options.limit.perDay,
    onLockFailed: throwFailed,
    learn: (state) => sources?.learn(state),
  }
}

function payAgain(globals: ServiceFlags, { source, flags }: BatchWords, row: string): string {
  const command = batchCommandLine(globals, {
    source,
    flags: { ...flags, only: [] },
  })
  return `To create it again and pay again: \`${command} --only ${row} --force\``
}

function interruptedBatch({ globals }: Context, reason: Interruption, prepared: PreparedBatch): RushesError {
  const fate = globals.local
    ? 'Unfinished runs stay queued until the batch continues.'
    : 'Created runs continue on the service.'
  const force = prepared.options.force
    ? ' --force is left out, because it would pay again for runs that are done.'
    : ''
  return interrupted(
    reason,
    `Interrupted. ${fate}`,
    `Continue without paying twice with \`${batchCommandLine(globals, prepared)}\`.${force}`,
  )
}
