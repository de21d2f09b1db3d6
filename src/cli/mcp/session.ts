/**
 * The session of `rushes mcp`: what it may create, and the commands that its tools have started. A command continues when
 * its call has returned, so that no answer and no output is lost.
 */
import { statSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import { Readable } from 'node:stream'
import { namesFolder } from '../../download/file-names.js'
import { RushesError, usageError } from '../../errors.js'
import { onAbort, raceAbort, withTimeout } from '../../host/abort.js'
import { followLinks, isFolder, isWithin } from '../../host/file-system.js'
import { asRushesError, createInterrupts, type SignalName } from '../../host/interrupts.js'
import { shortened } from '../../protocol/text.js'
import type { Run } from '../../runs/run.js'
import type { RunEvent } from '../../runs/schedule.js'
import type { Context } from '../context/context.js'
import { type CostLimit, openCostLimit } from '../models/cost-limit.js'
import type { Observer } from '../runs/carry-out.js'
import { GRACE_NOTE } from '../terminal/format.js'
import type { Output } from '../terminal/output.js'
import type { TransferProgress } from '../terminal/spinner.js'

/** Maximum duration of a call. Clients time out after 60 s. */
const MAX_WAIT_MS = 45_000

export interface SessionOptions {
  /** Absolute path of the server's folder. */
  readonly folder: string
  readonly maxRuns: number
  /** Value of `--max-cost`. Without it, the setting counts. */
  readonly maxCost?: string | undefined
}

export interface Call {
  /** Checked against the input schema of the tool. */
  readonly args: Readonly<Record<string, unknown>>
  /** Monotonic time of the call, in milliseconds. */
  readonly sinceMs: number
  /** Aborted when the client cancels the call or disconnects. */
  readonly signal: AbortSignal
}

type Work = (job: Job) => Promise<unknown>

/** A command that runs for a tool, with what it has printed. */
export class Job implements Observer {
  /** What it is for, for example `request_id "hero"`. */
  readonly key: string | undefined
  /** The arguments of its call. Another call with the same key and the same arguments joins the job. */
  readonly asked: string
  readonly ctx: Context
  /** A session repeats creates by request id, so a create without an intent could be paid twice. */
  readonly policy = 'required'
  /** Objects of `--json`. */
  readonly objects: unknown[] = []
  readonly errors: RushesError[] = []
  readonly warnings: string[] = []
  /** The run that it creates or follows, once that exists. */
  run: Run | undefined
  /** Id of the run that it follows, which is known before the service has answered. */
  follows: string | undefined
  /** How much of its outputs is downloaded. */
  downloaded: TransferProgress | undefined
  isDone = false
  /** Number of calls that wait for it. */
  waiting = 0
  /** Resolves when its run is known, or when the job is done. */
  readonly known: Promise<void>
  /** Never rejects. */
  readonly done: Promise<void>
  readonly #base: Context
  readonly #interrupts = createInterrupts()
  #setKnown = () => {}

  constructor(base: Context, key: string | undefined, asked: string, work: Work) {
    this.#base = base
    this.key = key
    this.asked = asked
    this.ctx = {
      ...base,
      out: this.#outputLike(base.out),
      interrupts: this.#interrupts,
      stdin: () => Readable.from([]),
    }
    this.known = new Promise((resolve) => {
      this.#setKnown = resolve
    })
    this.done = this.#carryOut(work)
  }

  async #carryOut(work: Work): Promise<void> {
    await work(this).catch((thrown: unknown) => this.errors.unshift(asRushesError(thrown)))
    this.isDone = true
    this.#setKnown()
  }

  /** Collects what the command prints: standard output has only messages of the protocol. */
  #outputLike(out: Output): Output {
    const add = (value: unknown) => void this.objects.push(value)
    return {
      ...out,
      mode: { ...out.mode, json: true, quiet: true },
      stdoutIsTerminal: false,
      line: add,
      json: add,
      answer: add,
      note: out.debug,
      warn: (text) => void this.warnings.push(text),
      error: (error) => void this.errors.push(error),
    }
  }

  see(event: RunEvent): void {
    if (event.is === 'unanswered') this.#base.out.note(GRACE_NOTE)
    else if (event.run.known !== undefined) {
      this.run = event.run
      this.#setKnown()
    }
  }

  transfer(amount: TransferProgress): void {
    this.downloaded = amount
  }

  /** Ends it soon, and prints how to resume the run that continues. A create without an answer has 10 s, once. */
  async stop(by: SignalName): Promise<void> {
    const { isStopped } = this
    this.#interrupts.interrupt(by)
    await this.done
    if (!isStopped) for (const error of this.errors) this.#base.out.error(error)
  }

  get isStopped(): boolean {
    return this.#interrupts.first.aborted
  }
}

export class McpSession {
  /** With the settings, the key and the models of its start. */
  readonly ctx: Context
  readonly options: SessionOptions
  /** Jobs whose result no call has received. A batch that is started again would pay again for rows that failed. */
  readonly jobs = new Set<Job>()
  #limit: Promise<CostLimit> | undefined

  constructor(base: Context, options: SessionOptions) {
    this.ctx = { ...base, connect: () => base.connect({ render: true }), localSession: undefined }
    this.options = options
  }

  /** What the session may still create. Rejects with `usage` if the settings are not valid. */
  limit(): Promise<CostLimit> {
    const { maxCost: flag, maxRuns } = this.options
    this.#limit ??= openCostLimit(this.ctx, { flag, maxRuns })
    return this.#limit
  }

  /** Returns an absolute path, with a final separator for a folder. Without a path, the folder of the server. Throws `usage`. */
  outputIn(path: unknown): string {
    const { folder } = this.options
    if (typeof path !== 'string') return `${folder}${sep}`
    const fullPath = resolve(folder, path)
    const isFolderPath = namesFolder(path) || isFolder(fullPath)
    if (dirname(isFolderPath ? join(fullPath, 'file') : fullPath).includes('{'))
      throw usageError(
        `output: ${shortened(path)} has a placeholder in the name of a folder.`,
        'Use placeholders in the file name only, such as assets/{id}.{ext}.',
      )
    // Check only the folder: a link at the path itself would be replaced by the file.
    this.#refuseOutside(path, isFolderPath ? fullPath : dirname(fullPath), 'output')
    return isFolderPath ? `${fullPath}${sep}` : fullPath
  }

  /** Returns the absolute path of a file that is read. Throws `usage`. */
  fileIn(path: string, parameter: string): string {
    if (path.includes('\0')) throw usageError(`${parameter}: the path contains a null character.`)
    const fullPath = resolve(this.options.folder, path)
    this.#refuseOutside(path, fullPath, parameter)
    const found = statSync(fullPath, { throwIfNoEntry: false })
    // Reading a pipe would block the whole server.
    if (found !== undefined && !found.isFile() && !found.isDirectory())
      throw usageError(`${parameter}: ${shortened(path)} is not a regular file.`, 'Give the path of a file.')
    return fullPath
  }

  /** A path of an agent must be in the folder of the server, links resolved. */
  #refuseOutside(path: string, fullPath: string, parameter: string): void {
    const { folder } = this.options
    if (!isWithin(followLinks(folder), followLinks(fullPath)))
      throw usageError(
        `${parameter}: ${shortened(path)} is outside ${folder}. Nothing was sent.`,
        'Use a path inside the folder of the server, which `rushes mcp --folder` sets.',
      )
  }

  #start(key: string | undefined, asked: string, work: Work): Job {
    const job = new Job(this.ctx, key, asked, work)
    this.jobs.add(job)
    return job
  }

  /**
   * Returns the job of an earlier call with this key, or starts one. Throws `usage` if the earlier call had other
   * arguments and is still running.
   */
  join(key: string, asked: string, work: Work): Job {
    const earlier = [...this.jobs].findLast((job) => job.key === key)
    if (earlier === undefined) return this.#start(key, asked, work)
    if (!earlier.isStopped && earlier.asked === asked) return earlier
    if (!earlier.isStopped && !earlier.isDone) throw otherArguments(key)
    this.jobs.delete(earlier)
    return this.#start(key, asked, async (job) => {
      await earlier.done
      await work(job)
    })
  }

  /** Waits until the jobs have ended, or until 45 s have passed since the call. The last call that is cancelled stops them. */
  async wait(
    jobs: readonly Job[],
    { signal, sinceMs }: Call,
    until: 'known' | 'done' = 'done',
  ): Promise<void> {
    const { clock } = this.ctx
    const all = Promise.all(jobs.map((job) => job[until]))
    const timeoutMs = sinceMs + MAX_WAIT_MS - clock.monotonic()
    const limit = { timeoutMs, reason: () => new Error('late'), clock, signal }
    for (const job of jobs) job.waiting++
    await withTimeout((limited) => raceAbort(all, limited), limit).catch(() => {})
    for (const job of jobs) {
      job.waiting--
      if (!signal.aborted && job.isDone) this.jobs.delete(job)
      else if (signal.aborted && job.waiting === 0) void job.stop('SIGTERM')
    }
  }

  /** Runs a command that does not continue without its call. */
  async finish(call: Call, work: Work): Promise<Job> {
    const job = this.#start(undefined, '', work)
    await this.wait([job], call)
    if (job.isDone) return job
    void job.stop('SIGTERM')
    const args = shortened(JSON.stringify(call.args), 200)
    job.errors.unshift(
      new RushesError('network', `No response within 45 s to ${args}.`, { hint: 'Call this tool again.' }),
    )
    return job
  }

  /** Interrupts all jobs, and waits for responses to creates. */
  async close(by: SignalName): Promise<void> {
    const left = [...this.jobs].filter(({ isDone }) => !isDone)
    const stop = () => Promise.all(left.map((job) => job.stop(by)))
    // Most clients send SIGTERM after they have closed standard input: only the next signal does not wait.
    const forget = onAbort(this.ctx.interrupts.second, stop)
    await stop()
    forget()
  }
}

/** `key`: `request_id "hero"`, for example. */
export const otherArguments = (key: string): RushesError =>
  usageError(
    `The ${key} was used in a call with other arguments. Nothing was sent.`,
    'Repeat that call unchanged to get its result. Another run needs another request_id.',
  )
