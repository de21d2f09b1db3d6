/**
 * Carries out the runs of `run`, `wait` and `download`: downloads their outputs, prints the runs in order, folds equal
 * errors, and derives the exit code.
 */
import { createNamer } from '../../download/file-names.js'
import type { DownloadedFile, Downloader, Namer } from '../../download/index.js'
import { EXIT, type RushesError } from '../../errors.js'
import { Interruption, interrupted } from '../../host/interrupts.js'
import { progressOf } from '../../protocol/parse.js'
import type { RunState } from '../../protocol/run-state.js'
import { formatBytes } from '../../protocol/units.js'
import { type CreateRequest, type Submitted, stopsCreating } from '../../runs/create.js'
import { deliver, deliveryError, inSharedCommits } from '../../runs/deliver.js'
import { createErrorGroups, type ErrorGroups } from '../../runs/error-groups.js'
import type { FollowedRun, KnownRun } from '../../runs/follow.js'
import { carryOut, type Row, type StopReason } from '../../runs/index.js'
import type { Recorder } from '../../runs/recorder.js'
import type { Connection, Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import { exitCodeOf } from '../process/exit.js'
import { formatSeconds, GRACE_NOTE, plural } from '../terminal/format.js'
import { createProgress, type Progress } from '../terminal/progress.js'
import type { RunRecord } from '../terminal/run-json.js'
import { repeatedRuns } from './folded-errors.js'
import { isFree } from './journal-rows.js'
import { inOrder, type PrintOptions, printRun, recordOf } from './print-run.js'
import {
  createUnfinishedRuns,
  type ResumeMany,
  type ResumeVerb,
  resumeCommand,
  type UnfinishedRuns,
  withResumeHint,
} from './resume.js'
import { writeSidecars } from './sidecar.js'

/** An existing run, or one to create first. */
export type RunToCarryOut =
  | { readonly run: KnownRun }
  | { readonly model: string; request(): Promise<CreateRequest> }

/** A create that was refused, or whose outcome is unknown. */
export type FailedCreate = Extract<Submitted, { is: 'refused' | 'unconfirmed' }>

export interface CarryOutOptions {
  readonly connection: Connection
  readonly delivery: Delivery
  readonly runs: readonly RunToCarryOut[]
  /** Whether to wait for the runs. If false, they are printed as soon as they exist. Default: true. */
  readonly isFollowed?: boolean
  /** How to resume when there are many runs. */
  readonly many: ResumeMany
  /** Returns the errors to print for the creates that failed. Called when no further create will be sent. */
  createErrors?(failed: readonly FailedCreate[], created: readonly string[]): readonly RushesError[]
  /** Completes the error of a signal that kept creates back. */
  withRest?(error: RushesError, created: readonly string[], failed: readonly FailedCreate[]): RushesError
}

/** The runs of one command, with their results. */
interface Runs extends CarryOutOptions {
  readonly ctx: Context
  readonly isFollowed: boolean
  readonly timeoutMs: number | undefined
  readonly recorder: Recorder
  readonly progress: Progress
  /** Undefined if nothing is downloaded, like `namer`. */
  readonly downloader: Downloader | undefined
  readonly namer: Namer | undefined
  readonly unfinished: UnfinishedRuns
  readonly groups: ErrorGroups
  readonly downloadOrder: DownloadOrder
  readonly errors: RushesError[]
  readonly succeeded: RunRecord[]
  /** Ids of the runs that this command created. */
  readonly created: string[]
  readonly failed: FailedCreate[]
  /** Runs to mark as queued under `--local`: the local service renders only while a command waits. */
  readonly queued: string[]
  readonly startedAtMs: number
  /** Number of creates that were not sent. */
  unsent: number
  /** Number of creates without an outcome. */
  unanswered: number
  /** No further create is sent. */
  isStopped: boolean
  areCreateErrorsPrinted: boolean
  /** Resolves when all runs that can be printed are printed. */
  printed: Promise<void>
  /** Called with each run in any order. Prints them in their order. */
  settle(index: number, turn: Turn | undefined): void
}

interface Turn {
  readonly record: RunRecord
  readonly error?: RushesError | undefined
}

/** Returns the exit code. */
export async function carryOutRuns(ctx: Context, options: CarryOutOptions): Promise<number> {
  const runs = await openRuns(ctx, options)
  const { progress, recorder } = runs
  const rows = beginRows(runs)
  let interruption: Interruption | undefined
  try {
    await carryOut({
      rows,
      isLocal: ctx.globals.local,
      client: options.connection.client,
      recorder,
      clock: ctx.clock,
      random: ctx.random,
      timeoutMs: runs.timeoutMs,
      stopsCreating: (error) => stopsCreating(error) || error.code === 'interrupted',
      onGrace: () => ctx.out.note(GRACE_NOTE),
      interrupts: ctx.interrupts,
      signal: ctx.interrupts.first,
    })
    await runs.printed
    if (options.delivery.show !== undefined && runs.isFollowed) ctx.interrupts.first.throwIfAborted()
  } catch (thrown) {
    if (!(thrown instanceof Interruption)) throw thrown
    interruption = thrown
  }
  await runs.printed
  printCreateErrors(runs)
  progress.end()
  if (ctx.globals.local && runs.queued.length > 0) recorder.recordQueued(...runs.queued)
  return printEnd(runs, interruption)
}

async function openRuns(ctx: Context, options: CarryOutOptions): Promise<Runs> {
  const { connection, delivery, isFollowed = true } = options
  const { target, patience } = delivery
  const print = isFollowed ? await printerOf(ctx, delivery, connection) : printRun
  const progress = await createProgress(ctx, options.runs.length)
  const recorder = await ctx.recorder()
  const runs: Runs = {
    ...options,
    ctx,
    isFollowed,
    timeoutMs: patience === 'once' ? undefined : patience,
    recorder,
    progress,
    downloader: target && (await ctx.downloader(connection.fetch)),
    namer: target && createNamer(target),
    unfinished: createUnfinishedRuns({
      isLocal: ctx.globals.local,
      verb: patience === 'once' ? 'download' : 'wait',
      resume: (verb, ids) => resume(runs, verb, ids),
      many: options.many,
      isRemembered: (id) => recorder.find(id) !== undefined,
    }),
    groups: createErrorGroups(),
    downloadOrder: createDownloadOrder(options.runs.length),
    errors: [],
    succeeded: [],
    created: [],
    failed: [],
    queued: [],
    startedAtMs: ctx.clock.monotonic(),
    unsent: options.runs.filter((each) => !('run' in each)).length,
    unanswered: 0,
    isStopped: false,
    areCreateErrorsPrinted: false,
    printed: Promise.resolve(),
    settle: inOrder<Turn>(({ record, error }) => {
      // A line waits until the pictures before it are drawn.
      runs.printed = runs.printed.then(async () => {
        await print(ctx, record, { target, isFollowed })
        if (error !== undefined) addError(runs, error)
      })
    }),
  }
  return runs
}

/** Loads the code for pictures only if they are wanted. */
async function printerOf(ctx: Context, { show }: Delivery, { fetch }: Connection) {
  if (show === undefined) return printRun
  const { openPictures } = await import('./pictures.js')
  const pictures = await openPictures(ctx, show, fetch)
  if (pictures === undefined) return printRun
  return (_: Context, record: RunRecord, options: PrintOptions) => pictures.printRun(record, options)
}

const resume = ({ ctx, delivery }: Runs, verb: ResumeVerb, ids: readonly string[] | 'all') =>
  resumeCommand({ globals: ctx.globals, delivery: delivery.again }, verb, ids)

/** Prints the runs that are not followed. Returns a row for each other run. */
function beginRows(runs: Runs): readonly Row[] {
  const { isFollowed } = runs
  if (runs.unsent > 0) runs.progress.activity('creating the run')
  return runs.runs.flatMap((each, index) => {
    if ('run' in each && !isFollowed) runs.settle(index, { record: recordOf(each.run) })
    if ('run' in each && isFollowed) begin(runs, each.run)
    return 'run' in each && !isFollowed ? [] : [rowOf(runs, each, index)]
  })
}

function begin({ progress }: Runs, { id, state, name }: KnownRun): void {
  progress.runBegan()
  if (state !== undefined) progress.status(id, state.status, name)
}

function rowOf(runs: Runs, of: RunToCarryOut, index: number): Row {
  const { ctx, progress, delivery } = runs
  let { id } = 'run' in of ? of.run : { id: '' }
  return {
    model: ('run' in of ? of.run.model : of.model) ?? '',
    isFollowed: runs.isFollowed,
    isOnce: delivery.patience === 'once',
    ...('run' in of
      ? { run: of.run }
      : {
          request() {
            runs.unsent--
            runs.unanswered++
            return of.request()
          },
          async onSubmitted(submitted, isLast) {
            if (submitted.is === 'created') ({ id } = submitted.run)
            noteSubmitted(runs, index, submitted)
            runs.isStopped ||= isLast
            if (runs.unanswered === 0 && (runs.isStopped || runs.unsent === 0)) printCreateErrors(runs)
          },
        }),
    onStatus: (state) =>
      progress.status(id, state.status, 'run' in of ? of.run.name : undefined, progressOf(state)),
    onStatusError(error) {
      progress.activity('invalid response, trying again')
      ctx.out.debug(`${error.runId}: ${error.message}`)
    },
    errorAt: (stop, errorAtLimit) => errorOf(runs, id, stop, errorAtLimit),
    end: (run) => end(runs, index, run),
  }
}

function noteSubmitted(runs: Runs, index: number, submitted: Submitted): void {
  const { progress } = runs
  runs.unanswered--
  if (submitted.is === 'created') {
    runs.created.push(submitted.run.id)
    progress.activity(undefined)
    if (runs.isFollowed) begin(runs, submitted.run)
    else runs.settle(index, { record: recordOf(submitted.run) })
    return
  }
  if (submitted.is === 'unsent') runs.unsent++
  else {
    runs.errors.push(submitted.error)
    runs.failed.push(submitted)
  }
  runs.downloadOrder.skip(index)
  progress.runEnded()
  runs.settle(index, undefined)
}

/** Prints the errors of the creates when their number is known: runs may take minutes until they end. */
function printCreateErrors(runs: Runs): void {
  const { failed, createErrors, created } = runs
  if (failed.length === 0 || runs.areCreateErrorsPrinted) return
  runs.areCreateErrorsPrinted = true
  for (const error of createErrors?.(failed, created) ?? []) printError(runs, error)
}

function printError({ ctx }: Runs, error: RushesError): void {
  // Exit without a message: the reader of standard output has closed it.
  const isSilent = ctx.interrupts.first.aborted && error.exitCode === EXIT.stdoutClosed
  if (!isSilent) ctx.out.error(error)
}

function addError(runs: Runs, error: RushesError): void {
  runs.errors.push(error)
  // Errors of unfinished runs are printed together, at the end.
  if (!runs.unfinished.has(error) && runs.groups.add(error, undefined)) printError(runs, error)
}

function errorOf(
  { unfinished, queued, timeoutMs = 0 }: Runs,
  id: string,
  stop: StopReason,
  errorAtLimit: (limit: RushesError) => RushesError,
): RushesError {
  if (stop.is === 'not finished') return unfinished.notFinished(stop.state)
  queued.push(id)
  if (stop.is === 'signal') return unfinished.interrupted(id, stop.by)
  // If the service has returned the status of other runs, a missing response for this one is not a network error.
  return unfinished.limitPassed(id, timeoutMs, stop.isServiceAnswering ? (limit) => limit : errorAtLimit)
}

async function end(runs: Runs, index: number, run: FollowedRun): Promise<readonly Row[]> {
  const { known, state, finishedAt, elapsedMs } = run
  const error = run.error && withResumeHint(run.error, run, (verb, ids) => resume(runs, verb, ids))
  const finish = async () =>
    state?.phase === 'succeeded' && error === undefined
      ? downloadOutputs(runs, run, state)
      : { files: [], error }
  // A template numbers the outputs of all runs, so the downloads must start in the order of the runs.
  const isOrdered = runs.delivery.target?.kind === 'template'
  const outputs = await (isOrdered ? runs.downloadOrder.begin(index, finish) : finish())
  const service = state?.service ?? known.service
  const record: RunRecord = { ...recordOf(known), state, service, finishedAt, elapsedMs, ...outputs }
  runs.progress.runEnded(known.id, known.name)
  if (record.error === undefined) runs.succeeded.push(record)
  runs.settle(index, { record, error: record.error })
  return []
}

async function downloadOutputs(
  runs: Runs,
  { known, finishedAt, elapsedMs }: FollowedRun,
  state: RunState,
): Promise<{ readonly files: readonly DownloadedFile[]; readonly error: RushesError | undefined }> {
  const { ctx, connection, recorder, progress, namer, downloader } = runs
  const { target, overwrite, sidecar } = runs.delivery
  if (target === undefined || downloader === undefined) return { files: [], error: undefined }
  const { id, kind } = known
  const record = inSharedCommits((files) => recorder.recordFiles(id, files))
  const { files, warnings, errors, thrown } = await deliver({
    client: connection.client,
    clock: ctx.clock,
    downloader,
    state,
    run: { kind },
    target,
    namer,
    mayReplace: () => overwrite,
    earlier: recorder.filesOf(id),
    stdout: target.kind === 'stdout' ? ctx.stdout : undefined,
    signal: ctx.interrupts.first,
    onProgress: (transfer) => progress.transfer(id, transfer),
    async beforeMove(file) {
      // Record the file before it is renamed: if this command is killed, the next one recognizes it by its bytes.
      if (target.kind !== 'stdout') await record(file)
      return undefined
    },
  })
  for (const warning of warnings) ctx.out.warn(warning)
  const address = await ctx.address()
  const sidecars =
    sidecar && thrown === undefined
      ? await writeSidecars(files, { known, state, address, overwrite, finishedAt, elapsedMs })
      : []
  const hint = `Download its outputs with \`${resume(runs, 'download', [id])}\`.`
  return { files, error: deliveryError({ errors: [...errors, ...sidecars], thrown }, id, hint) }
}

/** Prints the errors that concern several runs, and the summary. Returns the exit code. */
function printEnd(runs: Runs, interruption: Interruption | undefined): number {
  const { errors, groups, unfinished, unsent, withRest, created, failed } = runs
  const completed = (error: RushesError) =>
    error.code === 'interrupted' && unsent > 0 ? (withRest?.(error, created, failed) ?? error) : error
  for (const repeated of groups.repeated()) printError(runs, repeatedRuns(repeated))
  for (const error of unfinished.report()) printError(runs, completed(error))
  if (interruption === undefined) printSummary(runs)
  else if (!errors.some(({ code }) => code === 'interrupted'))
    addError(runs, completed(interrupted(interruption)))
  if (!runs.isFollowed && runs.ctx.globals.local) noteQueued(runs)
  return exitCodeOf(errors)
}

function printSummary({ ctx, runs, isFollowed, succeeded, startedAtMs }: Runs): void {
  if (succeeded.length === 0 || ctx.stderr.isTTY !== true || !isFollowed) return
  const files = succeeded.flatMap((record) => record.files)
  const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
  const done = runs.length === 1 ? 'Done' : `${succeeded.length} of ${runs.length} runs done`
  const downloaded = files.length === 0 ? '' : `: ${plural(files.length, 'file')} (${formatBytes(bytes)})`
  ctx.out.note(`${done} in ${formatSeconds(ctx.clock.monotonic() - startedAtMs)}${downloaded}`)
}

/** A local run is rendered only while a command waits for it; a model of a provider is paid then. */
function noteQueued({ ctx: { out, globals }, created: ids, recorder }: Runs): void {
  const [only] = ids
  if (only === undefined) return
  const rows = ids.map((id) => recorder.find(id))
  const paid = rows.some((row) => row !== undefined && !isFree(row))
    ? ', which its provider charges for,'
    : ''
  const wait = (runs: readonly string[] | 'all') => resumeCommand({ globals, delivery: [] }, 'wait', runs)
  out.note(
    ids.length === 1
      ? `${only} is queued. Render it${paid} with \`${wait([only])}\`.`
      : `${ids.length} runs are queued. Render them${paid} with \`${wait('all')}\`.`,
  )
}

interface DownloadOrder {
  /** Starts the work once the work of each earlier run has started or was skipped. */
  begin<Result>(index: number, work: () => Promise<Result>): Promise<Result>
  skip(index: number): void
}

/** Starts downloads in the order of the runs, because file names are numbered across all runs of a command. */
function createDownloadOrder(runs: number): DownloadOrder {
  const begun = Array.from({ length: runs }, () => {
    let resolve = () => {}
    const promise = new Promise<void>((settle) => {
      resolve = settle
    })
    return { promise, resolve }
  })
  return {
    async begin(index, work) {
      await begun[index - 1]?.promise
      const result = work()
      begun[index]?.resolve()
      return result
    },
    skip: (index) => begun[index]?.resolve(),
  }
}
