/**
 * The state of one MCP server: its connection, the runs that it has created, and the jobs that continue between calls.
 * On shutdown it reports the runs that continue.
 */
import { statSync } from 'node:fs'
import { dirname, join, resolve, sep } from 'node:path'
import { Readable, Writable } from 'node:stream'
import { namesFolder } from '../../download/target.js'
import { type RushesError, usageError } from '../../errors.js'
import { onAbort } from '../../host/abort.js'
import { followLinks, isFolder, isWithin } from '../../host/directories.js'
import type { SignalName } from '../../host/interrupts.js'
import { shortened } from '../../protocol/text.js'
import { once } from '../context/command-settings.js'
import type { Connection, ConnectOptions, Context } from '../context/context.js'
import { maxCostOf, openPrices, type Prices } from '../models/prices.js'
import { resumeCommand } from '../runs/resume.js'
import { plural } from '../terminal/format.js'
import { type Allowance, createAllowance } from './allowance.js'
import { type Job, type JobFunction, type JobOptions, startJob, type Waited, waitAtMost } from './job.js'
import { type Call, MAX_WAIT_MS } from './tool.js'

export interface McpSessionOptions {
  /** Absolute path of the server's folder. */
  readonly folder: string
  readonly maxRuns: number
  /** Value of `--max-cost`. Without it, the setting counts. */
  readonly maxCost?: string | undefined
  readonly allowOutside: boolean
}

/** A repeated call with an equal key joins the job of the earlier one. */
export interface JobKey {
  readonly name: string
  readonly arguments: string
}

export interface SessionTask {
  readonly job: Job
  /** Key of a create or a batch. */
  readonly key: JobKey | undefined
  /** Output settings of its run. */
  readonly delivery: SavedDelivery | undefined
}

export interface SavedDelivery {
  readonly output: string
  readonly overwrite: boolean
}

interface NewTask extends Pick<JobOptions, 'requestId' | 'id' | 'allowance'> {
  readonly key?: JobKey
  readonly delivery?: SavedDelivery
}

export interface SessionMoney {
  readonly prices: Prices
  readonly allowance: Allowance
}

export interface McpSession extends McpSessionOptions {
  readonly base: Context
  readonly paths: CallPaths
  /** Prices, and what the session may still create. Rejects with `usage` if the settings are not valid. */
  money(): Promise<SessionMoney>
  /** Unfinished tasks, newest last. */
  tasks(): readonly SessionTask[]
  start(task: NewTask, work: JobFunction): SessionTask
  /** Output settings that were given when the run was created. */
  deliveryOf(id: string): SavedDelivery | undefined
  /**
   * Waits until `work` has ended, 45 s have passed, or the client has cancelled the call. After a cancel, its jobs may
   * stop.
   */
  wait(work: Promise<unknown>, options: CallWait): Promise<Waited>
  /** Interrupts all work, waits for responses to creates, and reports the runs that continue. */
  close(by: SignalName): Promise<void>
}

interface CallWait {
  readonly call: Call
  readonly sinceMs: number
  readonly jobs: readonly Job[]
  /** Text for progress notifications. */
  describe(): string
}

const TICK_MS = 5_000
/**
 * Number of runs whose output settings are kept. Outputs of older runs go to the folder of the session, unless the call
 * gives another output.
 */
const MAX_DELIVERIES = 1_000

export function openSession(base: Context, options: McpSessionOptions): McpSession {
  const { clock, out, interrupts } = base
  const running = new Set<SessionTask>()
  const connections = new Map<Context, Promise<Connection>>()
  const deliveries = new Map<string, SavedDelivery>()
  /** Runs that this session created and that have not ended. */
  const open = new Map<string, Context>()

  const allowance = once(async () => {
    const maxCost = await maxCostOf(base, options.maxCost)
    const { currency } = await openPrices(base)
    return createAllowance({ maxRuns: options.maxRuns, maxCost, currency })
  })
  // Prices are opened for each call: they read a document only once, and a session may last for days.
  const money = async () => ({ allowance: await allowance(), prices: await openPrices(base) })

  function connect(from: Context, connectOptions: ConnectOptions = {}): Promise<Connection> {
    // Throws an error with all missing settings.
    if ((connectOptions.missing ?? []).length > 0) return from.connect(connectOptions)
    const known = connections.get(from) ?? from.connect({ render: true })
    connections.set(from, known)
    // Do not cache a failure: the next call may find a key that was stored in the meantime.
    known.catch(() => connections.delete(from))
    return known
  }

  function keepDelivery(id: string, delivery: SavedDelivery): void {
    deliveries.set(id, delivery)
    const [oldest] = deliveries.keys()
    if (deliveries.size > MAX_DELIVERIES && oldest !== undefined) deliveries.delete(oldest)
  }

  function start(newTask: NewTask, work: JobFunction): SessionTask {
    const { key, delivery, ...jobOptions } = newTask
    const job = startJob(
      {
        ...jobOptions,
        base,
        connect,
        onAccepted(id, at) {
          open.set(id, at)
          if (delivery !== undefined) keepDelivery(id, delivery)
        },
        onState({ id, phase }) {
          if (phase !== 'running') open.delete(id)
        },
        stdin: Readable.from([]),
        stdout: discarding(),
      },
      work,
    )
    const task: SessionTask = { job, key, delivery }
    running.add(task)
    job.done.then(() => running.delete(task))
    return task
  }

  async function wait(work: Promise<unknown>, { call, sinceMs, jobs, describe }: CallWait): Promise<Waited> {
    const report = () => call.progress(describe())
    for (const job of jobs) {
      job.waiters++
      job.join()
      job.onChange = report
    }
    const waited = await waitAtMost(work, {
      clock,
      sinceMs,
      limitMs: MAX_WAIT_MS,
      signal: call.signal,
      tick: { everyMs: TICK_MS, call: report },
    })
    for (const job of jobs) {
      job.waiters--
      if (job.onChange === report) job.onChange = undefined
    }
    if (waited === 'cancelled') {
      const left = jobs.filter(({ isDone, waiters }) => !isDone && waiters === 0)
      for (const job of left) job.abandon()
      for (const job of left) noteStillRunning(job)
    }
    return waited
  }

  /** Waits for the id: the response to a cancelled create may come later. */
  function noteStillRunning(job: Job): void {
    job.known.then(() => {
      const ids = job.created.length > 0 ? job.created : job.id === undefined ? [] : [job.id]
      if (ids.length > 0) out.note(`The call was cancelled. Still running: ${ids.join(', ')}.`)
    })
  }

  async function close(by: SignalName): Promise<void> {
    const left = [...running].map(({ job }) => job)
    for (const job of left) job.interrupt(by)
    // Interrupts again at the second signal. The first one is normal: most clients send SIGTERM after closing standard
    // input.
    const forget = onAbort(interrupts.second, () => {
      for (const job of left) job.interrupt(by)
    })
    // Warn before waiting: a client may kill the server.
    await warnOfOpenRuns()
    if (left.some(({ isUnanswered }) => isUnanswered))
      out.warn(
        'Waiting up to 10 s for the responses to creates that were sent. If the server is killed before, ' +
          '`rushes list --status unconfirmed` shows them.',
      )
    const outcomes = await Promise.all(left.map(({ done }) => done))
    forget()
    for (const { errors } of outcomes)
      for (const error of errors) if (isWorthReporting(error)) out.error(error)
    await warnOfOpenRuns()
  }

  async function warnOfOpenRuns(): Promise<void> {
    for (const isLocal of [false, true]) {
      const ids = [...open].filter(([, at]) => at.globals.local === isLocal).map(([id]) => id)
      const [first] = ids
      if (first === undefined) continue
      const at = open.get(first) ?? base
      if (isLocal) for (const id of ids) (await at.recorder()).recordQueued(id)
      const resume = resumeCommand({ globals: at.globals, delivery: ['-d'] }, 'wait', ids)
      const state = `${ids.length === 1 ? 'is' : 'are'} ${isLocal ? 'queued' : 'still running'}`
      for (const id of ids) open.delete(id)
      out.warn(
        `${ids.length === 1 ? first : `${plural(ids.length, 'run')} (${ids.join(', ')})`} ${state}. Resume with \`${resume}\`.`,
      )
    }
  }

  return {
    ...options,
    base,
    money,
    paths: createPaths(options.folder, options.allowOutside),
    tasks: () => [...running],
    start,
    deliveryOf: (id) => deliveries.get(id),
    wait,
    close,
  }
}

/** Whether to report the error on shutdown. Runs that continue are already reported together. */
const isWorthReporting = ({ code, message, runId }: RushesError): boolean =>
  !(code === 'interrupted' && (runId !== undefined || message === 'Interrupted.'))

const discarding = (): Writable => new Writable({ write: (_chunk, _encoding, done) => done() })

/**
 * Resolves paths that an agent gives. They are relative to the folder of the server and must be inside it, links
 * resolved.
 */

interface CallPaths {
  /** Absolute, with a final separator for a folder. Undefined means the folder of the server. Throws `usage`. */
  output(path: string | undefined): string
  /** The absolute path of a file that is read. Throws `usage`. */
  file(path: string, parameter: string): string
}

function createPaths(folder: string, allowOutside: boolean): CallPaths {
  const root = followLinks(folder)
  function refuseOutside(path: string, real: string, parameter: string): void {
    if (!allowOutside && !isWithin(root, real)) throw outside(path, parameter, folder)
  }
  return {
    output(path) {
      if (path === undefined) return `${folder}${sep}`
      const fullPath = resolve(folder, path)
      const isFolderPath = namesFolder(path) || isFolder(fullPath)
      if (dirname(isFolderPath ? join(fullPath, 'file') : fullPath).includes('{'))
        throw usageError(
          `output: ${shortened(path)} has a placeholder in the name of a folder.`,
          'Use placeholders in the file name only, such as assets/{id}.{ext}.',
        )
      // Check only the folder: a link at the path itself would be replaced by the file.
      refuseOutside(path, followLinks(isFolderPath ? fullPath : dirname(fullPath)), 'output')
      return isFolderPath ? `${fullPath}${sep}` : fullPath
    },
    file(path, parameter) {
      if (path.includes('\0')) throw usageError(`${parameter}: the path contains a NUL character.`)
      const fullPath = resolve(folder, path)
      refuseOutside(path, followLinks(fullPath), parameter)
      // Reading a pipe would block the whole server.
      if (isSpecial(fullPath))
        throw usageError(
          `${parameter}: ${shortened(path)} is not a regular file.`,
          'Give the path of a file.',
        )
      return fullPath
    },
  }
}

const outside = (path: string, parameter: string, folder: string): RushesError =>
  usageError(
    `${parameter}: ${shortened(path)} is outside ${folder}. Nothing was sent.`,
    'Use a path inside the folder of the server. `rushes mcp --allow-outside` allows others.',
  )

function isSpecial(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false })
  return found !== undefined && !found.isFile() && !found.isDirectory()
}
