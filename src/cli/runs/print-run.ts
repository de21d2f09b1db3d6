/** Prints the runs of `run`, `wait` and `download`: in their order, equal errors folded, with the exit code. */
import type { Target } from '../../download/file-names.js'
import { EXIT, type RushesError } from '../../errors.js'
import { interrupted } from '../../host/interrupts.js'
import { printable } from '../../protocol/text.js'
import { formatBytes } from '../../protocol/units.js'
import type { Result, Run } from '../../runs/run.js'
import type { RunEvent } from '../../runs/schedule.js'
import type { Context } from '../context/context.js'
import { exitCodeOf } from '../process/exit.js'
import { formatSeconds, plural } from '../terminal/format.js'
import { type RunRecord, runJson } from '../terminal/run-json.js'
import { ErrorGroups } from './error-groups.js'
import { type Leaving, type Left, leftError, resumeCommand, withResumeHint } from './resume.js'

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

/** Puts items that come in any order into the order of their indexes, counted from 0. */
export class InOrder<Item> {
  readonly #waiting = new Map<number, Item | undefined>()
  #next = 0

  /** Call it once with each index. Returns the items whose turn has come. */
  add(index: number, item: Item | undefined): readonly Item[] {
    this.#waiting.set(index, item)
    const ready: Item[] = []
    for (; this.#waiting.has(this.#next); this.#next++) {
      const each = this.#waiting.get(this.#next)
      this.#waiting.delete(this.#next)
      if (each !== undefined) ready.push(each)
    }
    return ready
  }
}

export interface PrinterOptions extends Leaving {
  /** Number of runs of the command. */
  readonly runs: number
  /** Whether the runs cost nothing. */
  readonly isFree: boolean
  readonly isFollowed: boolean
  print(ctx: Context, record: RunRecord, options: PrintOptions): void | Promise<void>
}

/** A run that is printed when those before it are. */
interface Turn {
  readonly record: RunRecord
  /** Whether its error is printed at the end, with those of other runs. */
  readonly isLeft: boolean
}

export class RunPrinter {
  readonly #options: PrinterOptions
  readonly #creates: CreateErrors | undefined
  readonly #turns = new InOrder<Turn>()
  readonly #groups = new ErrorGroups()
  /** All errors of runs and creates. They decide the exit code. */
  readonly #errors: RushesError[] = []
  readonly #left = new Map<Left, Run[]>()
  readonly #succeeded: RunRecord[] = []
  /** Ids of the runs that this command has created. */
  readonly #created: string[] = []
  readonly #startedAtMs: number

  constructor(options: PrinterOptions) {
    const { ctx, creates, runs, isFree } = options
    this.#options = options
    this.#startedAtMs = ctx.clock.monotonic()
    this.#creates = creates ? new CreateErrors(runs, isFree) : undefined
  }

  /** Number of creates that were accepted, or whose outcome is unknown. */
  get sent(): number {
    return this.#creates?.sent ?? 0
  }

  async see(event: RunEvent): Promise<void> {
    if (event.is === 'created') {
      this.#created.push(event.run.id)
      this.#printAll(this.#creates?.accepted())
    } else if (event.is === 'ended') await this.#seeEnded(event.run, event.result)
  }

  async #seeEnded(run: Run, result: Result): Promise<void> {
    const { ctx, delivery, isFollowed, print } = this.#options
    if (run.known === undefined) {
      if (result.is === 'refused' || result.is === 'unconfirmed') this.#errors.push(result.error)
      this.#printAll(this.#creates?.ended(result))
    }
    const turn = run.known && this.#turnOf(run, run.known, result)
    // A line waits until the pictures before it are drawn.
    for (const { record, isLeft } of this.#turns.add(run.index, turn)) {
      await print(ctx, record, { target: delivery.target, isFollowed })
      if (record.error === undefined) continue
      this.#errors.push(record.error)
      if (!isLeft && this.#groups.add(record.error)) this.#print(record.error)
    }
  }

  #turnOf(run: Run, known: NonNullable<Run['known']>, result: Result): Turn {
    const { state, finishedAt } = run
    const { id, kind, model, createdAt } = known
    const { files = [], warnings = [] } = ('delivery' in result && result.delivery) || {}
    for (const warning of warnings) this.#options.ctx.out.warn(warning)
    const isLeft = result.is === 'running' && result.error === undefined
    const error = this.#errorOf(run, result)
    const elapsedMs = run.elapsedMs ?? (result.is === 'created' ? known.elapsedMs : undefined)
    const service = state?.service ?? known.service
    const record = { id, kind, model, state, service, files, error, createdAt, finishedAt, elapsedMs }
    if (error === undefined) this.#succeeded.push(record)
    return { record, isLeft }
  }

  #errorOf(run: Run, result: Result): RushesError | undefined {
    if (result.is === 'undelivered') return result.error
    if (result.is !== 'running' && result.is !== 'failed') return undefined
    if (result.error !== undefined) return withResumeHint(result.error, run, this.#options)
    if (result.is === 'failed') return undefined
    this.#left.set(result.why, [...(this.#left.get(result.why) ?? []), run])
    return leftError(result.why, [run], this.#options)
  }

  /** Prints the errors that concern several runs, and the summary. Returns the exit code. */
  end(): number {
    const { ctx, isFollowed } = this.#options
    const { first } = ctx.interrupts
    this.#printAll(this.#groups.repeated())
    for (const [why, runs] of this.#left) {
      const inTheirOrder = runs.sort((one, other) => one.index - other.index)
      this.#print(this.#withRest(leftError(why, inTheirOrder, this.#options)))
    }
    if (!first.aborted) this.#printSummary()
    else if (!this.#errors.some(({ code }) => code === 'interrupted')) {
      const error = this.#withRest(interrupted(first.reason))
      this.#errors.push(error)
      this.#print(error)
    }
    if (!isFollowed) this.#noteQueued()
    return exitCodeOf(this.#errors)
  }

  /** Completes the error of a signal that kept creates back. */
  #withRest(error: RushesError): RushesError {
    return error.code === 'interrupted' && this.#creates?.hasUnsent ? this.#creates.withRest(error) : error
  }

  #printAll(errors: readonly RushesError[] = []): void {
    for (const error of errors) this.#print(error)
  }

  #print(error: RushesError): void {
    const { ctx } = this.#options
    // Exit without a message: the reader of standard output has closed it.
    const isSilent = ctx.interrupts.first.aborted && error.exitCode === EXIT.stdoutClosed
    if (!isSilent) ctx.out.error(error)
  }

  #printSummary(): void {
    const { ctx, runs, isFollowed } = this.#options
    if (this.#succeeded.length === 0 || ctx.stderr.isTTY !== true || !isFollowed) return
    const files = this.#succeeded.flatMap((record) => record.files)
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
    const done = runs === 1 ? 'Done' : `${this.#succeeded.length} of ${runs} runs done`
    const downloaded = files.length === 0 ? '' : `: ${plural(files.length, 'file')} (${formatBytes(bytes)})`
    ctx.out.note(`${done} in ${formatSeconds(ctx.clock.monotonic() - this.#startedAtMs)}${downloaded}`)
  }

  /** With `--local`, nobody renders the runs of `--no-wait`. */
  #noteQueued(): void {
    const { out, globals } = this.#options.ctx
    const ids = this.#created
    if (!globals.local || ids.length === 0) return
    const [is, it] = ids.length === 1 ? [`${ids[0]} is`, 'it'] : [`${ids.length} runs are`, 'them']
    const wait = resumeCommand(globals, 'wait', ids.length === 1 ? ids : 'all')
    out.note(`${is} queued. Render ${it} with \`${wait}\`.`)
  }
}

/**
 * The errors of the creates of one command. They say how many runs exist, so that none advises to pay for them again.
 * They are returned when all creates have an outcome: the runs may take minutes until they end.
 */
class CreateErrors {
  readonly #count: number
  readonly #isFree: boolean
  readonly #groups = new ErrorGroups()
  /** The first error of each kind. */
  readonly #firsts: RushesError[] = []
  #accepted = 0
  #refused = 0
  #unconfirmed = 0
  #unsent = 0

  constructor(count: number, isFree: boolean) {
    this.#count = count
    this.#isFree = isFree
  }

  /** Number of creates that were accepted, or whose outcome is unknown. */
  get sent(): number {
    return this.#accepted + this.#unconfirmed
  }

  get hasUnsent(): boolean {
    return this.#unsent > 0
  }

  /** A create was accepted. Returns the errors to print now. */
  accepted(): readonly RushesError[] {
    this.#accepted++
    return this.#errorsAtEnd()
  }

  /** A create has ended without a run. Returns the errors to print now. */
  ended(result: Result): readonly RushesError[] {
    if (result.is === 'unconfirmed') {
      this.#unconfirmed++
      const error = result.key === undefined ? result.error : withKey(result.error, result.key)
      if (this.#groups.add(error, result.key)) this.#firsts.push(error)
    } else if (result.is === 'refused') {
      this.#refused++
      if (this.#groups.add(result.error)) this.#firsts.push(result.error)
    } else this.#unsent++
    return this.#errorsAtEnd()
  }

  #errorsAtEnd(): readonly RushesError[] {
    if (this.sent + this.#refused + this.#unsent < this.#count) return []
    // Only creates with a key have a name, and these are unconfirmed.
    const repeated = this.#groups.repeated('create', 'rushes list --status unconfirmed')
    return [...this.#firsts, ...repeated].map((error) => this.withRest(error))
  }

  /** Adds how many runs exist, and how to create the others. */
  withRest(error: RushesError): RushesError {
    const count = this.#count
    const { sent } = this
    if (count === 1)
      return error.code === 'interrupted' && sent === 0
        ? error.with({ consequence: 'No run was created.' })
        : error
    const [was, is] = this.#accepted === 1 ? ['was', 'is'] : ['were', 'are']
    const paid = this.#accepted === 0 || this.#isFree ? '' : ` and ${is} paid for`
    const doubt = this.#unconfirmed === 0 ? '' : `, ${this.#unconfirmed} unconfirmed`
    const missing = count - sent
    const which = missing === 1 ? 'missing one' : `other ${missing}`
    const rest = `To create the ${which}, run the same command with \`-n ${missing}\`.`
    // The whole command would create the runs that exist once more.
    const advice = error.hint?.replace(/, then try again\.$/, '.')
    const hint = [advice, missing === 0 || sent === 0 ? undefined : rest].filter(Boolean).join(' ')
    return error.with({
      consequence: `${this.#accepted} of ${count} runs ${was} created${paid}${doubt}.`,
      hint: hint || undefined,
    })
  }
}

/** Adds how to find and remove the row of a create whose outcome is unknown. */
const withKey = (error: RushesError, key: string): RushesError =>
  error.with({
    hint:
      `${error.hint} The journal keeps it as ${key}: see it with \`rushes show '${key}'\`, remove it with ` +
      `\`rushes forget '${key}' --yes\`.`,
  })
