/**
 * Runs a schedule: asks `nextOf` for the next request, sends it, and repeats after each response. Knows nothing about
 * runs except their functions and results.
 */
import { onAbort, raceAbort } from '../host/abort.js'
import type { Clock } from '../host/clock.js'
import { LAST_REQUEST_MS, limitAlarm } from '../host/limit-alarm.js'
import { jittered } from '../host/retry.js'
import type { Limit } from '../limiter/window.js'
import { POLL_INTERVAL_MS } from '../protocol/limits.js'
import { type InFlight, nextOf, paceOf, type ScheduleState } from './next.js'

export interface Task {
  /**
   * Creates the run. Undefined if the run already exists. Resolves with the monotonic time of its creation, with `not
   * followed` if it was created and is not polled, or with undefined if it was not created. Never rejects.
   */
  create?(): Promise<number | 'not followed' | undefined>
  /** Sends one status request. Rejects only with the signal's reason. */
  poll(options: PollOptions): Promise<Polled>
  /** Called when the timeout of the run has passed. It is no longer polled. */
  expire?(): void
  /** Runs of one group have similar durations. */
  readonly group: string
  /** Length of the longest chain of runs that wait for its output. Default: 0. */
  readonly chainLength?: number
}

export interface PollOptions {
  readonly signal: AbortSignal
  /** Uses the priority of creates in the rate limiter. */
  readonly isUrgent: boolean
}

export type Polled =
  /** Range for the next request, in milliseconds from now. */
  | { readonly is: 'running'; readonly next: { readonly soonestMs: number; readonly latestMs: number } }
  /** `durationMs`: duration of the run, if known. */
  | { readonly is: 'over'; readonly durationMs?: number | undefined; readonly next?: Arrivals }
  /** No valid response. Retry after `againInMs`, not before. */
  | { readonly is: 'error'; readonly againInMs: number }

/** Tasks that can start because others have ended. Never rejects. */
type Arrivals = Promise<readonly Task[]>

export interface Pace {
  readonly clock: Clock
  /** Returns a number in [0, 1). */
  random(): number
  /** Maximum number of runs in flight. Undefined: no limit. */
  readonly concurrency?: number | undefined
  /** Timeout of each run, from its creation, or from now if it already exists. Undefined: no limit. */
  readonly timeoutMs?: number | undefined
  /** Stops the schedule. Creates in flight are awaited. */
  readonly signal: AbortSignal
}

export interface ScheduleOptions extends Pace {
  readonly tasks: readonly Task[]
  readonly limit: Limit
  /** Used share of the key's rate limit, 0 to 1. */
  load(): number
  /** Durations of earlier runs of a group. */
  durationsOf(group: string): readonly number[]
  /** Whether further creates may be sent; called before each. */
  mayCreate(): boolean
}

interface Run extends InFlight {
  readonly task: Task
  readonly durationsMs: number[]
  /** Infinity: never. */
  expiresAtMs: number
  /** Set if its timeout passed while this process was suspended: a request sent since then decides. */
  wokeAtMs: number | undefined
  polledAtMs: number | undefined
  dueAtMs: number
  isPolled: boolean
  /** Aborts its status request in flight. */
  request: AbortController | undefined
}

/** Number of durations kept per group. Older ones predict less. */
const MAX_DURATIONS = 50
/** Assumed age of a run from an earlier command: it may have ended long ago. */
const LONG_AGO_MS = 3_600_000

interface Schedule {
  readonly options: ScheduleOptions
  /** Longest chain first. */
  readonly toCreate: Task[]
  runs: Run[]
  /** Durations by group. */
  readonly learned: Map<string, number[]>
  /** Requests in flight, and arrivals that are expected. */
  readonly pendingWork: Set<Promise<void>>
  /** Number of ended tasks whose `next` has not resolved. */
  expected: number
  /** Number of creates in flight. */
  unanswered: number
  /** Whether a create was accepted. */
  isAccepted: boolean
  lastPollAtMs: number | undefined
  createsSincePoll: number
  /** Time of the next timeout of a run. Infinity: none. */
  alarmAtMs: number
  /** Cancels the alarm for it. */
  disarm(): void
  /** Ends the pause: something has happened. */
  wake(): void
  failure: { readonly error: unknown } | undefined
  isOver: boolean
}

/** Resolves when each task has ended, has expired, or will never start. Rejects with the signal's reason. */
export async function runSchedule(options: ScheduleOptions): Promise<void> {
  const { clock, signal } = options
  const schedule: Schedule = {
    options,
    toCreate: [],
    runs: [],
    learned: new Map(),
    pendingWork: new Set(),
    expected: 0,
    unanswered: 0,
    isAccepted: false,
    lastPollAtMs: undefined,
    createsSincePoll: 0,
    alarmAtMs: Number.POSITIVE_INFINITY,
    disarm() {},
    wake() {},
    failure: undefined,
    isOver: false,
  }
  addTasks(schedule, options.tasks)
  try {
    for (;;) {
      signal.throwIfAborted()
      if (schedule.failure !== undefined) throw schedule.failure.error
      const happened = new Promise<void>((resolve) => {
        schedule.wake = resolve
      })
      const next = nextOf(stateOf(schedule), options.limit)
      if (next.do === 'end') return
      if (next.do === 'create') start(schedule, create(schedule, schedule.toCreate.shift() as Task))
      else if (next.do === 'poll')
        start(schedule, poll(schedule, schedule.runs[next.index] as Run, next.isUrgent))
      else await pause(clock, next.ms, happened, signal)
    }
  } finally {
    schedule.isOver = true
    schedule.disarm()
    for (const { request } of schedule.runs) request?.abort()
    await Promise.all(schedule.pendingWork)
  }
}

const stateOf = ({ options, toCreate, runs, expected, ...state }: Schedule): ScheduleState => ({
  toCreate: options.mayCreate() ? toCreate.length : 0,
  nextChainLength: chainLengthOf(toCreate[0]),
  isExpecting: expected > 0,
  unanswered: state.unanswered,
  isAccepted: state.isAccepted,
  inFlight: runs,
  concurrency: options.concurrency,
  lastPollAtMs: state.lastPollAtMs,
  createsSincePoll: state.createsSincePoll,
  load: options.load(),
  nowMs: options.clock.monotonic(),
})

function durationsOf({ options, learned }: Schedule, group: string): number[] {
  const known = learned.get(group) ?? [...options.durationsOf(group)]
  learned.set(group, known)
  return known
}

function start(schedule: Schedule, work: Promise<void>): void {
  const settled = work
    .catch((error: unknown) => {
      schedule.failure ??= { error }
    })
    .finally(() => {
      schedule.pendingWork.delete(settled)
      schedule.wake()
    })
  schedule.pendingWork.add(settled)
}

/** Queues creates by chain length, longest first. Creates with equal lengths keep their order. */
function addTasks(schedule: Schedule, tasks: readonly Task[]): void {
  const { options, toCreate, isOver } = schedule
  if (isOver) return
  const nowMs = options.clock.monotonic()
  for (const task of tasks) {
    const isBefore = (each: Task) => chainLengthOf(each) >= chainLengthOf(task)
    if (task.create === undefined) addRun(schedule, task, nowMs - LONG_AGO_MS, nowMs, nowMs)
    else toCreate.splice(toCreate.findLastIndex(isBefore) + 1, 0, task)
  }
}

function expectArrivals(schedule: Schedule, arrivals: Arrivals | undefined): void {
  if (arrivals === undefined) return
  schedule.expected++
  const added = arrivals.then((tasks) => addTasks(schedule, tasks))
  start(
    schedule,
    added.finally(() => {
      schedule.expected--
    }),
  )
}

/** `sinceMs`: monotonic time at which its timeout started. */
function addRun(schedule: Schedule, task: Task, createdAtMs: number, dueAtMs: number, sinceMs: number): void {
  if (schedule.isOver) return
  const expiresAtMs = sinceMs + (schedule.options.timeoutMs ?? Number.POSITIVE_INFINITY)
  schedule.runs.push({
    task,
    createdAtMs,
    durationsMs: durationsOf(schedule, task.group),
    chainLength: chainLengthOf(task),
    expiresAtMs,
    wokeAtMs: undefined,
    polledAtMs: undefined,
    dueAtMs,
    isPolled: false,
    request: undefined,
  })
  if (expiresAtMs < schedule.alarmAtMs) expireAt(schedule, expiresAtMs)
}

/**
 * One alarm for all runs: with one per run, thousands would fire one after another, and `nextOf` would scan all others
 * each time.
 */
function expireAt(schedule: Schedule, atMs: number): void {
  const { clock } = schedule.options
  schedule.disarm()
  schedule.alarmAtMs = atMs
  if (atMs === Number.POSITIVE_INFINITY) return
  const dueInMs = Math.max(0, atMs - clock.monotonic())
  schedule.disarm = limitAlarm(clock, dueInMs, (wasSuspended) => expireDue(schedule, wasSuspended))
}

function expireDue(schedule: Schedule, wasSuspended: boolean): void {
  const { runs, options } = schedule
  const nowMs = options.clock.monotonic()
  if (wasSuspended) for (const run of runs) if (run.expiresAtMs <= nowMs) pollOnceMore(run, nowMs)
  const due = runs.filter(({ expiresAtMs }) => expiresAtMs <= nowMs)
  const left = runs.filter(({ expiresAtMs }) => expiresAtMs > nowMs)
  schedule.runs = left
  expireAt(
    schedule,
    left.reduce((first, { expiresAtMs }) => Math.min(first, expiresAtMs), Number.POSITIVE_INFINITY),
  )
  for (const { request, task } of due) {
    request?.abort()
    task.expire?.()
  }
  schedule.wake()
}

/** The run may have ended long ago: delays its timeout for one more request. */
function pollOnceMore(run: Run, nowMs: number): void {
  if (run.wokeAtMs !== undefined) return
  run.wokeAtMs = nowMs
  run.dueAtMs = nowMs
  run.expiresAtMs = nowMs + LAST_REQUEST_MS
}

async function create(schedule: Schedule, task: Task): Promise<void> {
  schedule.unanswered++
  schedule.createsSincePoll++
  const createdAtMs = await task.create?.()
  schedule.unanswered--
  if (createdAtMs === undefined) return
  schedule.isAccepted = true
  if (createdAtMs === 'not followed') return
  const { tooYoungMs } = paceOf(durationsOf(schedule, task.group))
  const firstMs = Math.max(POLL_INTERVAL_MS.min, tooYoungMs)
  addRun(schedule, task, createdAtMs, createdAtMs + firstMs, createdAtMs)
}

async function poll(schedule: Schedule, run: Run, isUrgent: boolean): Promise<void> {
  const { clock, signal, random } = schedule.options
  const request = new AbortController()
  run.request = request
  run.isPolled = true
  const sentAtMs = clock.monotonic()
  schedule.lastPollAtMs = sentAtMs
  schedule.createsSincePoll = 0
  const forget = onAbort(signal, () => request.abort(signal.reason))
  const polled = await run.task.poll({ signal: request.signal, isUrgent }).catch(() => undefined)
  forget()
  run.request = undefined
  run.isPolled = false
  if (polled === undefined) return
  const nowMs = clock.monotonic()
  run.polledAtMs = nowMs
  if (polled.is === 'error') run.dueAtMs = nowMs + polled.againInMs
  else if (polled.is === 'over') end(schedule, run, polled)
  else if (run.wokeAtMs === undefined) {
    const { soonestMs, latestMs } = polled.next
    // A random time in the range, so that clients do not poll in step.
    run.dueAtMs = nowMs + jittered({ min: soonestMs, max: latestMs }, random())
  }
  // An earlier request may have been answered before the gap.
  else if (sentAtMs < run.wokeAtMs) run.dueAtMs = nowMs
  else {
    remove(schedule, run)
    run.task.expire?.()
  }
}

function end(schedule: Schedule, run: Run, { next, durationMs }: Polled & { readonly is: 'over' }): void {
  remove(schedule, run)
  expectArrivals(schedule, next)
  if (durationMs === undefined) return
  run.durationsMs.push(durationMs)
  if (run.durationsMs.length > MAX_DURATIONS) run.durationsMs.shift()
}

/** Removes the run, unless it has expired in the meantime. */
function remove({ runs }: Schedule, run: Run): void {
  const at = runs.indexOf(run)
  if (at !== -1) runs.splice(at, 1)
}

const chainLengthOf = (task: Task | undefined): number => task?.chainLength ?? 0

/** Waits until `happened` resolves, at most `ms`. Rejects with the signal's reason. */
async function pause(clock: Clock, ms: number, happened: Promise<void>, signal: AbortSignal): Promise<void> {
  if (ms === Number.POSITIVE_INFINITY) return raceAbort(happened, signal)
  const over = new AbortController()
  const slept = clock.sleep(Math.max(1, ms), over.signal).catch(() => {})
  await raceAbort(Promise.race([happened, slept]), signal).finally(() => over.abort())
}
