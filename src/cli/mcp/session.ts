/**
 * The session of `rushes mcp`: what it may create, and the commands that its tools run. A command continues when its call
 * has returned, so that no answer and no output is lost.
 */
import { Readable, Writable } from 'node:stream'
import type { RushesError } from '../../errors.js'
import { onAbort, raceAbort, withTimeout } from '../../host/abort.js'
import { asRushesError, createInterrupts, type SignalName } from '../../host/interrupts.js'
import type { RunEstimate } from '../../journal/index.js'
import type { RunState } from '../../protocol/run-state.js'
import type { BatchEvent } from '../../runs/batch.js'
import type { RunEvent } from '../../runs/schedule.js'
import type { Context } from '../context/context.js'
import { type CostLimit, openCostLimit } from '../models/cost-limit.js'
import type { Observer } from '../runs/carry-out.js'
import { resumeCommand } from '../runs/resume.js'
import { plural } from '../terminal/format.js'
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
  /** Name of a create or a batch, and what it was asked for: a call with the same ones joins it. */
  readonly key?: string
  readonly asked?: string
  /** The existing run, if any. */
  readonly id?: string
  readonly delivery?: Delivery
  /** Whether it creates one run, whose answer is awaited also after the call was cancelled. */
  readonly isCreate?: boolean
}

/** A command that runs for a tool, with what it has printed. */
export class Job {
  readonly options: JobOptions
  /** Objects of `--json`. */
  readonly objects: unknown[] = []
  readonly errors: RushesError[] = []
  readonly warnings: string[] = []
  /** The last status of each run. */
  readonly states = new Map<string, RunState>()
  /** The last progress of each run's download. */
  readonly transfers = new Map<string, TransferProgress>()
  readonly created: string[] = []
  /** Of the last create, or of the run that was found. Undefined without a price. */
  estimate: RunEstimate | undefined
  isDone = false
  /** It was interrupted: it ends soon, and no call joins it. */
  isStopped = false
  /** Number of calls that wait for it. */
  waiters = 0
  /** Resolves when its run is known, or when the job is done. */
  readonly known: Promise<void>
  /** Never rejects. */
  done: Promise<void> = Promise.resolve()
  readonly interrupts = createInterrupts()
  readonly noCreates = new AbortController()
  #id: string | undefined
  #setKnown = () => {}

  constructor(options: JobOptions) {
    this.options = options
    this.known = new Promise((resolve) => {
      this.#setKnown = resolve
    })
    this.id = options.id
  }

  /** Of the run that it creates or follows. */
  get id(): string | undefined {
    return this.#id
  }

  set id(id: string | undefined) {
    this.#id ??= id
    if (id !== undefined) this.#setKnown()
  }

  async run(work: () => Promise<unknown>): Promise<void> {
    await work().catch((thrown: unknown) => this.errors.unshift(asRushesError(thrown)))
    this.isDone = true
    this.#setKnown()
  }

  stop(by: SignalName): void {
    this.isStopped = true
    this.interrupts.interrupt(by)
  }

  /** Collects what the command prints, in the form of `--json`. */
  outputLike({ debug, style, mode }: Output): Output {
    const add = (value: unknown) => void this.objects.push(value)
    return {
      mode: { json: true, quiet: true, debug: mode.debug },
      ...{ stdoutIsTerminal: false, columns: undefined, style, line: add, json: add, note: debug, debug },
      picture() {},
      warn: (text) => void this.warnings.push(text),
      error: (error) => void this.errors.push(error),
      setAside() {},
    }
  }
}

/** What a command tells the job that runs it. */
export interface JobObserver extends Observer {
  see(event: RunEvent | BatchEvent): void
  onState(state: RunState): void
}

type Work = (ctx: Context, observer: JobObserver, job: Job) => Promise<unknown>

export class McpSession {
  /** With the settings, the key and the models of its start. */
  readonly ctx: Context
  readonly options: SessionOptions
  /** Unfinished jobs. */
  readonly jobs = new Set<Job>()
  /** Where the outputs of a run go, as the call that created it said. */
  readonly deliveries = new Map<string, Delivery>()
  #limit: Promise<CostLimit> | undefined
  /** Runs that this session created and that have not ended. */
  readonly #open = new Set<string>()
  #isClosing = false
  #isWaiting = false

  constructor(base: Context, options: SessionOptions) {
    this.ctx = { ...base, connect: () => base.connect({ render: true }), sessionOf: undefined }
    this.options = options
  }

  /** What the session may still create. Rejects with `usage` if the settings are not valid. */
  limit(): Promise<CostLimit> {
    const { maxCost: flag, maxRuns } = this.options
    this.#limit ??= openCostLimit(this.ctx, { flag, maxRuns })
    return this.#limit
  }

  start(options: JobOptions, work: Work): Job {
    const job = new Job(options)
    const ctx: Context = {
      ...this.ctx,
      out: job.outputLike(this.ctx.out),
      interrupts: job.interrupts,
      stdin: () => Readable.from([]),
      stdout: new Writable({ write: (_chunk, _encoding, done) => done() }),
    }
    this.jobs.add(job)
    job.done = job.run(() => work(ctx, this.#observe(job), job)).then(() => void this.jobs.delete(job))
    return job
  }

  #observe(job: Job): JobObserver {
    const onState = (state: RunState) => {
      job.states.set(state.id, state)
      if (state.phase !== 'running') this.#open.delete(state.id)
    }
    return {
      // A session repeats creates by request id, so a create without an intent could be paid twice.
      policy: 'required',
      noCreates: job.noCreates.signal,
      onState,
      onTransfer: (id, amount) => void job.transfers.set(id, amount),
      see: (seen) => {
        const event = seen.is === 'run' ? seen.event : seen
        if (event.is === 'unanswered') this.#noteWaiting()
        if (event.is === 'status') onState(event.state)
        if (event.is !== 'created') return
        const { id } = event.run
        const { delivery } = job.options
        job.created.push(id)
        this.#open.add(id)
        if (delivery !== undefined) this.deliveries.set(id, delivery)
        job.id = id
      },
    }
  }

  /** Waits until `work` has ended, 45 s have passed since the call, or it was cancelled. Its jobs may then stop. */
  async wait(
    work: Promise<unknown>,
    { sinceMs, signal }: Call,
    jobs: readonly Job[],
  ): Promise<'done' | 'late'> {
    const { clock } = this.ctx
    const late = new Error('late')
    for (const job of jobs) job.waiters++
    try {
      const timeout = {
        timeoutMs: sinceMs + MAX_WAIT_MS - clock.monotonic(),
        reason: () => late,
        clock,
        signal,
      }
      await withTimeout((limited) => raceAbort(work, limited), timeout)
      return 'done'
    } catch (error) {
      if (error !== late && !signal.aborted) throw error
      return 'late'
    } finally {
      for (const job of jobs) job.waiters--
      if (signal.aborted) for (const job of jobs) this.#leave(job)
    }
  }

  /** After its call was cancelled. A create that was sent is answered first, and another call may join until then. */
  #leave(job: Job): void {
    const stopUnlessJoined = () => {
      if (!job.isDone && job.waiters === 0) job.stop('SIGTERM')
    }
    if (job.isDone || job.waiters > 0) return
    if (job.options.isCreate !== true) stopUnlessJoined()
    else {
      job.noCreates.abort()
      job.known.then(stopUnlessJoined)
    }
    job.known.then(() => {
      const ids = job.created.length > 0 ? job.created : [job.id ?? []].flat()
      if (ids.length > 0) this.ctx.out.note(`The call was canceled. Still running: ${ids.join(', ')}.`)
    })
  }

  #noteWaiting(): void {
    if (this.#isClosing && !this.#isWaiting)
      this.ctx.out.warn(
        'Waiting up to 10 s for the responses to creates that were sent. If the server is killed before, ' +
          '`rushes list --status unconfirmed` shows them.',
      )
    this.#isWaiting = this.#isClosing
  }

  /** Interrupts all jobs, waits for responses to creates, and names the runs that continue. */
  async close(by: SignalName): Promise<void> {
    const { out, interrupts } = this.ctx
    const left = [...this.jobs]
    this.#isClosing = true
    for (const job of left) job.stop(by)
    // Most clients send SIGTERM after they have closed standard input: only the next signal does not wait.
    const forget = onAbort(interrupts.second, () => {
      for (const job of left) job.stop(by)
    })
    // Before it waits: a client may kill the server.
    await this.#warnOfOpenRuns()
    await Promise.all(left.map(({ done }) => done))
    forget()
    // Runs that continue are named together.
    const isNamed = ({ code, runId, message }: RushesError) =>
      code === 'interrupted' && (runId !== undefined || message === 'Interrupted.')
    for (const error of left.flatMap(({ errors }) => errors)) if (!isNamed(error)) out.error(error)
    await this.#warnOfOpenRuns()
  }

  async #warnOfOpenRuns(): Promise<void> {
    const ids = [...this.#open]
    const [first] = ids
    if (first === undefined) return
    this.#open.clear()
    const { globals, out } = this.ctx
    const { local } = globals
    if (local) (await this.ctx.openJournal()).queued(await this.ctx.address(), ids)
    const state = `${ids.length === 1 ? 'is' : 'are'} ${local ? 'not finished' : 'still running'}`
    const resume = resumeCommand({ globals, delivery: ['-d'] }, 'wait', ids)
    out.warn(
      `${ids.length === 1 ? first : `${plural(ids.length, 'run')} (${ids.join(', ')})`} ${state}. Resume with \`${resume}\`.`,
    )
  }
}
