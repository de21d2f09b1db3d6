/**
 * Carries a schedule out: asks `nextOf` what is next, does it, and asks again when something has happened. It does not
 * know what a run is: it is given functions, and learns of a create or a status request only what they return.
 */
import { onAbort, raceAbort } from '../../host/abort.js'
import { jittered } from '../../host/backoff.js'
import type { Clock } from '../../host/clock.js'
import { bestAgeMs, tooYoungMs } from './likelihood.js'
import { type Budget, type InFlight, nextOf } from './next.js'

export interface Task {
  /**
   * Creates the run. The monotonic instant since which it exists; undefined where there is none to follow. Absent for
   * a run that exists already. Never rejects.
   */
  create?(): Promise<number | undefined>
  /** One status request. Rejects with the signal's reason alone. */
  poll(options: PollOptions): Promise<Polled>
  /** The time limit of the run has passed: it is not polled any more. */
  expire?(): void
  /** Runs of the same group take about as long as each other. */
  readonly group: string
  /** Length of the longest chain of runs that waits for its output; default 0. */
  readonly behind?: number
}

export interface PollOptions {
  readonly signal: AbortSignal
  /** It has its turn among the creates. */
  readonly isUrgent: boolean
}

export type Polled =
  /** The next request is due between these, in milliseconds from now. */
  | { readonly is: 'running'; readonly next: { readonly soonestMs: number; readonly latestMs: number } }
  /** `durationMs`: how long the run took, where that is known. */
  | { readonly is: 'over'; readonly durationMs?: number | undefined; readonly next?: Arrivals }
  /** No usable answer; not again before that. */
  | { readonly is: 'trouble'; readonly againInMs: number }

/** Tasks that can begin now that others are done. Never rejects. */
export type Arrivals = Promise<readonly Task[]>

export interface ScheduleOptions {
  readonly tasks: readonly Task[]
  readonly clock: Pick<Clock, 'monotonic' | 'sleep' | 'alarm'>
  /** In [0, 1). */
  random(): number
  readonly budget: Budget
  /** The most runs in flight at once; undefined: no cap. */
  readonly concurrency?: number | undefined
  /** How long each run is waited for, from its creation, or from now where it exists already; undefined: no limit. */
  readonly timeoutMs?: number | undefined
  /** The share of the key's budget that is in use, 0 to 1. */
  load(): number
  /** Durations of earlier runs of a group. */
  durationsOf(group: string): readonly number[]
  /** Whether further creates are to be sent; asked before each. */
  mayCreate(): boolean
  /** Ends the waiting. Creates that are under way are waited for. */
  readonly signal: AbortSignal
}

interface Run extends InFlight {
  readonly task: Task
  readonly durationsMs: number[]
  /** Infinity: never. */
  readonly expiresAtMs: number
  polledAtMs: number | undefined
  dueAtMs: number
  isPolled: boolean
  /** Ends its status request that is under way. */
  request: AbortController | undefined
}

/** The duration of older runs says less. */
const MAX_DURATIONS = 50
const FIRST_POLL_MS = 1_000
const STEP_MS = 1_000
/** The age of a run that existed before: it may have ended long ago. */
const LONG_AGO_MS = 3_600_000

/** Resolves when every task is over, has expired, or will not be begun. Rejects with the signal's reason. */
export async function runSchedule(options: ScheduleOptions): Promise<void> {
  const { clock, budget, signal, timeoutMs } = options
  const toCreate: Task[] = []
  let runs: Run[] = []
  let disarm = () => {}
  let alarmAtMs = Number.POSITIVE_INFINITY
  let expected = 0
  let isOver = false
  const underWay = new Set<Promise<void>>()
  const learned = new Map<string, number[]>()
  let unanswered = 0
  let isAnswered = false
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
        underWay.delete(settled)
        wake()
      })
    underWay.add(settled)
  }

  /** `sinceMs`: since when it is waited for. */
  function begin(task: Task, createdAtMs: number, dueAtMs: number, sinceMs: number): void {
    if (isOver) return
    const expiresAtMs = sinceMs + (timeoutMs ?? Number.POSITIVE_INFINITY)
    runs.push({
      task,
      createdAtMs,
      durationsMs: durationsOf(task.group),
      behind: behind(task),
      expiresAtMs,
      polledAtMs: undefined,
      dueAtMs,
      isPolled: false,
      request: undefined,
    })
    if (expiresAtMs < alarmAtMs) expireAt(expiresAtMs)
  }

  /** One alarm for all runs: with one for each, thousands would go off in turn, and `nextOf` look at the rest after each. */
  function expireAt(atMs: number): void {
    disarm()
    alarmAtMs = atMs
    if (atMs !== Number.POSITIVE_INFINITY)
      disarm = clock.alarm(Math.max(0, atMs - clock.monotonic()), expireDue)
  }

  function expireDue(): void {
    const nowMs = clock.monotonic()
    const due = runs.filter(({ expiresAtMs }) => expiresAtMs <= nowMs)
    runs = runs.filter(({ expiresAtMs }) => expiresAtMs > nowMs)
    expireAt(runs.reduce((first, { expiresAtMs }) => Math.min(first, expiresAtMs), Number.POSITIVE_INFINITY))
    for (const { request, task } of due) {
      request?.abort()
      task.expire?.()
    }
    wake()
  }

  /** For a run that has expired meanwhile, it does nothing. */
  function end(run: Run): void {
    const at = runs.indexOf(run)
    if (at !== -1) runs.splice(at, 1)
  }

  /** Creates wait in the order of the chains behind them; of equal ones, the first goes first. */
  function add(tasks: readonly Task[]): void {
    if (isOver) return
    const nowMs = clock.monotonic()
    for (const task of tasks) {
      if (task.create === undefined) begin(task, nowMs - LONG_AGO_MS, nowMs, nowMs)
      else toCreate.splice(toCreate.findLastIndex((each) => behind(each) >= behind(task)) + 1, 0, task)
    }
  }

  function expect(arrivals: Arrivals | undefined): void {
    if (arrivals === undefined) return
    expected++
    start(
      arrivals.then(add).finally(() => {
        expected--
      }),
    )
  }

  async function create(task: Task): Promise<void> {
    unanswered++
    createsSincePoll++
    const createdAtMs = await task.create?.()
    unanswered--
    isAnswered = true
    if (createdAtMs === undefined) return
    const soonestMs = Math.max(FIRST_POLL_MS, tooYoungMs(durationsOf(task.group)))
    const ages = { seenMs: 0, soonestMs, stepMs: STEP_MS }
    const firstMs = bestAgeMs(durationsOf(task.group), ages) ?? soonestMs
    begin(task, createdAtMs, createdAtMs + firstMs, createdAtMs)
  }

  async function poll(run: Run, isUrgent: boolean): Promise<void> {
    const request = new AbortController()
    run.request = request
    run.isPolled = true
    lastPollAtMs = clock.monotonic()
    createsSincePoll = 0
    const forget = onAbort(signal, () => request.abort(signal.reason))
    const polled = await run.task.poll({ signal: request.signal, isUrgent }).catch(() => undefined)
    forget()
    run.request = undefined
    run.isPolled = false
    if (polled === undefined) return
    const nowMs = clock.monotonic()
    run.polledAtMs = nowMs
    if (polled.is === 'trouble') run.dueAtMs = nowMs + polled.againInMs
    else if (polled.is === 'running') run.dueAtMs = dueAfter(run, polled.next, nowMs)
    else {
      end(run)
      expect(polled.next)
      if (polled.durationMs === undefined) return
      const { durationsMs } = run
      durationsMs.push(polled.durationMs)
      if (durationsMs.length > MAX_DURATIONS) durationsMs.shift()
    }
  }

  /** Within the range where that finds the end of the run sooner, else anywhere in it, so that clients do not move in step. */
  function dueAfter(
    { durationsMs, createdAtMs }: Run,
    next: { soonestMs: number; latestMs: number },
    nowMs: number,
  ) {
    const seenMs = nowMs - createdAtMs
    const ages = { seenMs, soonestMs: seenMs + next.soonestMs, stepMs: STEP_MS }
    const best = bestAgeMs(durationsMs, ages)
    if (best !== undefined) return createdAtMs + best
    return nowMs + jittered({ min: next.soonestMs, max: next.latestMs }, options.random())
  }

  add(options.tasks)
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
          behindNext: behind(toCreate[0]),
          isExpecting: expected > 0,
          unanswered,
          isAnswered,
          inFlight: runs,
          concurrency: options.concurrency,
          lastPollAtMs,
          createsSincePoll,
          load: options.load(),
          nowMs: clock.monotonic(),
        },
        budget,
      )
      if (next.do === 'end') return
      if (next.do === 'create') start(create(toCreate.shift() as Task))
      else if (next.do === 'poll') start(poll(runs[next.at] as Run, next.isUrgent))
      else await pause(clock, next.ms, happened, signal)
    }
  } finally {
    isOver = true
    disarm()
    for (const { request } of runs) request?.abort()
    await Promise.all(underWay)
  }
}

const behind = (task: Task | undefined): number => task?.behind ?? 0

/** Until something has happened, at most for `ms`. Rejects with the signal's reason. */
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
