/**
 * Carries a schedule out: asks `nextOf` what is next, does it, and asks again when something has happened. Knows nothing of
 * what a run is: it is given functions, and never learns more of a create or a look than what they answer.
 */
import type { Clock } from '../../host/clock.js'
import { type Budget, type Flying, nextOf } from './next.js'

export interface Task {
  /** Creates the run; whether there is one now. Undefined for a run that exists already. */
  create?(): Promise<boolean>
  /** Never rejects. */
  look(): Promise<Looked>
  /** Runs of the same group take about as long as each other. */
  readonly group: string
}

export type Looked =
  | { readonly is: 'going' }
  /** `tookMs`: how long the run took, where that is known better than by when it was noticed. */
  | { readonly is: 'over'; readonly tookMs?: number | undefined }
  /** No good answer; not again before that. */
  | { readonly is: 'trouble'; readonly againInMs: number }

export interface ScheduleOptions {
  readonly tasks: readonly Task[]
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
  readonly budget: Budget
  readonly concurrency?: number | undefined
  /** Durations of earlier runs of a group. */
  learned(group: string): readonly number[]
  /** Whether further creates are to be sent; asked before each. */
  mayCreate(): boolean
  /** Ends the waiting; what is under way settles by itself. */
  readonly signal: AbortSignal
}

interface Run {
  readonly task: Task
  readonly createdAtMs: number
  lookedAtMs: number | undefined
  notBeforeMs: number
  isLookedAt: boolean
}

/** So many of the latest say what is usual. */
const MOST_LEARNED = 50

/** Resolves when every task is over or will not be begun; how many were not. Rejects with the signal's reason. */
export async function runSchedule(options: ScheduleOptions): Promise<number> {
  const { clock, budget, signal } = options
  const toCreate = options.tasks.filter(({ create }) => create !== undefined)
  const existing = options.tasks.filter(({ create }) => create === undefined)
  const long = Number.NEGATIVE_INFINITY
  // One that was created before may be done already.
  const flying: Run[] = existing.map((task) => ({
    task,
    createdAtMs: clock.monotonic() - LONG_AGO_MS,
    lookedAtMs: undefined,
    notBeforeMs: long,
    isLookedAt: false,
  }))
  const learned = new Map<string, number[]>()
  const tookOf = (group: string): number[] => {
    const known = learned.get(group) ?? [...options.learned(group)]
    learned.set(group, known)
    return known
  }
  let unanswered = 0
  let isAnswered = false
  let lastLookAtMs: number | undefined
  let wake = () => {}
  const isAborted = aborted(signal)

  async function create(task: Task): Promise<void> {
    unanswered++
    const exists = (await task.create?.()) ?? false
    unanswered--
    isAnswered = true
    if (exists)
      flying.push({
        task,
        createdAtMs: clock.monotonic(),
        lookedAtMs: undefined,
        notBeforeMs: long,
        isLookedAt: false,
      })
    wake()
  }

  async function look(run: Run): Promise<void> {
    run.isLookedAt = true
    lastLookAtMs = clock.monotonic()
    const looked = await run.task.look()
    run.isLookedAt = false
    run.lookedAtMs = clock.monotonic()
    if (looked.is === 'trouble') run.notBeforeMs = clock.monotonic() + looked.againInMs
    if (looked.is === 'over') {
      flying.splice(flying.indexOf(run), 1)
      const took = tookOf(run.task.group)
      took.push(looked.tookMs ?? run.lookedAtMs - run.createdAtMs)
      if (took.length > MOST_LEARNED) took.shift()
    }
    wake()
  }

  for (;;) {
    signal.throwIfAborted()
    const happened = new Promise<void>((resolve) => {
      wake = resolve
    })
    const next = nextOf(
      {
        toCreate: options.mayCreate() ? toCreate.length : 0,
        unanswered,
        isAnswered,
        flying: flying.map((run): Flying => ({ ...run, tookMs: tookOf(run.task.group) })),
        concurrency: options.concurrency,
        lastLookAtMs,
        nowMs: clock.monotonic(),
      },
      budget,
    )
    if (next.do === 'end') return toCreate.length
    if (next.do === 'create') void create(toCreate.shift() as Task)
    else if (next.do === 'look') void look(flying[next.at] as Run)
    else
      await Promise.race([happened, next.do === 'wait' ? pause(clock, next.ms, signal, happened) : isAborted])
  }
}

/** Older than anything is looked at first. */
const LONG_AGO_MS = 3_600_000

async function pause(
  clock: Pick<Clock, 'sleep'>,
  ms: number,
  signal: AbortSignal,
  happened: Promise<void>,
): Promise<void> {
  const enough = new AbortController()
  void happened.then(() => enough.abort())
  await clock
    .sleep(Math.max(1, ms), AbortSignal.any([signal, enough.signal]))
    .catch(() => signal.throwIfAborted())
}

const aborted = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    signal.addEventListener('abort', () => resolve(), { once: true })
  })
