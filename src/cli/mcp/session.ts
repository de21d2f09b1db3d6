/**
 * The state of one MCP server: its connection, the runs that it has created, and the jobs that continue between calls.
 * On shutdown it reports the runs that continue.
 */
import { Readable, Writable } from 'node:stream'
import type { RushesError } from '../../errors.js'
import { onAbort } from '../../host/abort.js'
import type { SignalName } from '../../host/interrupts.js'
import type { Connection, Context } from '../context/context.js'
import { maxCostOf, openPrices, type Prices } from '../models/prices.js'
import { resumeCommand } from '../runs/resume.js'
import { plural } from '../terminal/format.js'
import type { Output } from '../terminal/output.js'
import { type Allowance, createAllowance } from './allowance.js'
import { type CallPaths, createPaths } from './call-paths.js'
import {
  cancelJob,
  interrupt,
  type Job,
  type JobFunction,
  type JobOrigin,
  startJob,
  type Waited,
  waitAtMost,
} from './job.js'
import type { Call } from './tool.js'

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

interface NewTask extends JobOrigin {
  readonly key?: JobKey
  readonly delivery?: SavedDelivery
}

export interface SessionMoney {
  readonly prices: Prices
  readonly allowance: Allowance
}

/** The session as one call sees it. */
export interface McpSession {
  readonly state: SessionState
  /** Has the settings, the API key and the documents of the models of the time of the call. */
  readonly base: Context
}

interface CallWait {
  readonly call: Call
  readonly jobs: readonly Job[]
  /** Text for progress notifications. */
  describe(): string
}

/**
 * Number of runs whose output settings are kept. Outputs of older runs go to the folder of the session, unless the call
 * gives another output.
 */
const MAX_DELIVERIES = 1_000

export interface SessionState {
  readonly base: Context
  readonly options: McpSessionOptions
  readonly paths: CallPaths
  /** Unfinished tasks, newest last. */
  readonly running: Set<SessionTask>
  readonly connections: Map<Context, Promise<Connection>>
  /** Output settings that were given when a run was created. */
  readonly deliveries: Map<string, SavedDelivery>
  /** Runs that this session created and that have not ended, with the context of their service. */
  readonly open: Map<string, Context>
  allowance: Promise<Allowance> | undefined
  isClosing: boolean
  /** Whether its shutdown has said that it waits for responses. */
  isWaiting: boolean
}

export const openSession = (base: Context, options: McpSessionOptions): SessionState => ({
  base,
  options,
  paths: createPaths(options.folder, options.allowOutside),
  running: new Set(),
  connections: new Map(),
  deliveries: new Map(),
  open: new Map(),
  allowance: undefined,
  isClosing: false,
  isWaiting: false,
})

/** The session with the settings of its start. Sends nothing. */
export const firstSession = (state: SessionState): McpSession => ({
  state,
  base: inSession(state, state.base),
})

const inSession = (state: SessionState, of: Context): Context => ({
  ...of,
  connect: () => connect(state, of),
})

/** Returns the session for a call. Asks the service for its list of models, if it is not known or older than a day. */
export async function sessionForCall(state: SessionState): Promise<McpSession> {
  const base = inSession(state, state.base)
  // A document of the local service that cannot be read is reported by the call that needs it.
  await base.models().then(
    (models) => models.refreshIfOld(),
    () => {},
  )
  return { state, base }
}

/** Prices, and what the session may still create. Rejects with `usage` if the settings are not valid. */
export async function moneyOf({ state, base }: McpSession): Promise<SessionMoney> {
  const prices = await openPrices(base)
  state.allowance ??= openAllowance(base, state.options, prices)
  return { allowance: await state.allowance, prices }
}

async function openAllowance(
  ctx: Context,
  options: McpSessionOptions,
  { currency }: Prices,
): Promise<Allowance> {
  const maxCost = await maxCostOf(ctx, options.maxCost)
  return createAllowance({ maxRuns: options.maxRuns, maxCost, currency })
}

function connect({ connections }: SessionState, from: Context): Promise<Connection> {
  const known = connections.get(from) ?? from.connect({ render: true })
  connections.set(from, known)
  // Do not cache a failure: the next call may find a key that was stored in the meantime.
  known.catch(() => connections.delete(from))
  return known
}

function keepDelivery({ deliveries }: SessionState, id: string, delivery: SavedDelivery): void {
  deliveries.set(id, delivery)
  const [oldest] = deliveries.keys()
  if (deliveries.size > MAX_DELIVERIES && oldest !== undefined) deliveries.delete(oldest)
}

export function startTask({ state, base }: McpSession, newTask: NewTask, work: JobFunction): SessionTask {
  const { running, open } = state
  const { key, delivery, ...jobOptions } = newTask
  const job = startJob(
    {
      ...jobOptions,
      base,
      onAccepted(id, at) {
        open.set(id, at)
        if (delivery !== undefined) keepDelivery(state, id, delivery)
      },
      onState({ id, phase }) {
        if (phase !== 'running') open.delete(id)
      },
      onUnanswered() {
        if (state.isClosing && !state.isWaiting)
          state.base.out.warn(
            'Waiting up to 10 s for the responses to creates that were sent. If the server is killed before, ' +
              '`rushes list --status unconfirmed` shows them.',
          )
        state.isWaiting = state.isClosing
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

/**
 * Waits until `work` has ended, 45 s have passed, or the client has cancelled the call. After a cancel, its jobs may
 * stop.
 */
export async function waitFor(
  { base: { clock, out } }: McpSession,
  work: Promise<unknown>,
  { call, jobs, describe }: CallWait,
): Promise<Waited> {
  const report = () => call.progress(describe())
  for (const job of jobs) {
    job.waiters++
    job.onChange = report
  }
  const waited = await waitAtMost(work, call, clock, report)
  for (const job of jobs) {
    job.waiters--
    if (job.onChange === report) job.onChange = undefined
  }
  if (waited === 'cancelled') {
    const left = jobs.filter(({ isDone, waiters }) => !isDone && waiters === 0)
    for (const job of left) cancelJob(job)
    for (const job of left) noteStillRunning(out, job)
  }
  return waited
}

/** Waits for the id: the response to a cancelled create may come later. */
function noteStillRunning({ note }: Output, job: Job): void {
  job.known.then(() => {
    const ids = job.created.length > 0 ? job.created : job.id === undefined ? [] : [job.id]
    if (ids.length > 0) note(`The call was cancelled. Still running: ${ids.join(', ')}.`)
  })
}

/** Interrupts all work, waits for responses to creates, and reports the runs that continue. */
export async function closeSession(state: SessionState, by: SignalName): Promise<void> {
  const { out, interrupts } = state.base
  const left = [...state.running].map(({ job }) => job)
  state.isClosing = true
  for (const job of left) interrupt(job, by)
  // Interrupts again at the second signal. The first one is normal: most clients send SIGTERM after closing standard
  // input.
  const forget = onAbort(interrupts.second, () => {
    for (const job of left) interrupt(job, by)
  })
  // Warn before waiting: a client may kill the server.
  await warnOfOpenRuns(state)
  const outcomes = await Promise.all(left.map(({ done }) => done))
  forget()
  for (const { errors } of outcomes) for (const error of errors) if (isWorthReporting(error)) out.error(error)
  await warnOfOpenRuns(state)
}

async function warnOfOpenRuns({ base, open }: SessionState): Promise<void> {
  for (const isLocal of [false, true]) {
    const ids = [...open].filter(([, at]) => at.globals.local === isLocal).map(([id]) => id)
    const [first] = ids
    if (first === undefined) continue
    const at = open.get(first) ?? base
    if (isLocal) (await at.openJournal()).queued(await at.address(), ids)
    const resume = resumeCommand({ globals: at.globals, delivery: ['-d'] }, 'wait', ids)
    const state = `${ids.length === 1 ? 'is' : 'are'} ${isLocal ? 'not finished' : 'still running'}`
    for (const id of ids) open.delete(id)
    base.out.warn(
      `${ids.length === 1 ? first : `${plural(ids.length, 'run')} (${ids.join(', ')})`} ${state}. Resume with \`${resume}\`.`,
    )
  }
}

/** Whether to report the error on shutdown. Runs that continue are already reported together. */
const isWorthReporting = ({ code, message, runId }: RushesError): boolean =>
  !(code === 'interrupted' && (runId !== undefined || message === 'Interrupted.'))

const discarding = (): Writable => new Writable({ write: (_chunk, _encoding, done) => done() })
