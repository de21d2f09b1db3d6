/** Runs a plan and prints a path or an object for each row as it ends, the progress, and the summary. */
import { dirname, relative, resolve } from 'node:path'
import { inputToSend, type SentReference } from '../../batch/manifest/index.js'
import { activeSteps, needsService, type PlanStep } from '../../batch/plan/index.js'
import { moveFiles, removeRemains } from '../../batch/results/move-files.js'
import { withExtension } from '../../download/file-names.js'
import { EXIT, type RushesError, usageError } from '../../errors.js'
import { nameProblem, reasonUnwritable } from '../../host/file-system.js'
import { asRushesError, Interruption, interrupted } from '../../host/interrupts.js'
import { quoteWord } from '../../host/shell.js'
import { carryOutPlan, type PlanSession, renamedRows } from '../../runs/batch.js'
import type { RunsSession } from '../../runs/run.js'
import { type RunEvent, stopsCreating } from '../../runs/schedule.js'
import type { Connection, Context } from '../context/context.js'
import { exitCodeOf } from '../process/exit.js'
import { sessionOf } from '../runs/carry-out.js'
import { fileUrl, RowOutputs, withRunOutputs } from '../runs/run-outputs.js'
import { RunsView } from '../runs/runs-view.js'
import { plural } from '../terminal/format.js'
import { BatchLock } from './batch-lock.js'
import { batchCommandLine } from './options.js'
import type { PreparedBatch } from './prepare.js'
import { printNotes, Report, reportPlan } from './report.js'
import { planLine, pricedRun, sumPlan } from './row-text.js'

/** Runs the batch, whose claim is held. Returns the exit code. */
export async function runBatch(ctx: Context, prepared: PreparedBatch): Promise<number> {
  const { plan, missing, options } = prepared
  const { limit } = options
  const active = activeSteps(plan)
  refuseUnwritable(prepared)
  const isConnected = active.some(needsService)
  if (isConnected && missing.length > 0) throw await ctx.missingError(missing)
  const connection = isConnected ? await ctx.connect({ render: true }) : undefined
  for (const { action, model, flight } of active) {
    if (action.do === 'create' && model !== undefined) connection?.checkModel?.(model)
    else if (flight?.run !== undefined) await connection?.checkRun?.(flight.run)
  }
  const reserved = await limit
    .reserve(() => sumPlan(plan, limit.prices))
    .catch((error: unknown) => {
      // Standard output has only the rows of batches that were carried out.
      reportPlan(ctx, prepared, false)
      throw error
    })
  const sent: PlanStep[] = []
  try {
    return await carryOutBatch(ctx, prepared, connection, sent)
  } finally {
    const created = limit.prices.sum(sent.map(pricedRun))
    limit.giveBack({
      runs: reserved.runs - created.runs,
      millionths: reserved.millionths - created.millionths,
    })
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

/** Adds to `sent` the steps whose creates were accepted, or whose outcome is unknown. */
async function carryOutBatch(
  ctx: Context,
  prepared: PreparedBatch,
  connection: Connection | undefined,
  sent: PlanStep[],
): Promise<number> {
  const { options, manifest } = prepared
  const { prices } = options.limit
  const lock = await BatchLock.open(ctx, prepared, connection !== undefined)
  await removeRemains(prepared.plan.steps, manifest.folder, lock.file.batch)
  const steps = await moveFiles(prepared.plan.steps, {
    disk: prepared.plan.disk,
    lock: lock.file,
    folder: manifest.folder,
    signal: ctx.interrupts.first,
    fileSystem: ctx.parts.fileSystem,
  }).catch((error: unknown) => lock.throwFailed(error))
  const plan = { ...prepared.plan, steps }
  const active = activeSteps(plan)
  const report = new Report(ctx, prepared)
  printNotes(ctx, plan)
  if (plan.counts.create > 0) ctx.out.note(planLine(ctx, plan, prices))
  const view = await RunsView.open(ctx, active.length)
  let lockErrors: readonly RushesError[] = []
  try {
    const events = connection
      ? carryOutPlan(await planSession(ctx, { ...prepared, plan }, connection, lock))
      : renamedRows(plan, lock.file)
    for await (const event of events) {
      if (event.is === 'row') report.row(event.result)
      else {
        view.see(event)
        sent.push(...sentSteps(event, active))
      }
    }
  } finally {
    const address = connection === undefined ? '' : await ctx.address()
    view.end({ journal: lock.journal, address })
    lockErrors = await lock.finish()
  }
  const exists = new Set(
    [...sent, ...active.filter(({ action }) => action.do === 'download')].map(({ entry }) => entry.name),
  )
  const { errors, notStarted } = report.end(plan, (name) => exists.has(name), prices.sum(sent.map(pricedRun)))
  const stopped = interruptedBatch(ctx, prepared)
  const reason = stopped ?? (notStarted > 0 ? lock.failure : undefined)
  const failures = [...lockErrors, ...stopReasons([...errors, ...lockErrors], reason, notStarted)]
  // Without a message if the reader closed standard output.
  for (const error of failures) if (error.exitCode !== EXIT.stdoutClosed) ctx.out.error(error)
  if (stopped !== undefined) return stopped.exitCode
  const code = exitCodeOf([...errors, ...failures])
  // Exit code 2 means that nothing was sent.
  return code === EXIT.usage && sent.length > 0 ? EXIT.runFailed : code
}

/** The step whose create was accepted with this event, or whose outcome is unknown. */
function sentSteps(event: RunEvent, active: readonly PlanStep[]): readonly PlanStep[] {
  const isSent = event.is === 'created' || (event.is === 'ended' && event.result.is === 'unconfirmed')
  return isSent ? active.slice(event.run.index, event.run.index + 1) : []
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

async function planSession(
  ctx: Context,
  prepared: PreparedBatch,
  connection: Connection,
  lock: BatchLock,
): Promise<PlanSession> {
  const { interrupts, globals, clock } = ctx
  const { manifest, options, isElsewhere, plan, source, flags } = prepared
  const { folder } = manifest
  const { prices, perDay } = options.limit
  const runs: RunsSession = {
    ...(await sessionOf(ctx, connection, lock.journal)),
    policy: 'required',
    concurrency: options.concurrency,
    timeoutMs: options.patienceMs,
    noCreates: lock.noCreates,
    isFailFast: flags.failFast,
    stopsCreates: stopsBatch,
  }
  const madeOf = (row: string) => lock.file.get(row)
  const { address } = runs
  const outputs = new RowOutputs({ ...connection, address, clock, folder, madeOf, signal: interrupts.first })
  return {
    plan,
    runs,
    folder,
    isElsewhere,
    lock: lock.file,
    name: lock.name,
    manifest: source === '-' ? undefined : resolve(source),
    downloader: await ctx.downloader(connection.fetch),
    continuation: `\`${batchCommandLine(globals, prepared)}\``,
    payAgain(row) {
      const command = batchCommandLine(globals, { source, flags: { ...flags, only: [] } })
      return `To create it again and pay again: \`${command} --only ${row === undefined ? '<name>' : quoteWord(row)} --force\``
    },
    async inputOf({ entry }) {
      const urlOf = async (reference: SentReference) =>
        reference.from === 'row' ? await outputs.urlOf(reference) : await fileUrl(reference, entry.name)
      return withRunOutputs(ctx, connection, await inputToSend(entry, urlOf), entry.media)
    },
    estimateOf: (step) => prices.estimate(pricedRun(step)),
    dayLimit: perDay,
    onLockFailed: (error) => lock.throwFailed(error),
    learn: (state) => outputs.learn(state),
  }
}

function interruptedBatch(
  { globals, interrupts }: Context,
  prepared: PreparedBatch,
): RushesError | undefined {
  const { aborted, reason } = interrupts.first
  if (!aborted || !(reason instanceof Interruption)) return undefined
  const fate = globals.local
    ? 'Unfinished runs stay queued until the batch continues.'
    : 'Created runs continue on the service.'
  const force = prepared.flags.force
    ? ' --force is left out, because it would pay again for runs that are done.'
    : ''
  return interrupted(
    reason,
    `Interrupted. ${fate}`,
    `Continue without paying twice with \`${batchCommandLine(globals, prepared)}\`.${force}`,
  )
}
