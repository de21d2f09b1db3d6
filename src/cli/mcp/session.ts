/**
 * The session of `rushes mcp`: what it may create, and the commands that its tools run. A command continues when its call
 * has returned, so that no answer and no output is lost.
 */
import { Readable, Writable } from 'node:stream'
import { RushesError } from '../../errors.js'
import { onAbort, raceAbort, withTimeout } from '../../host/abort.js'
import { asRushesError, createInterrupts, type SignalName } from '../../host/interrupts.js'
import type { RunEstimate } from '../../journal/index.js'
import type { RunState } from '../../protocol/run-state.js'
import type { BatchEvent } from '../../runs/batch.js'
import type { RunEvent } from '../../runs/schedule.js'
import type { BatchFlags } from '../batch/options.js'
import type { Context } from '../context/context.js'
import { type CostLimit, openCostLimit } from '../models/cost-limit.js'
import type { Observer } from '../runs/carry-out.js'
import { resumeCommand } from '../runs/resume.js'
import type { FilterOptions } from '../runs/run-selection.js'
import { GRACE_NOTE } from '../terminal/format.js'
import type { Output } from '../terminal/output.js'
import type { TransferProgress } from '../terminal/spinner.js'

/** Maximum duration of a call. Clients time out after 60 s. */
export const MAX_WAIT_MS = 45_000

export interface SessionOptions {
  /** Absolute path of the server's folder. */
  readonly folder: string
  readonly maxRuns: number
  /** Value of `--max-cost`. Without it, the setting counts. */
  readonly maxCost?: string | undefined
  readonly allowOutside: boolean
}

/** The commands that tools run. */
export interface Commands {
  batch(ctx: Context, request: BatchRun): Promise<number>
  cancel(ctx: Context, id: string, onState: (state: RunState) => void): Promise<number>
  list(ctx: Context, options: FilterOptions): Promise<number>
  models(ctx: Context, name: string | undefined): Promise<number>
  show(ctx: Context, name: string): Promise<number>
}

interface BatchRun {
  readonly manifest: string
  readonly flags: BatchFlags
  readonly onMedia: (path: string, parameter: string) => void
  readonly limit: CostLimit
  readonly observer: Observer
}

export interface Call {
  /** Checked against the input schema of the tool. */
  readonly args: Readonly<Record<string, unknown>>
  /** Monotonic time of the call, in milliseconds. */
  readonly sinceMs: number
  /** Aborted when the client cancels the call or disconnects. */
  readonly signal: AbortSignal
}

/** Where the outputs of a run are saved. */
export interface Delivery {
  readonly output: string
  readonly overwrite: boolean
}

interface JobOptions {
  /** What the job does, for example `create hero-v1`. */
  readonly key?: string
  /** With what arguments. Another call with the same key and the same ones joins the job. */
  readonly asked?: string
  /** The existing run, if any. */
  readonly id?: string
  readonly delivery?: Delivery
  /** Ends before this job begins. */
  readonly after?: Job | undefined
}

/** A command that runs for a tool, with what it has printed. It observes the runs of the command. */
export class Job implements Observer {
  readonly options: JobOptions
  readonly ctx: Context
  /** A session repeats creates by request id, so a create without an intent could be paid twice. */
  readonly policy = 'required'
  /** Objects of `--json`. */
  readonly objects: unknown[] = []
  readonly errors: RushesError[] = []
  readonly warnings: string[] = []
  /** Runs that it has created, or that it follows. */
  readonly ids: string[] = []
  /** The last status of its run, and the last progress of its download. */
  state: RunState | undefined
  transfer: TransferProgress | undefined
  /** Of its create, or of the run that was found. Undefined without a price. */
  estimate: RunEstimate | undefined
  isDone = false
  /** It was interrupted: it ends soon, and no call joins it. */
  isStopped = false
  /** Number of calls that wait for it. */
  waiters = 0
  /** Resolves when its run is known, or when the job is done. */
  readonly known: Promise<void>
  /** Never rejects. */
  readonly done: Promise<void>
  readonly #session: McpSession
  readonly #interrupts = createInterrupts()
  readonly #stopCreates = new AbortController()
  #setKnown = () => {}

  constructor(session: McpSession, options: JobOptions, work: (job: Job) => Promise<unknown>) {
    this.#session = session
    this.options = options
    this.ctx = {
      ...session.ctx,
      out: this.#outputLike(session.ctx.out),
      interrupts: this.#interrupts,
      stdin: () => Readable.from([]),
      stdout: new Writable({ write: (_chunk, _encoding, done) => done() }),
    }
    this.known = new Promise((resolve) => {
      this.#setKnown = resolve
    })
    if (options.id !== undefined) this.addRun(options.id)
    this.done = this.#run(work)
  }

  async #run(work: (job: Job) => Promise<unknown>): Promise<void> {
    await this.options.after?.done
    await work(this).catch((thrown: unknown) => this.errors.unshift(asRushesError(thrown)))
    this.isDone = true
    this.#setKnown()
  }

  /** Collects what the command prints, in the form of `--json`. */
  #outputLike({ debug, style, mode }: Output): Output {
    const add = (value: unknown) => void this.objects.push(value)
    return {
      mode: { json: true, quiet: true, debug: mode.debug },
      stdoutIsTerminal: false,
      columns: undefined,
      style,
      line: add,
      json: add,
      note: debug,
      debug,
      picture() {},
      warn: (text) => void this.warnings.push(text),
      error: (error) => void this.errors.push(error),
      setAside() {},
    }
  }

  addRun(id: string): void {
    this.ids.push(id)
    this.#setKnown()
  }

  get noCreates(): AbortSignal {
    return this.#stopCreates.signal
  }

  see(event: RunEvent | BatchEvent): void {
    const { ctx, open, deliveries } = this.#session
    if (event.is === 'unanswered') ctx.out.note(GRACE_NOTE)
    if (event.is === 'status') this.onState(event.state)
    if (event.is !== 'created') return
    const { id } = event.run
    this.addRun(id)
    open.add(id)
    if (this.options.delivery !== undefined) deliveries.set(id, this.options.delivery)
  }

  readonly onState = (state: RunState): void => {
    this.state = state
    if (state.phase !== 'running') this.#session.open.delete(state.id)
  }

  onTransfer(_id: string, transfer: TransferProgress): void {
    this.transfer = transfer
  }

  stop(by: SignalName): void {
    this.isStopped = true
    this.#interrupts.interrupt(by)
  }

  /** After its call was cancelled. A create of one run is answered first, and another call may join until then. */
  async leave(): Promise<void> {
    if (this.isDone || this.waiters > 0) return
    if (this.options.key === undefined) this.stop('SIGTERM')
    else this.#stopCreates.abort()
    await this.known
    if (this.ids.length > 0 && !this.isDone)
      this.#session.ctx.out.note(`The call was canceled. Still running: ${this.ids.join(', ')}.`)
    if (!this.isDone && !this.isStopped && this.waiters === 0) this.stop('SIGTERM')
  }
}

export class McpSession {
  /** With the settings, the key and the models of its start. */
  readonly ctx: Context
  readonly options: SessionOptions
  readonly commands: Commands
  /** Unfinished jobs. */
  readonly jobs = new Set<Job>()
  /** Batches by manifest, until a call has received their result. Another batch would pay again for rows that failed. */
  readonly batches = new Map<string, Job>()
  /** Where the outputs of a run go, as the call that created it said. */
  readonly deliveries = new Map<string, Delivery>()
  /** Runs that this session created and that have not ended. */
  readonly open = new Set<string>()
  #limit: Promise<CostLimit> | undefined

  constructor(base: Context, options: SessionOptions, commands: Commands) {
    this.ctx = { ...base, connect: () => base.connect({ render: true }), localSession: undefined }
    this.options = options
    this.commands = commands
  }

  /** What the session may still create. Rejects with `usage` if the settings are not valid. */
  limit(): Promise<CostLimit> {
    const { maxCost: flag, maxRuns } = this.options
    this.#limit ??= openCostLimit(this.ctx, { flag, maxRuns })
    return this.#limit
  }

  start(options: JobOptions, work: (job: Job) => Promise<unknown>): Job {
    const job = new Job(this, options, work)
    this.jobs.add(job)
    job.done.then(() => this.jobs.delete(job))
    return job
  }

  /** Waits until the jobs have ended, or until 45 s have passed since the call. Returns whether they have ended. */
  async wait(jobs: readonly Job[], call: Call, until: 'known' | 'done' = 'done'): Promise<boolean> {
    const { clock } = this.ctx
    const { signal, sinceMs } = call
    for (const job of jobs) job.waiters++
    const all = Promise.all(jobs.map((job) => job[until]))
    const limit = {
      timeoutMs: sinceMs + MAX_WAIT_MS - clock.monotonic(),
      reason: () => new Error('late'),
      clock,
      signal,
    }
    const isDone = await withTimeout((limited) => raceAbort(all, limited), limit).then(
      () => true,
      () => false,
    )
    for (const job of jobs) {
      job.waiters--
      if (signal.aborted) job.leave()
    }
    return isDone
  }

  /** Waits for jobs that do not continue without their call. */
  async finish(jobs: readonly Job[], call: Call): Promise<void> {
    if (await this.wait(jobs, call)) return
    for (const job of jobs.filter(({ isDone }) => !isDone)) {
      const [runId] = job.ids
      const hint = 'A run may still be running. Call this tool again.'
      job.errors.unshift(new RushesError('network', 'No response within 45 s.', { runId, hint }))
      job.stop('SIGTERM')
    }
  }

  /** Interrupts all jobs, waits for responses to creates, and names the runs that continue. */
  async close(by: SignalName): Promise<void> {
    const { out, interrupts } = this.ctx
    const left = [...this.jobs]
    const stop = () => {
      for (const job of left) job.stop(by)
    }
    stop()
    // Most clients send SIGTERM after they have closed standard input: only the next signal does not wait.
    const forget = onAbort(interrupts.second, stop)
    // Before it waits: a client may kill the server.
    await this.#warnOfOpenRuns()
    await Promise.all(left.map(({ done }) => done))
    forget()
    // The error of a signal says which creates have no outcome. Runs that continue are named together.
    const isNamed = ({ code, runId, message }: RushesError) =>
      code === 'interrupted' && (runId !== undefined || message === 'Interrupted.')
    for (const error of left.flatMap(({ errors }) => errors)) if (!isNamed(error)) out.error(error)
    await this.#warnOfOpenRuns()
  }

  async #warnOfOpenRuns(): Promise<void> {
    const ids = [...this.open]
    if (ids.length === 0) return
    this.open.clear()
    const { globals, out } = this.ctx
    if (globals.local) (await this.ctx.openJournal()).queued(await this.ctx.address(), ids)
    const resume = resumeCommand(globals, 'wait', ids, ['-d'])
    out.warn(`${ids.join(', ')} ${ids.length === 1 ? 'is' : 'are'} not finished. Resume with \`${resume}\`.`)
  }
}
