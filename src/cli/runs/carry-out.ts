/**
 * Carries out the runs of `run`, `wait` and `download`, and prints what the engine says of them: the runs in order, equal
 * errors folded, the exit code.
 */
import { Namer } from '../../download/file-names.js'
import { EXIT, type RushesError } from '../../errors.js'
import { interrupted } from '../../host/interrupts.js'
import type { Policy } from '../../journal/index.js'
import type { DownloadedFile } from '../../protocol/media.js'
import { progressOf } from '../../protocol/parse.js'
import { formatBytes } from '../../protocol/units.js'
import { deliver, deliveryError } from '../../runs/deliver.js'
import type {
  CreateRequest,
  Delivery as Delivered,
  KnownRun,
  Result,
  Row,
  Run,
  RunsSession,
} from '../../runs/run.js'
import { carryOut, type RunEvent, stopsCreating } from '../../runs/schedule.js'
import type { Connection, Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import { exitCodeOf } from '../process/exit.js'
import { createErrorGroups, type ErrorGroups } from '../terminal/error-groups.js'
import { formatSeconds, GRACE_NOTE, plural } from '../terminal/format.js'
import { createProgress, type Progress } from '../terminal/progress.js'
import type { RunRecord } from '../terminal/run-json.js'
import { repeatedRuns } from './folded-errors.js'
import { isFree } from './journal-rows.js'
import { createRepeatedIds, inOrder, type PrintOptions, printRun, recordOf } from './print-run.js'
import { type ResumeMany, type ResumeVerb, resumeCommand, UnfinishedRuns, withResumeHint } from './resume.js'
import { writeSidecars } from './sidecar.js'

/** An existing run, or one to create first. */
export type RunToCarryOut = { readonly run: KnownRun } | { request(): Promise<CreateRequest> }

/** A create that was refused, or whose outcome is unknown. */
export type FailedCreate = Extract<Result, { is: 'refused' | 'unconfirmed' }>

/** What a session of `rushes mcp` adds to a command that it runs. */
export interface Observer {
  /** Whether a create may be sent whose intent cannot be written. */
  readonly policy: Policy
  /** Aborted: no further create is sent. */
  readonly noCreates: AbortSignal
  /** Called with each event, before it is printed. */
  see(event: RunEvent): void
}

export interface CarryOutOptions {
  readonly connection: Connection
  readonly delivery: Delivery
  readonly runs: readonly RunToCarryOut[]
  /** Whether to wait for the runs. If false, they are printed as soon as they exist. Default: true. */
  readonly isFollowed?: boolean
  /** How to resume when there are many runs. */
  readonly many: ResumeMany
  readonly observer?: Observer | undefined
  /** Returns the errors to print for the creates that failed. Called when no further create will be sent. */
  createErrors?(failed: readonly FailedCreate[], created: number): readonly RushesError[]
  /** Completes the error of a signal that kept creates back. */
  withRest?(error: RushesError, created: number, failed: readonly FailedCreate[]): RushesError
}

/** Returns the exit code. */
export async function carryOutRuns(ctx: Context, options: CarryOutOptions): Promise<number> {
  const { connection, delivery, runs, isFollowed = true, observer } = options
  const journal = await ctx.openJournal()
  const session: RunsSession = {
    client: connection.client,
    journal,
    policy: observer?.policy ?? 'best effort',
    address: await ctx.address(),
    profile: ctx.profileName,
    clock: ctx.clock,
    random: ctx.random,
    interrupts: ctx.interrupts,
    timeoutMs: delivery.patience === 'once' ? undefined : delivery.patience,
    isOnce: delivery.patience === 'once',
    isFollowed,
    noCreates: observer?.noCreates,
    stopsCreates: (error) => stopsCreating(error) || error.code === 'interrupted',
  }
  const progress = await createProgress(ctx, runs.length)
  const printer = new RunPrinter(ctx, options, session, progress, await printerOf(ctx, options))
  const rows = await rowsOf(ctx, options, session, printer)
  for await (const event of carryOut(rows, session)) {
    observer?.see(event)
    await printer.see(event)
  }
  return printer.end()
}

/** Loads the code for pictures only if they are wanted. */
async function printerOf(
  ctx: Context,
  { delivery: { show }, connection: { fetch }, isFollowed = true }: CarryOutOptions,
) {
  if (show === undefined || !isFollowed) return printRun
  const { openPictures } = await import('./pictures.js')
  const pictures = await openPictures(ctx, show, fetch)
  if (pictures === undefined) return printRun
  return (_: Context, record: RunRecord, options: PrintOptions) => pictures.printRun(record, options)
}

async function rowsOf(
  ctx: Context,
  { runs, connection, delivery }: CarryOutOptions,
  session: RunsSession,
  printer: RunPrinter,
): Promise<readonly Row[]> {
  const { target, overwrite, sidecar } = delivery
  const downloader = target && (await ctx.downloader(connection.fetch))
  const namer = target && new Namer(target)
  /** A template numbers the outputs of all runs, so the downloads must start in the order of the runs. */
  const inTurn = target?.kind === 'template' ? printer.turns : undefined

  async function download(run: Run): Promise<Delivered> {
    const { known = { id: run.id }, state } = run
    if (target === undefined || downloader === undefined || state === undefined)
      return { files: [], warnings: [], error: undefined }
    const hint = `Download its outputs with \`${printer.resume('download', [run.id])}\`.`
    const delivered = await deliver(session, state, {
      downloader,
      run: { kind: known.kind },
      row: known.row,
      target,
      hint,
      stdout: target.kind === 'stdout' ? ctx.stdout : undefined,
      mayReplace: () => overwrite,
      namesFor: async (urls, from) =>
        namer?.name(urls.slice(from).map(() => ({ runId: run.id, kind: known.kind }))),
      onProgress: (transfer) => printer.progress.transfer(run.id, transfer),
    })
    const { files, warnings } = delivered
    if (!sidecar || session.interrupts.first.aborted) return delivered
    const { address } = session
    const { finishedAt, elapsedMs } = run
    const errors = await writeSidecars(files, { known, state, address, overwrite, finishedAt, elapsedMs })
    return { files, warnings, error: delivered.error ?? deliveryError(errors, hint, run.id) }
  }

  return runs.map((each, index) => ({
    name: String(index),
    begin: () =>
      'run' in each ? { is: 'follow', run: each.run } : { is: 'create', request: () => each.request() },
    ...(target !== undefined && {
      deliver: (run) => (inTurn === undefined ? download(run) : inTurn.begin(index, () => download(run))),
    }),
  }))
}

interface Turn {
  readonly record: RunRecord
  readonly error?: RushesError | undefined
}

class RunPrinter {
  readonly progress: Progress
  readonly turns: DownloadOrder
  readonly #ctx: Context
  readonly #options: CarryOutOptions
  readonly #session: RunsSession
  readonly #unfinished: UnfinishedRuns
  readonly #groups: ErrorGroups = createErrorGroups()
  readonly #errors: RushesError[] = []
  readonly #succeeded: RunRecord[] = []
  /** Ids of the runs that this command has created. */
  readonly #created: string[] = []
  readonly #failed: FailedCreate[] = []
  /** Runs to mark as queued under `--local`: the local service renders only while a command waits. */
  readonly #queued: string[] = []
  readonly #startedAtMs: number
  readonly #warnOfRepeated: (run: Run) => void
  readonly #positions = new Map<string, number>()
  /** Number of creates without an outcome. */
  #open: number
  #unsent = 0
  /** Resolves when all runs that can be printed are printed. */
  #printed: Promise<void> = Promise.resolve()
  /** Called with each run in any order. Prints them in their order. */
  readonly #settle: (index: number, turn: Turn | undefined) => void

  constructor(
    ctx: Context,
    options: CarryOutOptions,
    session: RunsSession,
    progress: Progress,
    print: (ctx: Context, record: RunRecord, options: PrintOptions) => void | Promise<void>,
  ) {
    const { runs, delivery, many, isFollowed = true } = options
    this.#ctx = ctx
    this.#options = options
    this.#session = session
    this.progress = progress
    this.turns = createDownloadOrder(runs.length)
    this.#startedAtMs = ctx.clock.monotonic()
    this.#warnOfRepeated = createRepeatedIds(ctx)
    this.#open = runs.filter((each) => !('run' in each)).length
    this.#unfinished = new UnfinishedRuns({
      isLocal: ctx.globals.local,
      verb: delivery.patience === 'once' ? 'download' : 'wait',
      resume: (verb, ids) => this.resume(verb, ids),
      many,
      isRemembered: (id) => this.#row(id) !== undefined,
      positionOf: (id) => this.#positions.get(id) ?? 0,
    })
    this.#settle = inOrder<Turn>(({ record, error }) => {
      // A line waits until the pictures before it are drawn.
      this.#printed = this.#printed.then(async () => {
        await print(ctx, record, { target: delivery.target, isFollowed })
        if (error !== undefined) this.#addError(error)
      })
    })
    if (this.#open > 0) progress.activity('creating the run')
    for (const each of runs) if ('run' in each) progress.runBegan()
  }

  resume(verb: ResumeVerb, ids: readonly string[] | 'all'): string {
    return resumeCommand({ globals: this.#ctx.globals, delivery: this.#options.delivery.again }, verb, ids)
  }

  async see(event: RunEvent): Promise<void> {
    const { progress } = this
    if (event.is === 'unanswered') this.#ctx.out.note(GRACE_NOTE)
    else if (event.is === 'created') this.#noteCreated(event.run)
    else if (event.is === 'status') {
      const { known, id } = event.run
      progress.status(id, event.state.status, known?.name, progressOf(event.state))
    } else if (event.is === 'error') {
      progress.activity('invalid response, trying again')
      this.#ctx.out.debug(`${event.run.id}: ${event.error.message}`)
    } else this.#ended(event.run, event.result)
    await this.#printed
  }

  /** Prints the errors that concern several runs, and the summary. Returns the exit code. */
  async end(): Promise<number> {
    const { first } = this.#ctx.interrupts
    await this.#printed
    this.#printCreateErrors()
    this.progress.end()
    // A session of `rushes mcp` renders on.
    if (this.#ctx.globals.local && this.#options.observer === undefined && this.#queued.length > 0)
      this.#session.journal?.queued(this.#session.address, this.#queued)
    for (const repeated of this.#groups.repeated()) this.#printError(repeatedRuns(repeated))
    for (const error of this.#unfinished.report()) this.#printError(this.#completed(error))
    if (!first.aborted) this.#printSummary()
    else if (!this.#errors.some(({ code }) => code === 'interrupted'))
      this.#addError(this.#completed(interrupted(first.reason)))
    if (this.#options.isFollowed === false && this.#ctx.globals.local) this.#noteQueued()
    return exitCodeOf(this.#errors)
  }

  #row(id: string) {
    // A row that cannot be read is not remembered.
    const { journal, address } = this.#session
    return journal?.tryRead(() => journal.find(address, id))
  }

  #noteCreated(run: Run): void {
    this.#created.push(run.id)
    this.#warnOfRepeated(run)
    this.#open--
    this.progress.activity(undefined)
    if (this.#options.isFollowed !== false) this.progress.runBegan()
    this.#printCreateErrorsOnce()
  }

  #ended(run: Run, result: Result): void {
    const { progress, turns } = this
    turns.skip(run.index)
    if (run.known === undefined) {
      this.#open--
      if (result.is === 'refused' || result.is === 'unconfirmed') {
        const failed = { ...result, error: withKeyHint(result) }
        this.#errors.push(failed.error)
        this.#failed.push(failed)
      } else this.#unsent++
      progress.runEnded()
      this.#settle(run.index, undefined)
      this.#printCreateErrorsOnce()
      return
    }
    this.#positions.set(run.id, run.index)
    const { known, state, finishedAt, elapsedMs } = run
    const error = this.#errorOf(run, result)
    const delivery = 'delivery' in result ? result.delivery : undefined
    for (const warning of delivery?.warnings ?? []) this.#ctx.out.warn(warning)
    const files: readonly DownloadedFile[] = delivery?.files ?? []
    const service = state?.service ?? known.service
    const record: RunRecord = {
      ...recordOf(known),
      ...{ state, service, files, error, finishedAt },
      elapsedMs: elapsedMs ?? (result.is === 'created' ? known.elapsedMs : undefined),
    }
    if (result.is !== 'created') progress.runEnded(known.id, known.name)
    if (error === undefined) this.#succeeded.push(record)
    this.#settle(run.index, { record, error })
  }

  #errorOf(run: Run, result: Result): RushesError | undefined {
    const { id } = run
    const { patience = 0 } = this.#options.delivery
    if (result.is === 'undelivered') return result.error
    if (result.is === 'failed')
      return withResumeHint(result.error, run, (verb, ids) => this.resume(verb, ids))
    if (result.is !== 'running') return undefined
    if (result.why === 'not finished')
      return this.#unfinished.add(id, { why: 'not finished', status: run.state?.status })
    this.#queued.push(id)
    if (result.why === 'signal')
      return this.#unfinished.add(id, { why: 'signal', reason: this.#ctx.interrupts.first.reason })
    if (result.error !== undefined)
      return withResumeHint(result.error, run, (verb, ids) => this.resume(verb, ids))
    return this.#unfinished.add(id, { why: 'time limit', timeoutMs: patience === 'once' ? 0 : patience })
  }

  #completed(error: RushesError): RushesError {
    if (error.code !== 'interrupted' || this.#unsent === 0) return error
    return this.#options.withRest?.(error, this.#created.length, this.#failed) ?? error
  }

  /** Prints the errors of the creates when their number is known: runs may take minutes until they end. */
  #printCreateErrorsOnce(): void {
    if (this.#open === 0) this.#printCreateErrors()
  }

  #areCreateErrorsPrinted = false
  #printCreateErrors(): void {
    if (this.#failed.length === 0 || this.#areCreateErrorsPrinted) return
    this.#areCreateErrorsPrinted = true
    for (const error of this.#options.createErrors?.(this.#failed, this.#created.length) ?? [])
      this.#printError(error)
  }

  #printError(error: RushesError): void {
    // Exit without a message: the reader of standard output has closed it.
    const isSilent = this.#ctx.interrupts.first.aborted && error.exitCode === EXIT.stdoutClosed
    if (!isSilent) this.#ctx.out.error(error)
  }

  #addError(error: RushesError): void {
    this.#errors.push(error)
    // Errors of unfinished runs are printed together, at the end.
    if (!this.#unfinished.has(error) && this.#groups.add(error, undefined)) this.#printError(error)
  }

  #printSummary(): void {
    const { clock, out, stderr } = this.#ctx
    const { runs, isFollowed = true } = this.#options
    if (this.#succeeded.length === 0 || stderr.isTTY !== true || !isFollowed) return
    const files = this.#succeeded.flatMap((record) => record.files)
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
    const done = runs.length === 1 ? 'Done' : `${this.#succeeded.length} of ${runs.length} runs done`
    const downloaded = files.length === 0 ? '' : `: ${plural(files.length, 'file')} (${formatBytes(bytes)})`
    out.note(`${done} in ${formatSeconds(clock.monotonic() - this.#startedAtMs)}${downloaded}`)
  }

  /** A local run is rendered only while a command waits for it; a model of a provider is paid then. */
  #noteQueued(): void {
    const { out, globals } = this.#ctx
    const ids = this.#created
    const [only] = ids
    if (only === undefined) return
    const isPaid = ids.some((id) => {
      const row = this.#row(id)
      return row !== undefined && !isFree(row)
    })
    const paid = isPaid ? ', which its provider charges for,' : ''
    const wait = (runs: readonly string[] | 'all') => resumeCommand({ globals, delivery: [] }, 'wait', runs)
    out.note(
      ids.length === 1
        ? `${only} is queued. Render it${paid} with \`${wait([only])}\`.`
        : `${ids.length} runs are queued. Render them${paid} with \`${wait('all')}\`.`,
    )
  }
}

/** Adds how to find and remove the row of a create whose outcome is unknown. */
export function withKeyHint(result: FailedCreate): RushesError {
  const { error } = result
  if (result.is === 'refused' || result.key === undefined) return error
  return error.with({
    hint:
      `${error.hint} The journal keeps it as ${result.key}: see it with \`rushes show '${result.key}'\`, remove it with ` +
      `\`rushes forget '${result.key}' --yes\`.`,
  })
}

interface DownloadOrder {
  /** Starts the work once the work of each earlier run has started or was skipped. */
  begin<Value>(index: number, work: () => Promise<Value>): Promise<Value>
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
