/**
 * One job of the MCP server: a run that is created and followed, or a batch. A call waits for it for at most 45 s. The
 * job then continues without the call, so that no response and no output is lost.
 */
import type { RushesError } from '../../errors.js'
import { raceAbort, withTimeout } from '../../host/abort.js'
import { type Clock, every } from '../../host/clock.js'
import {
  asRushesError,
  createInterrupts,
  type InterruptSource,
  type SignalName,
} from '../../host/interrupts.js'
import type { RunEstimate } from '../../journal/index.js'
import type { RunState } from '../../protocol/run-state.js'
import type { BatchEvent } from '../../runs/batch.js'
import type { RunEvent } from '../../runs/schedule.js'
import type { Context } from '../context/context.js'
import type { InputStream, OutputStream } from '../process/io.js'
import type { Observer } from '../runs/carry-out.js'
import type { Output } from '../terminal/output.js'
import { type Call, MAX_WAIT_MS } from './tool.js'

export interface JobOrigin {
  /** Whether it creates one run. */
  readonly isCreate?: boolean
  /** The existing run, if any. */
  readonly id?: string
}

export interface JobOptions extends JobOrigin {
  /** Context of the call that starts the job. */
  readonly base: Context
  /** Called when a run was created. */
  onAccepted?(id: string, base: Context): void
  /** Called with each status received. */
  onState?(state: RunState): void
  /** Called if it is interrupted while a create has no response. */
  onUnanswered?(): void
  readonly stdin: InputStream
  readonly stdout: OutputStream
}

export interface JobOutcome extends CollectedOutput {
  /** Empty on success. */
  readonly errors: readonly RushesError[]
}

/** A job with its state, which only the functions below change, and the call that waits for it. */
export interface Job {
  readonly options: JobOptions
  readonly interrupts: InterruptSource
  readonly noCreates: AbortController
  readonly out: Output
  readonly collected: CollectedOutput
  /** Id of the job's run. Undefined until it is known. */
  id: string | undefined
  /** The last status of each run. */
  readonly states: Map<string, RunState>
  /** Ids of the runs that it has created. */
  readonly created: string[]
  /** Estimate of the last create, or of the run that was found. Undefined without a price. */
  estimate: RunEstimate | undefined
  isDone: boolean
  /** Whether it was interrupted: it ends soon, and no call can join it. */
  isStopped: boolean
  /** Number of calls that wait for it. */
  waiters: number
  /** Called at each change that is worth a progress notification. */
  onChange: (() => void) | undefined
  /** Resolves when there is a run, or when the job is done. */
  readonly known: Promise<void>
  setKnown(): void
  /** Never rejects. */
  readonly done: Promise<JobOutcome>
}

type JobState = Omit<Job, 'done'>

/** What a command tells the job that runs it. */
export interface JobObserver extends Observer {
  see(event: RunEvent | BatchEvent): void
  /** Called with each status received. */
  onState(state: RunState): void
  /** Called with the estimate of the run, and with its id if it already exists. */
  onFound(id: string | undefined, estimate: RunEstimate | undefined): void
}

export type JobFunction = (ctx: Context, observer: JobObserver) => Promise<unknown>

export function startJob(options: JobOptions, work: JobFunction): Job {
  let setKnown = () => {}
  const known = new Promise<void>((resolve) => {
    setKnown = resolve
  })
  const state: JobState = {
    ...createCollector(options.base.out),
    ...{ options, known, setKnown, interrupts: createInterrupts(), states: new Map(), created: [] },
    noCreates: new AbortController(),
    ...{ id: options.id, estimate: undefined, waiters: 0, onChange: undefined },
    ...{ isDone: false, isStopped: false },
  }
  if (state.id !== undefined) setKnown()
  const done = work(childOf(state, options.base), observerOf(state))
    .then(
      () => [],
      (thrown: unknown) => [asRushesError(thrown)],
    )
    .then((errors): JobOutcome => {
      state.isDone = true
      setKnown()
      return { ...state.collected, errors: [...errors, ...state.collected.errors] }
    })
  return Object.assign(state, { done })
}

/** After its call was cancelled. The response to a create that was sent is awaited, and another call may join until then. */
export function cancelJob(job: Job): void {
  if (job.options.isCreate !== true) {
    interrupt(job, 'SIGTERM')
    return
  }
  job.noCreates.abort()
  job.known.then(() => {
    if (job.waiters === 0) interrupt(job, 'SIGTERM')
  })
}

export function interrupt(job: JobState, by: SignalName): void {
  job.isStopped = true
  job.interrupts.interrupt(by)
}

/** The context of the command that does the work. */
function childOf(state: JobState, base: Context): Context {
  const { out, interrupts, options } = state
  return {
    ...base,
    out,
    interrupts,
    stdin: () => options.stdin,
    stdout: options.stdout,
    sessionOf: undefined,
  }
}

function observerOf(state: JobState): JobObserver {
  const { options, states } = state
  const onState = (update: RunState): void => {
    states.set(update.id, update)
    options.onState?.(update)
    state.onChange?.()
  }
  return {
    // A session repeats creates by request id, so a create without an intent could be paid twice.
    policy: 'required',
    noCreates: state.noCreates.signal,
    onState,
    onFound(id, estimate) {
      state.estimate = estimate
      state.id ??= id
      if (id !== undefined) state.setKnown()
    },
    see(seen) {
      const event = seen.is === 'run' ? seen.event : seen
      if (event.is === 'unanswered') options.onUnanswered?.()
      if (event.is === 'status') onState(event.state)
      if (event.is !== 'created') return
      const { id } = event.run
      state.id ??= id
      state.created.push(id)
      options.onAccepted?.(id, options.base)
      state.setKnown()
      state.onChange?.()
    },
  }
}

export type Waited = 'done' | 'late' | 'cancelled'

const TICK_MS = 5_000

/** Waits until the work has ended, 45 s have passed since the call, or it is cancelled. Does not stop the work. */
export async function waitAtMost(
  work: Promise<unknown>,
  { sinceMs, signal }: Pick<Call, 'sinceMs' | 'signal'>,
  clock: Clock,
  onTick: () => void,
): Promise<Waited> {
  const late = new Error('late')
  const stopTicks = every(clock, TICK_MS, onTick)
  try {
    const timeoutMs = sinceMs + MAX_WAIT_MS - clock.monotonic()
    const timeout = { timeoutMs, reason: () => late, clock, signal }
    await withTimeout((limited) => raceAbort(work, limited), timeout)
    return 'done'
  } catch (error) {
    return error === late ? 'late' : signal.aborted ? 'cancelled' : 'done'
  } finally {
    stopTicks()
  }
}

export interface CollectedOutput {
  /** Objects that a command prints under `--json`. */
  readonly objects: readonly unknown[]
  readonly errors: readonly RushesError[]
  readonly warnings: readonly string[]
}

/** `base` is the output of the server, whose standard error is its log. */
function createCollector(base: Output): { readonly out: Output; readonly collected: CollectedOutput } {
  const objects: unknown[] = []
  const errors: RushesError[] = []
  const warnings: string[] = []
  return {
    collected: { objects, errors, warnings },
    out: {
      mode: { json: true, quiet: true, debug: base.mode.debug },
      stdoutIsTerminal: false,
      columns: undefined,
      style: base.style,
      line: (text) => void objects.push(text),
      json: (value) => void objects.push(value),
      picture() {},
      note: base.debug,
      warn: (text) => void warnings.push(text),
      debug: base.debug,
      error: (error) => void errors.push(error),
      setAside() {},
    },
  }
}
