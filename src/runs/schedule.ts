/**
 * Carries out the rows of a command: one schedule decides which request is sent next under the rate limit.
 *
 * - Creates go in order and before status requests: the first alone until a run was accepted, then at most four
 *   unanswered.
 * - A run that is due is asked for as soon as the budget allows, the longest due first. Nothing is spread or predicted.
 * - A row begins when the rows that it needs are made.
 * - The schedule runs on its own and the generator only hands out its events: a slow reader delays no request.
 *
 * A signal, a time limit or a refusal is no exception: each row ends with a result. Only a bug rejects.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { EXIT, type RushesError } from '../errors.js'
import { onAbort } from '../host/abort.js'
import { Interruption } from '../host/interrupts.js'
import { RUNS_LIMIT } from '../protocol/limits.js'
import { addTo } from '../protocol/parse.js'
import type { RunState } from '../protocol/run-state.js'
import { ANSWER_GRACE_MS, type Result, type Row, Run, type RunsSession } from './run.js'

export type RunEvent =
  | { readonly is: 'created'; readonly run: Run }
  | { readonly is: 'status'; readonly run: Run; readonly state: RunState }
  /** A status request had no valid response. It is sent again. */
  | { readonly is: 'error'; readonly run: Run; readonly error: RushesError }
  /** A signal has arrived while a create has no response: it is awaited for up to ten seconds. */
  | { readonly is: 'unanswered' }
  | { readonly is: 'ended'; readonly run: Run; readonly result: Result }

export async function* carryOut(rows: readonly Row[], session: RunsSession): AsyncGenerator<RunEvent> {
  const schedule = new Schedule(rows, session)
  let bug: { readonly error: unknown } | undefined
  const done = schedule.carryOut().catch((error: unknown) => {
    bug = { error }
  })
  try {
    while (await schedule.hasEvents()) yield* schedule.takeEvents()
  } finally {
    // A reader that ends before may release what the rows need, such as the claim of a batch.
    schedule.abandon()
    await done
  }
  if (bug !== undefined) throw (bug as { readonly error: unknown }).error
}

/**
 * Resolves when the signals that have arrived are handled. A command gets here without a pause, so a signal could wait
 * until the first create is sent. The event loop reads signals once a turn, before `setImmediate`: the first turn may
 * have begun before the signal came.
 */
async function signalsHandled(): Promise<void> {
  await nextTurn()
  await nextTurn()
}

const MAX_UNANSWERED_CREATES = 4
/** A service without a limit may have thousands of runs that are due. */
const MAX_UNANSWERED_POLLS = RUNS_LIMIT.requests
/** Slots that status requests leave free while creates are to come. */
const SPARE_FOR_CREATES = 2
/** What the last status request of a run has, whose time limit has passed. */
const LAST_REQUEST_MS = 1_000

class Schedule {
  readonly #session: RunsSession
  readonly #runs: readonly Run[]
  /** The rows that need each row. */
  readonly #users = new Map<string, Run[]>()
  readonly #ready: Run[] = []
  /** By the time when they are due. */
  readonly #following: Run[] = []
  readonly #asking = new Set<Run>()
  readonly #creating = new Set<Run>()
  readonly #delivering = new Set<Run>()
  /** Runs that have ended, with their results, and are not settled yet. */
  readonly #endings: [Run, Result][] = []
  /** Created and not known to have ended. */
  #inFlight = 0
  #open: number
  #waiting: number
  #isAccepted = false
  /** Every create so far has met a network or service error. Further ones would only do the same. */
  #isServiceDown = true
  #isServiceAnswering = false
  #mayCreate = true
  #isStopped = false
  /** No time limit passes before. */
  #limitAtMs = Number.POSITIVE_INFINITY
  #disarm = () => {}
  #bug: { readonly error: unknown } | undefined
  readonly #events: RunEvent[] = []
  #isFinished = false
  #wake = () => {}
  #notify = () => {}

  constructor(rows: readonly Row[], session: RunsSession) {
    this.#session = session
    const created = new Map<string, string | undefined>()
    this.#runs = rows.map((row, index) => new Run(row, index, session, created))
    this.#open = rows.length
    this.#waiting = rows.length
    for (const run of this.#runs) for (const name of run.row.needs ?? []) addTo(this.#users, name, run)
  }

  async carryOut(): Promise<void> {
    const { interrupts, noCreates, client } = this.#session
    const forget = [
      onAbort(interrupts.first, () => this.#stop(interrupts.first.reason)),
      onAbort(interrupts.second, () => this.#abortCreates(interrupts.second.reason)),
      onAbort(noCreates, () => this.#stopCreates()),
    ]
    try {
      await signalsHandled()
      for (const run of this.#runs) if (run.missing === 0 && run.phase === 'waiting') this.#begin(run)
      for (;;) {
        this.#settleEndings()
        if (this.#open === 0) break
        const waitMs = this.#startWhatMay()
        if (this.#endings.length === 0) await this.#pause(waitMs)
      }
    } finally {
      for (const each of forget) each()
      this.#disarm()
      client.limiter.spareForCreates = 0
      this.#isFinished = true
      this.#notify()
    }
    if (this.#bug !== undefined) throw this.#bug.error
  }

  /** False when all events were taken and none will come. */
  async hasEvents(): Promise<boolean> {
    while (this.#events.length === 0 && !this.#isFinished)
      await new Promise<void>((resolve) => {
        this.#notify = resolve
      })
    return this.#events.length > 0
  }

  takeEvents(): readonly RunEvent[] {
    return this.#events.splice(0)
  }

  /** Its reader has ended: nothing more is started, and creates that were sent are awaited as after a signal. */
  abandon(): void {
    if (!this.#isFinished) this.#stop(new Interruption('SIGTERM'))
  }

  /** Starts what may start now. Returns how long nothing else can start. */
  #startWhatMay(): number {
    const { clock, client } = this.#session
    const nowMs = clock.monotonic()
    if (nowMs >= this.#limitAtMs) this.#expire(nowMs)
    this.#startCreates()
    const hasCreates = this.#mayCreate && this.#ready.length + this.#waiting > 0
    client.limiter.spareForCreates = hasCreates ? SPARE_FOR_CREATES : 0
    return Math.min(this.#limitAtMs - nowMs, this.#startPolls(nowMs))
  }

  #startCreates(): void {
    const { concurrency = Number.POSITIVE_INFINITY } = this.#session
    while (this.#ready.length > 0) {
      if (!this.#mayCreate) {
        for (const run of this.#ready.splice(0)) this.#end(run, { is: 'unsent' })
        return
      }
      if (this.#creating.size >= (this.#isAccepted ? MAX_UNANSWERED_CREATES : 1)) return
      if (this.#inFlight + this.#creating.size >= concurrency) return
      const run = this.#ready.shift() as Run
      void this.#operate(run, this.#creating, () => this.#create(run))
    }
  }

  #startPolls(nowMs: number): number {
    while (this.#asking.size < MAX_UNANSWERED_POLLS) {
      const [run] = this.#following
      if (run === undefined) break
      if (run.dueAtMs > nowMs) return run.dueAtMs - nowMs
      this.#following.shift()
      void this.#operate(run, this.#asking, () => this.#ask(run))
    }
    return Number.POSITIVE_INFINITY
  }

  /**
   * Ends the runs whose time limit has passed. Each has a last status request: the one in flight, or else one that is
   * sent if the budget has room for it at this moment.
   */
  #expire(nowMs: number): void {
    const { limiter } = this.#session.client
    let nextMs = Number.POSITIVE_INFINITY
    for (const run of [...this.#following, ...this.#asking]) {
      const isAsking = this.#asking.has(run)
      if (run.limitAtMs <= nowMs) {
        this.#stopCreates()
        const hasRoom = limiter.load() < 1 && this.#asking.size < MAX_UNANSWERED_POLLS
        if (run.isAskedLast || !(isAsking || hasRoom)) {
          run.abort(new Error('the time limit has passed'))
          if (isAsking) continue
          this.#following.splice(this.#following.indexOf(run), 1)
          this.#stopRun(run, 'time limit')
          continue
        }
        run.isAskedLast = true
        run.limitAtMs = nowMs + LAST_REQUEST_MS
        if (!isAsking) {
          this.#following.splice(this.#following.indexOf(run), 1)
          void this.#operate(run, this.#asking, () => this.#ask(run))
        }
      }
      nextMs = Math.min(nextMs, run.limitAtMs)
    }
    this.#limitAtMs = nextMs
  }

  async #create(run: Run): Promise<void> {
    await run.create(() => this.#mayCreate)
    const { result } = run
    if (run.known !== undefined) {
      this.#isAccepted = true
      this.#isServiceDown = false
      this.#inFlight++
      this.#tell({ is: 'created', run })
      if (this.#session.isFollowed === false) run.end({ is: 'created' })
    } else if (result !== undefined && 'error' in result && result.error !== undefined) {
      const { error } = result
      const isOutage = error.exitCode === EXIT.serviceBroken || error.exitCode === EXIT.network
      // A mistake in the input was found before the create was sent, and says nothing of the service.
      if (!isOutage && error.exitCode !== EXIT.usage) this.#isServiceDown = false
      const isDown = isOutage && this.#isServiceDown
      if (this.#session.stopsCreates(error) || isDown || !run.isRecordable) this.#stopCreates()
    }
  }

  async #ask(run: Run): Promise<void> {
    const before = run.state
    await run.ask()
    const { state, trouble } = run
    if (state !== undefined && state !== before) {
      this.#isServiceAnswering = true
      this.#tell({ is: 'status', run, state })
    }
    if (trouble !== undefined) this.#tell({ is: 'error', run, error: trouble })
  }

  async #operate(run: Run, busy: Set<Run>, work: () => Promise<void>): Promise<void> {
    busy.add(run)
    try {
      await work()
    } catch (error) {
      this.#failWith(error)
    }
    busy.delete(run)
    this.#queue(run)
    this.#wake()
  }

  #begin(run: Run): void {
    this.#waiting--
    try {
      run.begin()
    } catch (error) {
      // Before the schedule stops, which would end it a second time.
      run.end({ is: 'unsent' })
      this.#failWith(error)
    }
    if (run.phase === 'following') this.#inFlight++
    this.#queue(run)
  }

  /** Puts a run where its next step is started. */
  #queue(run: Run): void {
    if (run.phase === 'delivering' && !this.#delivering.has(run) && this.#bug === undefined) {
      void this.#operate(run, this.#delivering, () => run.deliver())
    } else if (run.result !== undefined) this.#end(run, run.result)
    else if (this.#isStopped) this.#stopRun(run, 'signal')
    else if (run.phase === 'ready') this.#ready.push(run)
    else if (run.isAskedLast) this.#stopRun(run, 'time limit')
    else {
      this.#limitAtMs = Math.min(this.#limitAtMs, run.limitAtMs)
      const at = this.#following.findLastIndex(({ dueAtMs }) => dueAtMs <= run.dueAtMs) + 1
      this.#following.splice(at, 0, run)
    }
  }

  #stopRun(run: Run, why: 'time limit' | 'signal'): void {
    run.stop(why, this.#isServiceAnswering)
    if (run.result === undefined) this.#queue(run)
    else this.#end(run, run.result)
  }

  #end(run: Run, result: Result): void {
    run.end(result)
    this.#endings.push([run, result])
    this.#wake()
  }

  /** One after the other, so that a chain of thousands of rows does not fill the stack. */
  #settleEndings(): void {
    for (const [run, result] of this.#endings) this.#settle(run, result)
    this.#endings.length = 0
  }

  #settle(run: Run, result: Result): void {
    this.#open--
    const isFailure = 'error' in result && result.error !== undefined
    if (isFailure && this.#session.isFailFast) this.#stopCreates()
    if (run.known !== undefined && result.is !== 'running') this.#inFlight--
    this.#tell({ is: 'ended', run, result })
    const isMade = result.is === 'succeeded' || (result.is === 'done' && result.isMade)
    for (const user of this.#users.get(run.row.name) ?? []) {
      if (user.phase !== 'waiting') continue
      user.missing--
      if (isMade && user.missing === 0 && !this.#isStopped) this.#begin(user)
      if (isMade || this.#isStopped) continue
      this.#waiting--
      const by = result.is === 'blocked' ? result.by : run.row.name
      this.#end(user, result.is === 'unsent' ? { is: 'unsent' } : { is: 'blocked', by })
    }
  }

  #stopCreates(): void {
    this.#mayCreate = false
    this.#wake()
  }

  #failWith(error: unknown): void {
    this.#bug ??= { error }
    this.#stop(new Interruption('SIGTERM'))
  }

  #stop(reason: Interruption): void {
    if (this.#isStopped) return
    this.#isStopped = true
    this.#mayCreate = false
    let isUnanswered = false
    for (const run of this.#creating)
      if (run.isUnanswered) isUnanswered = true
      else run.abort(reason)
    if (isUnanswered) {
      if (!reason.isSilent) this.#tell({ is: 'unanswered' })
      this.#disarm = this.#session.clock.alarm(ANSWER_GRACE_MS, () => this.#abortCreates(reason))
    }
    for (const run of this.#asking) run.abort(reason)
    for (const run of [...this.#ready.splice(0), ...this.#following.splice(0)]) this.#stopRun(run, 'signal')
    for (const run of this.#runs)
      if (run.phase === 'waiting') {
        this.#waiting--
        this.#stopRun(run, 'signal')
      }
    this.#wake()
  }

  #abortCreates(reason: unknown): void {
    for (const run of this.#creating) run.abort(reason)
  }

  #tell(event: RunEvent): void {
    this.#events.push(event)
    this.#notify()
  }

  /** Waits until something has happened, at most `ms`. */
  async #pause(ms: number): Promise<void> {
    const { clock } = this.#session
    const over = new AbortController()
    const happened = new Promise<void>((resolve) => {
      this.#wake = resolve
    })
    if (ms === Number.POSITIVE_INFINITY) return happened
    const slept = clock.sleep(Math.max(1, ms), over.signal).catch(() => {})
    await Promise.race([happened, slept])
    over.abort()
  }
}

/** Exit codes after which a command sends no more creates: these would fail the same way, or could be paid twice. */
const STOPPING: readonly number[] = [EXIT.refused, EXIT.key, EXIT.account, EXIT.outcomeUnknown]

export const stopsCreating = (error: RushesError): boolean => STOPPING.includes(error.exitCode)
