/** Prints the runs of `run`, `wait` and `download`: in order, equal errors folded, with the exit code. */
import type { Target } from '../../download/file-names.js'
import { EXIT, RushesError } from '../../errors.js'
import { interrupted } from '../../host/interrupts.js'
import type { Journal } from '../../journal/index.js'
import { progressOf } from '../../protocol/parse.js'
import { printable } from '../../protocol/text.js'
import { formatBytes } from '../../protocol/units.js'
import type { Result, Run } from '../../runs/run.js'
import type { RunEvent } from '../../runs/schedule.js'
import type { Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import { exitCodeOf } from '../process/exit.js'
import { createErrorGroups, type RepeatedError } from '../terminal/error-groups.js'
import { formatSeconds, GRACE_NOTE, plural } from '../terminal/format.js'
import type { Progress } from '../terminal/progress.js'
import { type RunRecord, runJson } from '../terminal/run-json.js'
import { type Creates, createErrors, type FailedCreate, withRest } from './create-errors.js'
import {
  type Left,
  type LeftOptions,
  leftError,
  type ResumeMany,
  resumeCommand,
  withResumeHint,
} from './resume.js'

export interface PrintOptions {
  readonly target: Target | undefined
  /** Whether the command waited for the run. */
  readonly isFollowed: boolean
}

export function printRun({ out }: Context, record: RunRecord, options: PrintOptions): void {
  if (out.mode.json) out.json(runJson(record))
  else for (const line of linesOf(record, options)) out.line(printable(line))
}

/** The id, the paths of the files, or the URLs. */
export function linesOf(record: RunRecord, { target, isFollowed }: PrintOptions): readonly string[] {
  if (!isFollowed) return [record.id]
  if (target?.kind === 'stdout') return []
  if (target !== undefined) return record.files.map(({ path }) => path)
  return record.state?.phase === 'succeeded' ? record.state.urls : []
}

/** Returns a function to call once with each item, with its index counted from 0. */
export function inOrder<Item>(print: (item: Item) => void): (index: number, item: Item | undefined) => void {
  const waiting = new Map<number, Item | undefined>()
  let next = 0
  return (index, item) => {
    waiting.set(index, item)
    for (; waiting.has(next); next++) {
      const ready = waiting.get(next)
      waiting.delete(next)
      if (ready !== undefined) print(ready)
    }
  }
}

/** Warns once if the service gives one id to two creates: there is one run, and one set of outputs. */
export function createRepeatedIds({ out }: Context): (run: Run) => void {
  let isWarned = false
  return ({ isRepeated, id }) => {
    if (!isRepeated || isWarned) return
    isWarned = true
    out.warn(
      `The service gave one id to two creates: ${printable(id)}. Both may be charged, but there is one run.`,
    )
  }
}

/** Maximum number of ids that are listed. */
const MAX_LISTED = 10

/** One error for the further runs with the same error as one that was printed before. */
export function repeatedRuns({ error, more }: RepeatedError<undefined>): RushesError {
  const [only, ...others] = more
  if (only !== undefined && others.length === 0) return only.error
  const ids = more.flatMap((each) => each.error.runId ?? [])
  const listed = ids.length <= MAX_LISTED ? `Their ids: ${ids.join(' ')}` : '`rushes list` shows their ids.'
  return new RushesError(error.code, `${plural(more.length, 'more run')}: ${error.message}`, {
    hint: ids.length === 0 ? undefined : listed,
    exitCode: error.exitCode,
    httpStatus: error.httpStatus,
    cause: error,
  })
}

export interface PrinterOptions {
  readonly delivery: Delivery
  readonly runs: number
  /** Runs to create first. Undefined: the runs exist. */
  readonly creates: Creates | undefined
  readonly isFollowed: boolean
  readonly many: ResumeMany
  readonly journal: Journal
  readonly address: string
  readonly progress: Progress
  print(ctx: Context, record: RunRecord, options: PrintOptions): void | Promise<void>
}

interface Turn {
  readonly record: RunRecord
  readonly error: RushesError | undefined
}

export class RunPrinter {
  readonly #ctx: Context
  readonly #options: PrinterOptions
  readonly #leftOptions: LeftOptions
  readonly #left = new Map<Left['why'], { readonly left: Left; readonly runs: Run[] }>()
  /** Errors of runs that are left: printed together, at the end. */
  readonly #late = new Set<RushesError>()
  readonly #groups = createErrorGroups()
  readonly #errors: RushesError[] = []
  readonly #succeeded: RunRecord[] = []
  /** Ids of the runs that this command has created. */
  readonly #created: string[] = []
  readonly #failed: FailedCreate[] = []
  /** Runs to mark as queued under `--local`: the local service renders only while a command waits. */
  readonly #queued: string[] = []
  readonly #startedAtMs: number
  readonly #warnOfRepeated: (run: Run) => void
  /** Number of creates without an outcome. */
  #open: number
  #unsent = 0
  #areCreateErrorsPrinted = false
  /** Resolves when all runs that can be printed are printed. */
  #printed: Promise<void> = Promise.resolve()
  /** Called with each run in any order. Prints them in their order. */
  readonly #settle: (index: number, turn: Turn | undefined) => void

  constructor(ctx: Context, options: PrinterOptions) {
    const { runs, creates, delivery, many, progress, isFollowed } = options
    this.#ctx = ctx
    this.#options = options
    this.#leftOptions = {
      isLocal: ctx.globals.local,
      verb: delivery.patience === 'once' ? 'download' : 'wait',
      many,
      resume: (verb, ids) => resumeCommand({ globals: ctx.globals, delivery: delivery.again }, verb, ids),
    }
    this.#startedAtMs = ctx.clock.monotonic()
    this.#warnOfRepeated = createRepeatedIds(ctx)
    this.#open = creates?.count ?? 0
    this.#settle = inOrder<Turn>(({ record, error }) => {
      // A line waits until the pictures before it are drawn.
      this.#printed = this.#printed.then(async () => {
        await options.print(ctx, record, { target: delivery.target, isFollowed })
        if (error !== undefined) this.#addError(error)
      })
    })
    if (this.#open > 0) progress.activity('creating the run')
    else for (let run = 0; run < runs; run++) progress.runBegan()
  }

  /** Number of creates that were accepted, or whose outcome is unknown. */
  get sent(): number {
    return this.#created.length + this.#failed.filter(({ is }) => is === 'unconfirmed').length
  }

  downloadCommand(id: string): string {
    return this.#leftOptions.resume('download', [id])
  }

  async see(event: RunEvent): Promise<void> {
    const { progress } = this.#options
    if (event.is === 'unanswered') this.#ctx.out.note(GRACE_NOTE)
    else if (event.is === 'created') this.#seeCreated(event.run)
    else if (event.is === 'status') {
      const { known, id } = event.run
      progress.status(id, event.state.status, known?.name, progressOf(event.state))
    } else if (event.is === 'error') {
      progress.activity('invalid response, trying again')
      this.#ctx.out.debug(`${event.run.id}: ${event.error.message}`)
    } else this.#seeEnded(event.run, event.result)
    await this.#printed
  }

  #seeCreated(run: Run): void {
    const { progress, isFollowed } = this.#options
    this.#created.push(run.id)
    this.#warnOfRepeated(run)
    this.#open--
    progress.activity(undefined)
    if (isFollowed) progress.runBegan()
    this.#printCreateErrors()
  }

  #seeEnded(run: Run, result: Result): void {
    const { progress } = this.#options
    const { known, state, finishedAt, elapsedMs } = run
    if (known === undefined) {
      this.#open--
      if (result.is === 'refused' || result.is === 'unconfirmed') {
        this.#failed.push(result)
        this.#errors.push(result.error)
      } else this.#unsent++
      progress.runEnded()
      this.#settle(run.index, undefined)
      this.#printCreateErrors()
      return
    }
    const { id, kind, model, createdAt } = known
    const error = this.#errorOf(run, result)
    const { files = [], warnings = [] } = ('delivery' in result && result.delivery) || {}
    for (const warning of warnings) this.#ctx.out.warn(warning)
    const record: RunRecord = {
      id,
      kind,
      model,
      state,
      service: state?.service ?? known.service,
      files,
      error,
      createdAt,
      finishedAt,
      elapsedMs: elapsedMs ?? (result.is === 'created' ? known.elapsedMs : undefined),
    }
    if (result.is !== 'created') progress.runEnded(id, known.name)
    if (error === undefined) this.#succeeded.push(record)
    this.#settle(run.index, { record, error })
  }

  #errorOf(run: Run, result: Result): RushesError | undefined {
    const { patience = 0 } = this.#options.delivery
    if (result.is === 'undelivered') return result.error
    if (result.is === 'failed') return withResumeHint(result.error, run, this.#leftOptions)
    if (result.is !== 'running') return undefined
    if (result.why === 'not finished') return this.#leave(run, { why: result.why })
    this.#queued.push(run.id)
    if (result.why === 'signal')
      return this.#leave(run, { why: result.why, reason: this.#ctx.interrupts.first.reason })
    if (result.error !== undefined) return withResumeHint(result.error, run, this.#leftOptions)
    return this.#leave(run, { why: result.why, timeoutMs: patience === 'once' ? 0 : patience })
  }

  #leave(run: Run, left: Left): RushesError {
    const { runs } = this.#left.get(left.why) ?? { runs: [] }
    this.#left.set(left.why, { left, runs: [...runs, run] })
    const error = leftError(left, [run], this.#leftOptions)
    this.#late.add(error)
    return error
  }

  /** Prints the errors that concern several runs, and the summary. Returns the exit code. */
  async end(): Promise<number> {
    const { progress, journal, address, isFollowed } = this.#options
    const { interrupts, globals } = this.#ctx
    await this.#printed
    this.#open = 0
    this.#printCreateErrors()
    progress.end()
    if (globals.local && this.#queued.length > 0) journal.queued(address, this.#queued)
    for (const repeated of this.#groups.repeated()) this.#printError(repeatedRuns(repeated))
    for (const { left, runs } of this.#left.values()) {
      const inTheirOrder = runs.sort((one, other) => one.index - other.index)
      this.#printError(this.#withRest(leftError(left, inTheirOrder, this.#leftOptions)))
    }
    const { first } = interrupts
    if (!first.aborted) this.#printSummary()
    else if (!this.#errors.some(({ code }) => code === 'interrupted'))
      this.#addError(this.#withRest(interrupted(first.reason)))
    if (globals.local && !isFollowed) this.#noteQueued()
    return exitCodeOf(this.#errors)
  }

  /** Completes the error of a signal that kept creates back. */
  #withRest(error: RushesError): RushesError {
    const { creates } = this.#options
    if (error.code !== 'interrupted' || this.#unsent === 0 || creates === undefined) return error
    return withRest(error, creates, this.#created.length, this.#failed)
  }

  /** Prints the errors of the creates when their number is known: runs may take minutes until they end. */
  #printCreateErrors(): void {
    const { creates } = this.#options
    if (this.#open > 0 || creates === undefined || this.#areCreateErrorsPrinted) return
    this.#areCreateErrorsPrinted = true
    for (const error of createErrors(creates, this.#created.length, this.#failed)) this.#printError(error)
  }

  #printError(error: RushesError): void {
    // Exit without a message: the reader of standard output has closed it.
    const isSilent = this.#ctx.interrupts.first.aborted && error.exitCode === EXIT.stdoutClosed
    if (!isSilent) this.#ctx.out.error(error)
  }

  #addError(error: RushesError): void {
    this.#errors.push(error)
    if (!this.#late.has(error) && this.#groups.add(error, undefined)) this.#printError(error)
  }

  #printSummary(): void {
    const { clock, out, stderr } = this.#ctx
    const { runs, isFollowed } = this.#options
    if (this.#succeeded.length === 0 || stderr.isTTY !== true || !isFollowed) return
    const files = this.#succeeded.flatMap((record) => record.files)
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
    const done = runs === 1 ? 'Done' : `${this.#succeeded.length} of ${runs} runs done`
    const downloaded = files.length === 0 ? '' : `: ${plural(files.length, 'file')} (${formatBytes(bytes)})`
    out.note(`${done} in ${formatSeconds(clock.monotonic() - this.#startedAtMs)}${downloaded}`)
  }

  #noteQueued(): void {
    const { out, globals } = this.#ctx
    const ids = this.#created
    const [only, ...others] = ids
    if (only === undefined) return
    const wait = resumeCommand({ globals, delivery: [] }, 'wait', others.length === 0 ? ids : 'all')
    const subject = others.length === 0 ? `${only} is` : `${ids.length} runs are`
    out.note(`${subject} queued. Render ${others.length === 0 ? 'it' : 'them'} with \`${wait}\`.`)
  }
}
