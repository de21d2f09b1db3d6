/** Prints the runs of `run`, `wait` and `download`: in their order, equal errors folded, with the exit code. */

import { EXIT, RushesError } from '../../errors.js'
import { interrupted } from '../../host/interrupts.js'
import { printable } from '../../protocol/text.js'
import { formatBytes, formatSeconds } from '../../protocol/units.js'
import { stillRunning } from '../../runs/follow.js'
import type { Begin, Result, Run } from '../../runs/run.js'
import type { RunEvent } from '../../runs/schedule.js'
import type { Connection, Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import { endHint, keyHint, resumeCommand } from '../settings/globals.js'
import { plural } from '../terminal/format.js'
import { type RunRecord, runJson } from '../terminal/run-json.js'
import { ErrorGroups, exitCodeOf } from './error-groups.js'

/** What a command does with its runs. */
export interface RunsCommand {
  readonly ctx: Context
  readonly connection: Connection
  readonly delivery: Delivery
  /** One for each run: all are creates, or all exist. */
  readonly begins: readonly Begin[]
  /** Whether creates cost nothing. */
  readonly isFree: boolean
  /** Whether to wait for the runs. If false, they are printed as soon as they exist. */
  readonly isFollowed: boolean
}

export function printRun(command: RunsCommand, record: RunRecord): void {
  const { out } = command.ctx
  if (out.mode.json) out.json(runJson(record))
  else for (const line of linesOf(command, record)) out.line(printable(line))
}

/** The id, the paths of the files, or the URLs. */
export function linesOf(
  { delivery: { target }, isFollowed }: RunsCommand,
  { id, files, state }: RunRecord,
): readonly string[] {
  if (!isFollowed) return [id]
  if (target?.kind === 'stdout') return []
  if (target !== undefined) return files.map(({ path }) => path)
  return state?.phase === 'succeeded' ? state.urls : []
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

/** Why a command no longer waits for a run. `not finished`: it did not wait. */
type Left = Extract<Result, { is: 'running' }>['why']

/** A run that is printed when those before it are. */
interface Turn {
  readonly record: RunRecord
  /** Whether its error is printed at the end, with those of other runs. */
  readonly isLeft: boolean
}

export class RunPrinter {
  readonly #command: RunsCommand
  readonly #print: (record: RunRecord) => void | Promise<void>
  readonly #turns = new InOrder<Turn>()
  readonly #groups = new ErrorGroups()
  readonly #createGroups = new ErrorGroups()
  /** The first error of each kind that creates have met. */
  readonly #createErrors: RushesError[] = []
  /** All errors of runs and creates. They decide the exit code. */
  readonly #errors: RushesError[] = []
  readonly #left = new Map<Left, Run[]>()
  readonly #succeeded: RunRecord[] = []
  /** Ids of the runs that this command has created. */
  readonly #created: string[] = []
  #unconfirmed = 0
  #refused = 0
  #unsent = 0
  readonly #startedAtMs: number

  /** `print`: prints one run, in its turn. */
  constructor(command: RunsCommand, print: (record: RunRecord) => void | Promise<void>) {
    this.#command = command
    this.#print = print
    this.#startedAtMs = command.ctx.clock.monotonic()
  }

  /** Number of creates that were accepted, or whose outcome is unknown. */
  get sent(): number {
    return this.#created.length + this.#unconfirmed
  }

  get #creates(): boolean {
    return this.#command.begins[0]?.is === 'create'
  }

  async see(event: RunEvent): Promise<void> {
    if (event.is === 'created') {
      this.#created.push(event.run.id)
      this.#printCreateErrors()
    } else if (event.is === 'ended') await this.#seeEnded(event.run, event.result)
  }

  async #seeEnded(run: Run, result: Result): Promise<void> {
    if (run.known === undefined) this.#seeUncreated(result)
    // A line waits until the pictures before it are drawn.
    for (const { record, isLeft } of this.#turns.add(run.index, this.#turnOf(run, result))) {
      await this.#print(record)
      if (record.error === undefined) continue
      this.#errors.push(record.error)
      if (!isLeft && this.#groups.add(record.error)) this.#printError(record.error)
    }
  }

  /** A create has ended without a run. */
  #seeUncreated(result: Result): void {
    if (result.is !== 'refused' && result.is !== 'unconfirmed') this.#unsent++
    else {
      const key = result.is === 'unconfirmed' ? result.key : undefined
      const error = result.error.with({ next: key && keyHint(key) })
      this.#errors.push(error)
      if (this.#createGroups.add(error, key)) this.#createErrors.push(error)
      if (result.is === 'refused') this.#refused++
      else this.#unconfirmed++
    }
    this.#printCreateErrors()
  }

  /** When all creates have an outcome: their errors say how many runs exist. The runs may take minutes until they end. */
  #printCreateErrors(): void {
    if (this.sent + this.#refused + this.#unsent < this.#command.begins.length) return
    // Only creates with a key have a name, and these are unconfirmed.
    const repeated = this.#createGroups.repeated('create', 'rushes list --status unconfirmed')
    for (const error of [...this.#createErrors, ...repeated]) this.#printError(this.#withRest(error))
  }

  #turnOf(run: Run, result: Result): Turn | undefined {
    const { known, state, finishedAt } = run
    if (known === undefined) return undefined
    const { files = [], warnings = [] } = ('delivery' in result && result.delivery) || {}
    for (const warning of warnings) this.#command.ctx.out.warn(warning)
    const elapsedMs = run.elapsedMs ?? (result.is === 'created' ? known.elapsedMs : undefined)
    const error = this.#errorOf(run, result)
    const record = { ...known, state, files, error, finishedAt, elapsedMs }
    if (error === undefined) this.#succeeded.push(record)
    return { record, isLeft: result.is === 'running' && result.error === undefined }
  }

  #errorOf(run: Run, result: Result): RushesError | undefined {
    if (result.is === 'undelivered') return result.error
    if (result.is !== 'running' && result.is !== 'failed') return undefined
    if (result.error === undefined) {
      if (result.is === 'failed') return undefined
      this.#left.set(result.why, [...(this.#left.get(result.why) ?? []), run])
      return this.#leftError(result.why, [run])
    }
    const { error } = result
    return error.with({ next: this.#nextHint(run, error), runId: run.id })
  }

  #nextHint(run: Run, { code }: RushesError): string | undefined {
    const { state } = run
    if (state !== undefined && state.phase !== 'running')
      return endHint(state, this.#command.ctx.globals.local)
    // Another 404 may be that of a proxy, or of an address that is not quite right: the run may continue.
    return code === 'run_not_found' ? undefined : this.#resumeHint([run])
  }

  /** Prints the errors that concern several runs, and the summary. Returns the exit code. */
  end(): number {
    const { ctx, isFollowed } = this.#command
    const { first } = ctx.interrupts
    for (const error of this.#groups.repeated()) this.#printError(error)
    for (const [why, runs] of this.#left) {
      const inTheirOrder = runs.sort((one, other) => one.index - other.index)
      this.#printError(this.#withUnsent(this.#leftError(why, inTheirOrder)))
    }
    if (!first.aborted) this.#printSummary()
    else if (!this.#errors.some(({ code }) => code === 'interrupted')) {
      const error = this.#withUnsent(interrupted(first.reason))
      this.#errors.push(error)
      this.#printError(error)
    }
    if (!isFollowed) this.#noteQueued()
    return exitCodeOf(this.#errors)
  }

  /** Returns one error for runs that are left for one reason. */
  #leftError(why: Left, runs: readonly Run[]): RushesError {
    const { ctx, delivery } = this.#command
    const isLocal = ctx.globals.local
    const isOnce = delivery.patience === 'once'
    const [only] = runs.length === 1 ? runs : []
    const runId = only?.id
    const subject = runId ?? `${runs.length} runs`
    const is = only === undefined ? 'are' : 'is'
    const hint = this.#resumeHint(runs, why === 'signal' && !isOnce)
    const message = `${subject} ${is} ${isLocal || isOnce ? 'not finished' : 'still running'}.`
    if (why === 'signal')
      return interrupted(ctx.interrupts.first.reason, `Interrupted. ${message}`, hint, runId)
    const timeoutMs = delivery.patience === 'once' ? undefined : (delivery.patience ?? 0)
    const limited = timeoutMs === undefined ? message : stillRunning(subject, timeoutMs, isLocal, is)
    return new RushesError('wait_timeout', limited, { hint, runId })
  }

  /** How to resume, and how to stop the runs. */
  #resumeHint(runs: readonly Run[], mayStop = false): string {
    const { ctx, delivery } = this.#command
    // `wait --all` does not find runs that the journal could not take.
    const isNamed =
      runs.length <= MAX_NAMED || (this.#creates && runs.some(({ known }) => known?.isInJournal === false))
    if (!isNamed && !this.#creates) return 'Resume with the same command.'
    const ids = isNamed ? runs.map(({ id }) => id) : 'all'
    const resume = resumeCommand(ctx.globals, 'wait', ids, delivery.again(runs.length))
    const it = runs.length === 1 ? 'it' : 'them'
    const stop = mayStop ? ` Stop ${it} with \`${resumeCommand(ctx.globals, 'cancel', ids)}\`.` : ''
    return `Resume with \`${resume}\`.${stop}`
  }

  /** Completes the error of a signal or a time limit that kept creates back. */
  #withUnsent(error: RushesError): RushesError {
    return this.#creates && this.#unsent > 0 ? this.#withRest(error) : error
  }

  /** Adds how many runs exist, and how to create the others, so that no error advises to pay for them again. */
  #withRest(error: RushesError): RushesError {
    const { begins, isFree } = this.#command
    const count = begins.length
    const { sent } = this
    if (count === 1)
      return error.code === 'interrupted' && sent === 0
        ? error.with({ consequence: 'No run was created.' })
        : error
    const accepted = this.#created.length
    const [was, is] = accepted === 1 ? ['was', 'is'] : ['were', 'are']
    const paid = accepted === 0 || isFree ? '' : ` and ${is} paid for`
    const doubt = this.#unconfirmed === 0 ? '' : `, ${this.#unconfirmed} unconfirmed`
    const missing = count - sent
    const which = missing === 1 ? 'missing one' : `other ${missing}`
    const rest = `To create the ${which}, run the same command with \`-n ${missing}\`.`
    // The whole command would create the runs that exist once more.
    const advice = error.hint?.replace(/, then try again\.$/, '.')
    const hint = [advice, missing === 0 || sent === 0 ? undefined : rest].filter(Boolean).join(' ')
    return error.with({
      consequence: `${accepted} of ${count} runs ${was} created${paid}${doubt}.`,
      hint: hint || undefined,
    })
  }

  #printError(error: RushesError): void {
    const { ctx } = this.#command
    // Exit without a message: the reader of standard output has closed it.
    const isSilent = ctx.interrupts.first.aborted && error.exitCode === EXIT.stdoutClosed
    if (!isSilent) ctx.out.error(error)
  }

  #printSummary(): void {
    const { ctx, begins, isFollowed } = this.#command
    if (this.#succeeded.length === 0 || ctx.stderr.isTTY !== true || !isFollowed) return
    const files = this.#succeeded.flatMap((record) => record.files)
    const bytes = files.reduce((sum, file) => sum + file.bytes, 0)
    const done = begins.length === 1 ? 'Done' : `${this.#succeeded.length} of ${begins.length} runs done`
    const downloaded = files.length === 0 ? '' : `: ${plural(files.length, 'file')} (${formatBytes(bytes)})`
    ctx.out.note(`${done} in ${formatSeconds(ctx.clock.monotonic() - this.#startedAtMs)}${downloaded}`)
  }

  /** With `--local`, nobody renders the runs of `--no-wait`. */
  #noteQueued(): void {
    const { out, globals } = this.#command.ctx
    const ids = this.#created
    if (!globals.local || ids.length === 0) return
    const [is, it] = ids.length === 1 ? [`${ids[0]} is`, 'it'] : [`${ids.length} runs are`, 'them']
    const wait = resumeCommand(globals, 'wait', ids.length === 1 ? ids : 'all')
    out.note(`${is} queued. Render ${it} with \`${wait}\`.`)
  }
}

/** Maximum number of ids in the command to resume. */
const MAX_NAMED = 10
