/**
 * Runs a schedule: asks `nextOf` for the next request, sends it, and repeats after each response. Knows nothing about
 * runs except their functions and results.
 */
import { onAbort, raceAbort } from '../host/abort.js'
import type { Clock } from '../host/clock.js'
import { LAST_REQUEST_MS, limitAlarm } from '../host/limit-alarm.js'
import { jittered } from '../host/retry.js'
import { POLL_INTERVAL_MS } from '../protocol/limits.js'
import { bestAgeMs, type InFlight, nextOf, type RequestLimit, tooYoungMs } from './next.js'

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

export interface ScheduleOptions {
  readonly tasks: readonly Task[]
  readonly clock: Pick<Clock, 'monotonic' | 'sleep' | 'alarm'>
  /** Returns a number in [0, 1). */
  random(): number
  readonly limit: RequestLimit
  /** Maximum number of runs in flight. Undefined: no limit. */
  readonly concurrency?: number | undefined
  /** Timeout of each run, from its creation, or from now if it already exists. Undefined: no limit. */
  readonly timeoutMs?: number | undefined
  /** Used share of the key's rate limit, 0 to 1. */
  load(): number
  /** Durations of earlier runs of a group. */
  durationsOf(group: string): readonly number[]
  /** Whether further creates may be sent; called before each. */
  mayCreate(): boolean
  /** Stops the schedule. Creates in flight are awaited. */
  readonly signal: AbortSignal
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

/** Resolves when each task has ended, has expired, or will never start. Rejects with the signal's reason. */
export async function runSchedule(options: ScheduleOptions): Promise<void> {
  const { clock, limit, signal, timeoutMs } = options
  const toCreate: Task[] = []
  let runs: Run[] = []
  let disarm = () => {}
  let alarmAtMs = Number.POSITIVE_INFINITY
  let expected = 0
  let isOver = false
  const pendingWork = new Set<Promise<void>>()
  const learned = new Map<string, number[]>()
  let unanswered = 0
  let isAccepted = false
  let lastPollAtMs: number | undefined
  let createsSincePoll = 0
  let wake = () => {}
  let failure: { readonly error: unknown } | undefined

  const durationsOf = (group: string): number[] => {
    const known = learned.get(group) ?? [...options.durationsOf(group)]
    learned.set(group, known)
    return known
  }
  const start = (work: Promise<void>): void => {
    const settled = work
      .catch((error: unknown) => {
        failure ??= { error }
      })
      .finally(() => {
        pendingWork.delete(settled)
        wake()
      })
    pendingWork.add(settled)
  }

  /** `sinceMs`: monotonic time at which its timeout started. */
  function addRun(task: Task, createdAtMs: number, dueAtMs: number, sinceMs: number): void {
    if (isOver) return
    const expiresAtMs = sinceMs + (timeoutMs ?? Number.POSITIVE_INFINITY)
    runs.push({
      task,
      createdAtMs,
      durationsMs: durationsOf(task.group),
      chainLength: chainLengthOf(task),
      expiresAtMs,
      wokeAtMs: undefined,
      polledAtMs: undefined,
      dueAtMs,
      isPolled: false,
      request: undefined,
    })
    if (expiresAtMs < alarmAtMs) expireAt(expiresAtMs)
  }

  /**
   * One alarm for all runs: with one per run, thousands would fire one after another, and `nextOf` would scan all
   * others each time.
   */
  function expireAt(atMs: number): void {
    disarm()
    alarmAtMs = atMs
    if (atMs !== Number.POSITIVE_INFINITY)
      disarm = limitAlarm(clock, Math.max(0, atMs - clock.monotonic()), expireDue)
  }

  function expireDue(wasSuspended: boolean): void {
    const nowMs = clock.monotonic()
    if (wasSuspended) for (const run of runs) if (run.expiresAtMs <= nowMs) pollOnceMore(run, nowMs)
    const due = runs.filter(({ expiresAtMs }) => expiresAtMs <= nowMs)
    runs = runs.filter(({ expiresAtMs }) => expiresAtMs > nowMs)
    expireAt(runs.reduce((first, { expiresAtMs }) => Math.min(first, expiresAtMs), Number.POSITIVE_INFINITY))
    for (const { request, task } of due) {
      request?.abort()
      task.expire?.()
    }
    wake()
  }

  /** The run may have ended long ago: delays its timeout for one more request. */
  function pollOnceMore(run: Run, nowMs: number): void {
    if (run.wokeAtMs !== undefined) return
    run.wokeAtMs = nowMs
    run.dueAtMs = nowMs
    run.expiresAtMs = nowMs + LAST_REQUEST_MS
  }

  /** Removes the run, unless it has expired in the meantime. */
  function end(run: Run): void {
    const at = runs.indexOf(run)
    if (at !== -1) runs.splice(at, 1)
  }

  /** Queues creates by chain length, longest first. Creates with equal lengths keep their order. */
  function addTasks(tasks: readonly Task[]): void {
    if (isOver) return
    const nowMs = clock.monotonic()
    for (const task of tasks) {
      if (task.create === undefined) addRun(task, nowMs - LONG_AGO_MS, nowMs, nowMs)
      else
        toCreate.splice(
          toCreate.findLastIndex((each) => chainLengthOf(each) >= chainLengthOf(task)) + 1,
          0,
          task,
        )
    }
  }

  function expectArrivals(arrivals: Arrivals | undefined): void {
    if (arrivals === undefined) return
    expected++
    start(
      arrivals.then(addTasks).finally(() => {
        expected--
      }),
    )
  }

  async function create(task: Task): Promise<void> {
    unanswered++
    createsSincePoll++
    const createdAtMs = await task.create?.()
    unanswered--
    if (createdAtMs === undefined) return
    isAccepted = true
    if (createdAtMs === 'not followed') return
    const soonestMs = Math.max(POLL_INTERVAL_MS.min, tooYoungMs(durationsOf(task.group)))
    const ages = { seenMs: 0, soonestMs, stepMs: POLL_INTERVAL_MS.min }
    const firstMs = bestAgeMs(durationsOf(task.group), ages) ?? soonestMs
    addRun(task, createdAtMs, createdAtMs + firstMs, createdAtMs)
  }

  async function poll(run: Run, isUrgent: boolean): Promise<void> {
    const request = new AbortController()
    run.request = request
    run.isPolled = true
    const sentAtMs = clock.monotonic()
    lastPollAtMs = sentAtMs
    createsSincePoll = 0
    const forget = onAbort(signal, () => request.abort(signal.reason))
    const polled = await run.task.poll({ signal: request.signal, isUrgent }).catch(() => undefined)
    forget()
    run.request = undefined
    run.isPolled = false
    if (polled === undefined) return
    const nowMs = clock.monotonic()
    run.polledAtMs = nowMs
    if (polled.is === 'error') run.dueAtMs = nowMs + polled.againInMs
    else if (polled.is === 'running' && run.wokeAtMs !== undefined) {
      // An earlier request may have been answered before the gap.
      if (sentAtMs < run.wokeAtMs) run.dueAtMs = nowMs
      else {
        end(run)
        run.task.expire?.()
      }
    } else if (polled.is === 'running') run.dueAtMs = dueAfter(run, polled.next, nowMs)
    else {
      end(run)
      expectArrivals(polled.next)
      if (polled.durationMs === undefined) return
      const { durationsMs } = run
      durationsMs.push(polled.durationMs)
      if (durationsMs.length > MAX_DURATIONS) durationsMs.shift()
    }
  }

  /**
   * Uses the best time according to earlier durations, if there is one. Otherwise a random time in the range, so that
   * clients do not poll in step.
   */
  function dueAfter(
    { durationsMs, createdAtMs }: Run,
    next: { soonestMs: number; latestMs: number },
    nowMs: number,
  ) {
    const seenMs = nowMs - createdAtMs
    const ages = { seenMs, soonestMs: seenMs + next.soonestMs, stepMs: POLL_INTERVAL_MS.min }
    const best = bestAgeMs(durationsMs, ages)
    if (best !== undefined) return createdAtMs + best
    return nowMs + jittered({ min: next.soonestMs, max: next.latestMs }, options.random())
  }

  addTasks(options.tasks)
  try {
    for (;;) {
      signal.throwIfAborted()
      if (failure !== undefined) throw failure.error
      const happened = new Promise<void>((resolve) => {
        wake = resolve
      })
      const next = nextOf(
        {
          toCreate: options.mayCreate() ? toCreate.length : 0,
          nextChainLength: chainLengthOf(toCreate[0]),
          isExpecting: expected > 0,
          unanswered,
          isAccepted,
          inFlight: runs,
          concurrency: options.concurrency,
          lastPollAtMs,
          createsSincePoll,
          load: options.load(),
          nowMs: clock.monotonic(),
        },
        limit,
      )
      if (next.do === 'end') return
      if (next.do === 'create') start(create(toCreate.shift() as Task))
      else if (next.do === 'poll') start(poll(runs[next.index] as Run, next.isUrgent))
      else await pause(clock, next.ms, happened, signal)
    }
  } finally {
    isOver = true
    disarm()
    for (const { request } of runs) request?.abort()
    await Promise.all(pendingWork)
  }
}

const chainLengthOf = (task: Task | undefined): number => task?.chainLength ?? 0

/** Waits until `happened` resolves, at most `ms`. Rejects with the signal's reason. */
async function pause(
  clock: Pick<Clock, 'sleep'>,
  ms: number,
  happened: Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  if (ms === Number.POSITIVE_INFINITY) return raceAbort(happened, signal)
  const over = new AbortController()
  const slept = clock.sleep(Math.max(1, ms), over.signal).catch(() => {})
  await raceAbort(Promise.race([happened, slept]), signal).finally(() => over.abort())
}
