/**
 * One piece of work of the server: a run that is created and followed, or a batch. A call waits for it for 45 s at most;
 * the work continues without the call, so that no answer of the service and no output is lost.
 */
import type { RushesError } from '../../errors.js'
import type { RunState } from '../../protocol/run-state.js'
import type { Connection, ConnectOptions, Context } from '../context/context.js'
import { once } from '../context/once.js'
import { asRushesError } from '../process/exit.js'
import { createInterrupts, type InterruptSource } from '../process/interrupts.js'
import type { InputStream, OutputStream } from '../process/io.js'
import type { CreateNote, Recorder } from '../runs/record.js'
import type { Budget } from './budget.js'
import { type Collected, createCollector } from './collect.js'

export interface JobOptions {
  readonly base: Context
  /** The name of the create, for its row in the journal. */
  readonly requestId?: string
  /** The run, where it exists already. */
  readonly id?: string
  readonly budget: Budget
  connect(base: Context, options: ConnectOptions | undefined): Promise<Connection>
  /** A run was created, or has ended. */
  onAccepted?(id: string, base: Context): void
  onState?(state: RunState): void
  readonly stdin: InputStream
  readonly stdout: OutputStream
}

export interface Outcome extends Collected {
  /** Empty when all went well. */
  readonly errors: readonly RushesError[]
}

export interface Job {
  /** The run that it is about, as soon as there is one. */
  readonly id: string | undefined
  /** The last status of each run. */
  readonly states: ReadonlyMap<string, RunState>
  /** The runs that it has created. */
  readonly created: readonly string[]
  readonly collected: Collected
  readonly isDone: boolean
  /** A create was sent and has no answer yet. */
  readonly isUnanswered: boolean
  /** Never rejects. */
  readonly done: Promise<Outcome>
  /** Resolves when there is a run, or when the job is done. */
  readonly known: Promise<void>
  /** Whether it was interrupted: it ends soon, and no call can join it. */
  readonly isStopped: boolean
  /** Calls that wait for it. */
  waiters: number
  /** Called at each change that is worth a progress notification. */
  onChange: (() => void) | undefined
  /** Nobody waits any longer. What was not sent is not sent; an unanswered create is waited for first. */
  abandon(): void
  /** A call waits for it again. */
  join(): void
  interrupt(by: Parameters<InterruptSource['interrupt']>[0]): void
}

/** `found` is told the id of a run that exists already. */
export type Work = (ctx: Context, found: (id: string) => void) => Promise<unknown>

export function startJob(options: JobOptions, work: Work): Job {
  const interrupts = createInterrupts()
  const { out, collected } = createCollector(options.base.out)
  const states = new Map<string, RunState>()
  const errors: RushesError[] = []
  let sayKnown = () => {}
  const known = new Promise<void>((resolve) => {
    sayKnown = resolve
  })
  let unanswered = 0
  let isAbandoned = false

  const state = {
    id: options.id,
    created: [] as string[],
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
    connect: (connectOptions) => options.connect(base, connectOptions),
    recorder: async () => observed(await base.recorder(), base),
    withLocal: once(() => childOf(base.withLocal())),
  })

  function observed(recorder: Recorder, base: Context): Recorder {
    return {
      ...recorder,
      // The embedded service renders for as long as the server lives.
      recordQueued() {},
      recordStatus(update) {
        recorder.recordStatus(update)
        states.set(update.state.id, update.state)
        options.onState?.(update.state)
        state.onChange?.()
      },
      // A session repeats creates by their name: one without an intent could be paid twice.
      note: ({ requestId = options.requestId, ...intent }) =>
        observedNote(recorder.note({ ...intent, requestId }, 'required'), base),
    }
  }

  function observedNote(note: CreateNote, base: Context): CreateNote {
    let isCounted = false
    const uncount = () => {
      if (isCounted) options.budget.giveBack()
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
        if (!isCounted) options.budget.take()
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
        sayKnown()
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

  if (options.id !== undefined) sayKnown()
  const found = (id: string) => {
    state.id ??= id
    sayKnown()
  }
  const done = work(childOf(options.base), found)
    .catch((thrown: unknown) => void errors.push(asRushesError(thrown)))
    .then((): Outcome => {
      state.isDone = true
      sayKnown()
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
