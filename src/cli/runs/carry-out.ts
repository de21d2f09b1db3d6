/**
 * Carries out the runs of `run`, `wait` and `download`: downloads their outputs, prints the runs in order, folds equal
 * errors, and derives the exit code.
 */
import { createNamer } from '../../download/file-names.js'
import { EXIT, type RushesError } from '../../errors.js'
import { asRushesError, Interruption, interrupted } from '../../host/interrupts.js'
import type { RunState } from '../../protocol/run-state.js'
import type { TypicalDuration } from '../../protocol/typical-duration.js'
import { formatBytes } from '../../protocol/units.js'
import { createOutageCheck, stopsCreating } from '../../runs/create.js'
import { deliver, inSharedCommits } from '../../runs/deliver.js'
import { createErrorGroups } from '../../runs/error-groups.js'
import type { FollowedRun, KnownRun } from '../../runs/follow.js'
import { carryOut, type Row } from '../../runs/index.js'
import type { Connection, Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import { exitCodeOf } from '../process/exit.js'
import { formatSeconds, plural } from '../terminal/format.js'
import { createProgress } from '../terminal/progress.js'
import type { RunRecord } from '../terminal/run-json.js'
import { createDownloadOrder } from './download-order.js'
import { repeatedRuns } from './folded-errors.js'
import { inOrder, openResults, printRun, recordOf } from './print-run.js'
import { createUnfinishedRuns, type ResumeMany, resumeCommand, withResumeHint } from './resume.js'
import { writeSidecars } from './sidecar.js'

/** An existing run, or one to create first. If `create` rejects, the run fails with its error. */
export type RunToCarryOut =
  | { readonly run: KnownRun }
  | { readonly model: string; create(): Promise<KnownRun> }

export interface CarryOutOptions {
  readonly connection: Connection
  readonly delivery: Delivery
  readonly runs: readonly RunToCarryOut[]
  /** Whether to wait for the runs. If false, they are printed as soon as they exist. Default: true. */
  readonly isFollowed?: boolean
  /** How to resume when there are many runs. */
  readonly many: ResumeMany
  /** Returns the errors to print for the creates that failed. Called when no further create will be sent. */
  createErrors?(errors: readonly RushesError[]): readonly RushesError[]
  /** Completes the error of a signal that kept creates back. */
  withRest?(error: RushesError): RushesError
}

/** Returns the exit code. */
export async function carryOutRuns(ctx: Context, options: CarryOutOptions): Promise<number> {
  const { connection, delivery, runs, isFollowed = true } = options
  const { createErrors = (errors) => errors, withRest = (error) => error } = options
  const { out, clock, interrupts } = ctx
  const { target } = delivery
  const isOnce = delivery.patience === 'once'
  const timeoutMs = delivery.patience === 'once' ? undefined : delivery.patience
  const pictures = isFollowed ? await picturesOf(ctx, delivery, connection) : undefined
  const progress = await createProgress(ctx, runs.length)
  const recorder = await ctx.recorder()
  const address = await ctx.address()
  const downloader = target === undefined ? undefined : await ctx.downloader(connection.fetch)
  const namer = target === undefined ? undefined : createNamer(target)
  const resume = (verb: Parameters<typeof resumeCommand>[1], ids: readonly string[] | 'all') =>
    resumeCommand({ globals: ctx.globals, delivery: delivery.again }, verb, ids)
  const unfinished = createUnfinishedRuns({
    isLocal: ctx.globals.local,
    verb: isOnce ? 'download' : 'wait',
    resume,
    many: options.many,
    isRemembered: (id) => recorder.find(id) !== undefined,
  })
  const errors: RushesError[] = []
  const groups = createErrorGroups<undefined>()
  const typicalDurations = new Map<string, TypicalDuration | undefined>()
  /** Runs to mark as queued under `--local`: the local service renders only while a command waits. */
  const queued: string[] = []
  const startedAtMs = clock.monotonic()
  const succeeded: RunRecord[] = []
  const failedCreates: RushesError[] = []
  const outage = createOutageCheck()
  let unsent = 0
  let unanswered = 0
  let isStopped = false

  function printError(error: RushesError): void {
    // Exit without a message: the reader of standard output has closed it.
    const isSilent = interrupts.first.aborted && error.exitCode === EXIT.stdoutClosed
    if (!isSilent) out.error(error)
  }

  function addError(error: RushesError): void {
    errors.push(error)
    // Errors of unfinished runs are printed together, at the end.
    if (!unfinished.has(error) && groups.add(error, undefined)) printError(error)
  }

  const print = pictures?.printRun ?? (async (record, options) => printRun(ctx, record, options))
  let printed = Promise.resolve()
  const turns = inOrder<{ record: RunRecord | undefined; error: RushesError | undefined }>((turn) => {
    // A line waits until the pictures before it are drawn.
    printed = printed.then(async () => {
      if (turn.record !== undefined) await print(turn.record, { target, isFollowed })
      if (turn.error !== undefined) addError(turn.error)
    })
  })
  const downloadOrder = createDownloadOrder(runs.length)

  function begin({ id, model, state }: KnownRun): void {
    if (model !== undefined && !typicalDurations.has(model))
      typicalDurations.set(model, recorder.typicalDuration(model))
    progress.runBegan(model, model === undefined ? undefined : typicalDurations.get(model))
    if (state !== undefined) progress.status(id, state.status)
  }

  async function createRun(index: number, create: () => Promise<KnownRun>): Promise<KnownRun | undefined> {
    unsent--
    unanswered++
    try {
      const known = await create()
      outage.add(undefined)
      progress.activity(undefined)
      if (isFollowed) begin(known)
      else turns.settle(index, { record: recordOf(known), error: undefined })
      return known
    } catch (thrown) {
      // Undefined if a signal arrived before anything was sent.
      const error = thrown instanceof Interruption ? undefined : asRushesError(thrown)
      if (error === undefined) unsent++
      else {
        outage.add(error)
        failedCreates.push(error)
        isStopped ||= stopsCreating(error) || error.code === 'interrupted' || outage.isDown
      }
      downloadOrder.skip(index)
      progress.runEnded()
      turns.settle(index, undefined)
      return undefined
    } finally {
      unanswered--
      if (unanswered === 0 && (isStopped || unsent === 0)) printCreateErrors()
    }
  }

  /** Prints the errors of the creates when their number is known: runs may take minutes until they end. */
  function printCreateErrors(): void {
    errors.push(...failedCreates)
    const found = failedCreates.length === 0 ? [] : createErrors(failedCreates.splice(0))
    for (const error of found) printError(error)
  }

  async function end(index: number, run: FollowedRun): Promise<readonly Row[]> {
    const { known, state } = run
    const error = run.error && withResumeHint(run.error, run, resume)
    const isDelivered = state?.phase === 'succeeded' && error === undefined
    const finish = () => (isDelivered ? downloadOutputs(run, state) : { files: [], error })
    // A template numbers the outputs of all runs, so the downloads must start in the order of the runs.
    const outputs = await (target?.kind === 'template'
      ? downloadOrder.begin(index, async () => finish())
      : finish())
    const { finishedAt, elapsedMs } = run
    const record: RunRecord = {
      ...recordOf(known),
      state,
      service: state?.service ?? known.service,
      finishedAt,
      elapsedMs,
      ...outputs,
    }
    progress.runEnded(known.id)
    if (record.error === undefined) succeeded.push(record)
    turns.settle(index, { record, error: record.error })
    if (delivery.open && record.error === undefined) await openResults(ctx, record)
    return []
  }

  async function downloadOutputs(
    run: FollowedRun,
    state: RunState,
  ): Promise<Pick<RunRecord, 'files' | 'error'>> {
    if (target === undefined || downloader === undefined) return { files: [], error: undefined }
    const { id, kind } = run.known
    const record = inSharedCommits((files) => recorder.recordFiles(id, files))
    const {
      files,
      warnings,
      thrown,
      errors: failed,
    } = await deliver({
      client: connection.client,
      clock,
      downloader,
      state,
      run: { kind },
      target,
      namer,
      mayReplace: () => delivery.overwrite,
      earlier: recorder.filesOf(id),
      stdout: target.kind === 'stdout' ? ctx.stdout : undefined,
      signal: interrupts.first,
      onProgress: (transfer) => progress.transfer(id, transfer),
      async beforeMove(file) {
        // Record the file before it is renamed: if this command is killed, the next one recognizes it by its bytes.
        if (target.kind !== 'stdout') await record(file)
        return undefined
      },
    })
    for (const warning of warnings) out.warn(warning)
    const hint = `Download its outputs with \`${resume('download', [id])}\`.`
    if (thrown instanceof Interruption)
      return {
        files,
        error: interrupted(thrown, 'The run succeeded, but its download was interrupted.', hint, id),
      }
    if (thrown !== undefined) return { files, error: asRushesError(thrown).with({ runId: id }) }
    const { known, finishedAt, elapsedMs } = run
    const { overwrite } = delivery
    const sidecars = delivery.sidecar
      ? await writeSidecars(files, { known, state, address, overwrite, finishedAt, elapsedMs })
      : []
    const [first, ...others] = [...failed, ...sidecars]
    if (first === undefined) return { files, error: undefined }
    const more = others.length === 0 ? '' : ` ${plural(others.length, 'more output')} of this run failed.`
    return {
      files,
      error: first.with({
        message: `${first.message}${more}`,
        hint: [first.hint, hint].filter(Boolean).join(' '),
        runId: id,
      }),
    }
  }

  const rowOf = (of: RunToCarryOut, index: number): Row => {
    let { id } = 'run' in of ? of.run : { id: '' }
    return {
      model: ('run' in of ? of.run.model : of.model) ?? '',
      isFollowed,
      isOnce,
      ...('run' in of
        ? { run: of.run }
        : {
            async create() {
              const known = await createRun(index, of.create)
              id = known?.id ?? ''
              return known
            },
          }),
      onStatus: ({ status }) => progress.status(id, status),
      onStatusError(error) {
        progress.activity('invalid response, trying again')
        out.debug(`${error.runId}: ${error.message}`)
      },
      errorAt(stop, errorAtLimit) {
        if (stop.is === 'not finished') return unfinished.notFinished(stop.state)
        queued.push(id)
        if (stop.is === 'signal') return unfinished.interrupted(id, stop.by)
        // If the service has returned the status of other runs, a missing response for this one is not a network error.
        return unfinished.limitPassed(
          id,
          timeoutMs ?? 0,
          stop.isServiceAnswering ? (limit) => limit : errorAtLimit,
        )
      },
      end: (run) => end(index, run),
    }
  }

  function printSummary(): void {
    if (succeeded.length === 0 || ctx.stderr.isTTY !== true || !isFollowed) return
    const files = succeeded.flatMap((record) => record.files)
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
    const done = runs.length === 1 ? 'Done' : `${succeeded.length} of ${runs.length} runs done`
    const downloaded = files.length === 0 ? '' : `: ${plural(files.length, 'file')} (${formatBytes(bytes)})`
    out.note(`${done} in ${formatSeconds(clock.monotonic() - startedAtMs)}${downloaded}`)
  }

  const rows: Row[] = []
  for (const [index, each] of runs.entries()) {
    if (!('run' in each)) unsent++
    else if (isFollowed) begin(each.run)
    else turns.settle(index, { record: recordOf(each.run), error: undefined })
    if (isFollowed || !('run' in each)) rows.push(rowOf(each, index))
  }
  if (unsent > 0) progress.activity('creating the run')
  let interruption: Interruption | undefined
  try {
    await carryOut({
      rows,
      isLocal: ctx.globals.local,
      client: connection.client,
      recorder,
      clock,
      random: ctx.random,
      timeoutMs,
      mayCreate: () => !isStopped,
      signal: interrupts.first,
    })
    await printed
    if (pictures !== undefined) interrupts.first.throwIfAborted()
  } catch (thrown) {
    if (!(thrown instanceof Interruption)) throw thrown
    interruption = thrown
  }
  await printed
  printCreateErrors()
  progress.end()
  if (ctx.globals.local && queued.length > 0) recorder.recordQueued(...queued)
  for (const repeated of groups.repeated()) printError(repeatedRuns(repeated))
  const completed = (error: RushesError) =>
    error.code === 'interrupted' && unsent > 0 ? withRest(error) : error
  for (const error of unfinished.report()) printError(completed(error))
  if (interruption === undefined) printSummary()
  else if (!errors.some(({ code }) => code === 'interrupted')) addError(completed(interrupted(interruption)))
  return exitCodeOf(errors)
}

/** Loads the code for pictures only if they are wanted. */
async function picturesOf(ctx: Context, { show }: Delivery, { fetch }: Connection) {
  if (show === undefined) return undefined
  const { openPictures } = await import('./pictures.js')
  return openPictures(ctx, show, fetch)
}
