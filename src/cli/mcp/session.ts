/**
 * The state of one server: its connection, the runs that it has created, the work that continues between calls, and an
 * orderly end that names the runs it leaves.
 */
import { Readable, Writable } from 'node:stream'
import type { RushesError } from '../../errors.js'
import { onAbort } from '../../host/abort.js'
import { MAX_WAIT_MS } from '../../mcp/definitions.js'
import type { Call } from '../../mcp/tool.js'
import { type Waited, waitAtMost } from '../../mcp/wait.js'
import type { Connection, ConnectOptions, Context } from '../context/context.js'
import type { SignalName } from '../process/interrupts.js'
import { resumeCommand } from '../runs/resume.js'
import { plural } from '../terminal/plural.js'
import { type Budget, createBudget } from './budget.js'
import { type Job, startJob, type Work } from './job.js'
import { createPaths, type Paths } from './paths.js'

export interface SessionOptions {
  /** Absolute. */
  readonly folder: string
  readonly maxRuns: number
  readonly allowOutside: boolean
}

/** What a repeated call must equal to join the work of an earlier one. */
export interface JobKey {
  readonly name: string
  readonly arguments: string
}

export interface Task {
  readonly job: Job
  /** Of a create or a batch. */
  readonly key: JobKey | undefined
  /** Where the outputs of its run go. */
  readonly delivery: SavedDelivery | undefined
}

export interface SavedDelivery {
  readonly output: string
  readonly overwrite: boolean
}

export interface NewTask {
  readonly key?: JobKey
  readonly delivery?: SavedDelivery
  readonly requestId?: string
  /** The run, where it exists already. */
  readonly id?: string
}

export interface Session extends SessionOptions {
  readonly base: Context
  readonly paths: Paths
  readonly budget: Budget
  /** Work that continues; newest last. */
  tasks(): readonly Task[]
  start(task: NewTask, work: Work): Task
  /** Where the create of a run wanted its outputs. */
  deliveryOf(id: string): SavedDelivery | undefined
  /** Until `work` has ended, 45 s have passed, or the client has cancelled the call: then its jobs may stop. */
  wait(work: Promise<unknown>, waiting: Waiting): Promise<Waited>
  /** Interrupts all work, waits for answers to creates, and says which runs continue. */
  close(by: SignalName): Promise<void>
}

export interface Waiting {
  readonly call: Call
  readonly sinceMs: number
  readonly jobs: readonly Job[]
  /** For progress notifications. */
  describe(): string
}

const TICK_MS = 5_000
/** A run that was created before these goes to the folder of the session, unless the call names another output. */
const MAX_DELIVERIES = 1_000

export function openSession(base: Context, options: SessionOptions): Session {
  const { clock, out, interrupts } = base
  const budget = createBudget(options.maxRuns)
  const running = new Set<Task>()
  const connections = new Map<Context, Promise<Connection>>()
  const deliveries = new Map<string, SavedDelivery>()
  /** Runs created here that have not ended. */
  const open = new Map<string, Context>()

  function connect(from: Context, connectOptions: ConnectOptions = {}): Promise<Connection> {
    // Reports everything that is missing.
    if ((connectOptions.missing ?? []).length > 0) return from.connect(connectOptions)
    const known = connections.get(from) ?? from.connect({ render: true })
    connections.set(from, known)
    // A key that is stored meanwhile is found by the next call.
    known.catch(() => connections.delete(from))
    return known
  }

  function keepDelivery(id: string, delivery: SavedDelivery): void {
    deliveries.set(id, delivery)
    const [oldest] = deliveries.keys()
    if (deliveries.size > MAX_DELIVERIES && oldest !== undefined) deliveries.delete(oldest)
  }

  function start(given: NewTask, work: Work): Task {
    const { key, delivery, ...about } = given
    const job = startJob(
      {
        ...about,
        base,
        budget,
        connect,
        onAccepted(id, at) {
          open.set(id, at)
          if (delivery !== undefined) keepDelivery(id, delivery)
        },
        onState({ id, phase }) {
          if (phase !== 'going') open.delete(id)
        },
        stdin: Readable.from([]),
        stdout: discarding(),
      },
      work,
    )
    const task: Task = { job, key, delivery }
    running.add(task)
    job.done.then(() => running.delete(task))
    return task
  }

  async function wait(work: Promise<unknown>, { call, sinceMs, jobs, describe }: Waiting): Promise<Waited> {
    const say = () => call.progress(describe())
    for (const job of jobs) {
      job.waiters++
      job.join()
      job.onChange = say
    }
    const waited = await waitAtMost(work, {
      clock,
      sinceMs,
      limitMs: MAX_WAIT_MS,
      signal: call.signal,
      tick: { everyMs: TICK_MS, call: say },
    })
    for (const job of jobs) {
      job.waiters--
      if (job.onChange === say) job.onChange = undefined
    }
    if (waited === 'cancelled') {
      const left = jobs.filter(({ isDone, waiters }) => !isDone && waiters === 0)
      for (const job of left) job.abandon()
      for (const job of left) sayLeft(job)
    }
    return waited
  }

  /** The id of a cancelled create may come later. */
  function sayLeft(job: Job): void {
    job.known.then(() => {
      const ids = job.created.length > 0 ? job.created : job.id === undefined ? [] : [job.id]
      if (ids.length > 0) out.note(`The call was cancelled. Still running: ${ids.join(', ')}.`)
    })
  }

  async function close(by: SignalName): Promise<void> {
    const left = [...running].map(({ job }) => job)
    for (const job of left) job.interrupt(by)
    // Not the first signal: a client that has closed standard input sends SIGTERM as a matter of course.
    const forget = onAbort(interrupts.second, () => {
      for (const job of left) job.interrupt(by)
    })
    // Said at once: a client may kill the server while it waits.
    await sayOpen()
    if (left.some(({ isUnanswered }) => isUnanswered))
      out.warn(
        'Waiting up to 10 s for the responses to creates that were sent. If the server is killed before, `rushes list --status unconfirmed` shows them.',
      )
    const outcomes = await Promise.all(left.map(({ done }) => done))
    forget()
    for (const { errors } of outcomes) for (const error of errors) if (isNews(error)) out.error(error)
    await sayOpen()
  }

  async function sayOpen(): Promise<void> {
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
    budget,
    paths: createPaths(options.folder, options.allowOutside),
    tasks: () => [...running],
    start,
    deliveryOf: (id) => deliveries.get(id),
    wait,
    close,
  }
}

/** Runs that continue are named together; what remains are unconfirmed creates, batches and real failures. */
const isNews = ({ code, message, runId }: RushesError): boolean =>
  !(code === 'interrupted' && (runId !== undefined || message === 'Interrupted.'))

const discarding = (): Writable => new Writable({ write: (_chunk, _encoding, done) => done() })
