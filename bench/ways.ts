/**
 * The ways of making many runs that are compared, in simulated time (`schedule.ts`).
 *
 * (a) the floor: 2N requests at 20 in 10 s, or the last run's own time; (b) ten in flight, each asked about every 1.5 s; (c) a
 * plain queue before the limiter: every run is asked about again as soon as it was answered, in turn.
 */
import type { Clock } from '../src/host/clock.js'
import { RUNS_LIMIT } from '../src/protocol/limits.js'
import { runSchedule, type Task } from '../src/runs/schedule.js'

/** The same numbers in every run of the benchmark (mulberry32). */
let seed = 20
export function random(): number {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
}

/** Where runs are made. */
export interface World {
  readonly clock: Clock
  /** Resolves when the run exists. */
  create(run: number): Promise<void>
  /** Whether it is done. */
  poll(run: number, isUrgent?: boolean): Promise<boolean>
  /** The share of the limit that is in use. */
  load(): number
  /** How long it took, as the service says of a run that is done. */
  durationMs(run: number): number
}

export type Way = (world: World, runs: number) => Promise<unknown>

/** The pace of the client, when at most half of the budget is in use. */
const NEXT = { soonestMs: 1_000, latestMs: 2_000 }

export const ours: Way = (world, runs) => {
  const taskOf = (run: number): Task => ({
    group: 'one',
    create: async () => {
      await world.create(run)
      return world.clock.monotonic()
    },
    poll: async ({ isUrgent }) =>
      (await world.poll(run, isUrgent))
        ? { is: 'over', durationMs: world.durationMs(run) }
        : { is: 'running', next: NEXT },
  })
  return runSchedule({
    tasks: Array.from({ length: runs }, (_, run) => taskOf(run)),
    clock: world.clock,
    limit: RUNS_LIMIT,
    load: world.load,
    durationsOf: () => [],
    random,
    mayCreate: () => true,
    signal: new AbortController().signal,
  })
}

/** Ten at a time, every one asked about after a fixed pause. */
export const tenInFlight: Way = async (world, runs) => {
  let next = 0
  const one = async () => {
    for (let run = next++; run < runs; run = next++) {
      await world.create(run)
      do await world.clock.sleep(1_500)
      while (!(await world.poll(run)))
    }
  }
  await Promise.all(Array.from({ length: 10 }, one))
}

/** All at once into the queue before the limiter. */
export const plainQueue: Way = (world, runs) =>
  Promise.all(
    Array.from({ length: runs }, async (_, run) => {
      await world.create(run)
      while (!(await world.poll(run)));
    }),
  )

/** 2N requests at 20 in 10 s; and nobody can end before the last created run has. */
export function floorOf(durations: readonly number[]): number {
  const byRequests = (Math.ceil((2 * durations.length) / RUNS_LIMIT.requests) - 1) * 10
  const byRuns = Math.max(
    ...durations.map((ms, run) => Math.floor(run / RUNS_LIMIT.requests) * 10 + ms / 1_000),
  )
  return Math.max(byRequests, byRuns)
}
