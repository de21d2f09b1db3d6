/**
 * One job of the MCP server: a run that is created and followed, or a batch. A call waits for it for at most 45 s. The
 * job then continues without the call, so that no response and no output is lost.
 */
import type { RushesError } from '../../errors.js'
import { onAbort } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { asRushesError, createInterrupts, type InterruptSource } from '../../host/interrupts.js'
import type { RunEstimate } from '../../journal/index.js'
import { sumOf } from '../../protocol/price.js'
import type { RunState } from '../../protocol/run-state.js'
import type { CreateNote, Recorder } from '../../runs/recorder.js'
import { once } from '../context/command-settings.js'
import type { Context } from '../context/context.js'
import type { InputStream, OutputStream } from '../process/io.js'
import type { Output } from '../terminal/output.js'
import type { Allowance } from './allowance.js'

export interface JobOptions {
  /** Context of the call that starts the job. */
  readonly base: Context
  /** Request id of the create, for its row in the journal. */
  readonly requestId?: string
  /** The existing run, if any. */
  readonly id?: string
  /** Counts the creates. Undefined for a job that creates nothing. */
  readonly allowance?: Pick<Allowance, 'take' | 'giveBack'> | undefined
  /** Called when a run was created. */
  onAccepted?(id: string, base: Context): void
  /** Called with each status received. */
  onState?(state: RunState): void
  readonly stdin: InputStream
  readonly stdout: OutputStream
}

export interface JobOutcome extends CollectedOutput {
  /** Empty on success. */
  readonly errors: readonly RushesError[]
}

export interface Job {
  /** Id of the job's run. Undefined until it is known. */
  readonly id: string | undefined
  /** The last status of each run. */
  readonly states: ReadonlyMap<string, RunState>
  /** Ids of the runs that it has created. */
  readonly created: readonly string[]
  /** Estimate of the last create, or of the run that was found. Undefined without a price. */
  readonly estimate: RunEstimate | undefined
  readonly collected: CollectedOutput
  readonly isDone: boolean
  /** Whether a create was sent and has no response yet. */
  readonly isUnanswered: boolean
  /** Never rejects. */
  readonly done: Promise<JobOutcome>
  /** Resolves when there is a run, or when the job is done. */
  readonly known: Promise<void>
  /** Whether it was interrupted: it ends soon, and no call can join it. */
  readonly isStopped: boolean
  /** Number of calls that wait for it. */
  waiters: number
  /** Called at each change that is worth a progress notification. */
  onChange: (() => void) | undefined
  /** Called when no call waits for it. Stops the job, but first waits for the response to a create that was sent. */
  abandon(): void
  /** Called when a call waits for it again. */
  join(): void
  interrupt(by: Parameters<InterruptSource['interrupt']>[0]): void
}

/** Called with the estimate of the run, and with its id if it already exists. */
export type OnFound = (id: string | undefined, estimate: RunEstimate | undefined) => void

export type JobFunction = (ctx: Context, found: OnFound) => Promise<unknown>

export function startJob(options: JobOptions, work: JobFunction): Job {
  const interrupts = createInterrupts()
  const { out, collected } = createCollector(options.base.out)
  const states = new Map<string, RunState>()
  const errors: RushesError[] = []
  let setKnown = () => {}
  const known = new Promise<void>((resolve) => {
    setKnown = resolve
  })
  let unanswered = 0
  let isAbandoned = false

  const state = {
    id: options.id,
    created: [] as string[],
    estimate: undefined as RunEstimate | undefined,
    isDone: false,
    isUnanswered: false,
    isStopped: false,
    waiters: 0,
    onChange: undefined as (() => void) | undefined,
  }
  const interrupt: Job['interrupt'] = (by) => {
    state.isStopped = true
    interrupts.interrupt(by)
  }
  const stopIfAbandoned = () => {
    if (isAbandoned && unanswered === 0) interrupt('SIGTERM')
  }
  const childOf = (base: Context): Context => ({
    ...base,
    out,
    interrupts,
    stdin: () => options.stdin,
    stdout: options.stdout,
    recorder: async () => observed(await base.recorder(), base),
    withLocal: once(() => childOf(base.withLocal())),
  })

  function observed(recorder: Recorder, base: Context): Recorder {
    return {
      ...recorder,
      // Not queued: the embedded service renders as long as the server runs.
      recordQueued() {},
      recordStatus(update) {
        recorder.recordStatus(update)
        states.set(update.state.id, update.state)
        options.onState?.(update.state)
        state.onChange?.()
      },
      // Require the intent: a session repeats creates by request id, so a create without an intent could be paid twice.
      note({ requestId = options.requestId, ...intent }) {
        state.estimate = intent.estimate
        return observedNote(recorder.note({ ...intent, requestId }, 'required'), base, intent.estimate)
      },
    }
  }

  function observedNote(note: CreateNote, base: Context, estimate: RunEstimate | undefined): CreateNote {
    const sum = sumOf([estimate?.millionths])
    let isCounted = false
    const uncount = () => {
      if (isCounted) options.allowance?.giveBack(1, sum)
      isCounted = false
    }
    let isUnanswered = false
    const setUnanswered = (is: boolean) => {
      unanswered += Number(is) - Number(isUnanswered)
      isUnanswered = is
      state.isUnanswered = unanswered > 0
      stopIfAbandoned()
    }
    return {
      ...note,
      sending() {
        if (!isCounted) options.allowance?.take(1, sum)
        isCounted = true
        note.sending()
        setUnanswered(true)
      },
      unsent() {
        note.unsent()
        uncount()
        setUnanswered(false)
      },
      accepted(id, body) {
        note.accepted(id, body)
        state.id ??= id
        state.created.push(id)
        options.onAccepted?.(id, base)
        setKnown()
        state.onChange?.()
        setUnanswered(false)
      },
      unknown(error) {
        const key = note.unknown(error)
        setUnanswered(false)
        return key
      },
    }
  }

  if (options.id !== undefined) setKnown()
  const found: OnFound = (id, estimate) => {
    state.estimate = estimate
    state.id ??= id
    if (id !== undefined) setKnown()
  }
  const done = work(childOf(options.base), found)
    .catch((thrown: unknown) => void errors.push(asRushesError(thrown)))
    .then((): JobOutcome => {
      state.isDone = true
      setKnown()
      return { ...collected, errors: [...errors, ...collected.errors] }
    })

  return Object.assign(state, {
    states,
    collected,
    done,
    known,
    abandon() {
      isAbandoned = true
      stopIfAbandoned()
    },
    join() {
      isAbandoned = false
    },
    interrupt,
  })
}

export type Waited = 'done' | 'late' | 'cancelled'

interface WaitLimits {
  readonly clock: Pick<Clock, 'alarm' | 'monotonic'>
  /** Monotonic time of the call, in milliseconds. */
  readonly sinceMs: number
  readonly limitMs: number
  /** Aborted when the client cancels the call. */
  readonly signal: AbortSignal
  /** Called every `everyMs` while it waits. */
  readonly tick?: { readonly everyMs: number; call(): void }
}

/** Waits until the work has ended, the limit has passed, or the call is cancelled. Does not stop the work. */
export function waitAtMost(
  work: Promise<unknown>,
  { clock, sinceMs, limitMs, signal, tick }: WaitLimits,
): Promise<Waited> {
  return new Promise((resolve) => {
    const settle = (waited: Waited) => {
      disarm()
      stopTicks()
      forget()
      resolve(waited)
    }
    let disarm = () => {}
    let stopTicks = () => {}
    const arm = () => {
      if (tick === undefined) return
      stopTicks = clock.alarm(tick.everyMs, () => {
        tick.call()
        arm()
      })
    }
    arm()
    disarm = clock.alarm(sinceMs + limitMs - clock.monotonic(), () => settle('late'))
    let forget = () => {}
    forget = onAbort(signal, () => settle('cancelled'))
    work.then(
      () => settle('done'),
      () => settle('done'),
    )
  })
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
