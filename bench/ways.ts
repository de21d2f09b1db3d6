/**
 * The ways of making many runs that are compared, in simulated time (`schedule.ts`) and at a real service (`batch.ts`).
 *
 * (a) the floor: 2N requests at 20 in 10 s, or the last run's own time; (b) ten in flight, each looked at every 1.5 s; (c) a
 * plain queue before the limiter: every run is looked at again as soon as it was answered, in turn.
 */
import { runSchedule, type Task } from '../src/batch/schedule/index.js'
import type { Clock } from '../src/host/clock.js'
import { RUNS_LIMIT } from '../src/protocol/limits.js'

/** The same numbers in every run of the benchmark (mulberry32). */
let seed = 20
export function random(): number {
  seed = (seed + 0x6d2b79f5) | 0
  let t = Math.imul(seed ^ (seed >>> 15), 1 | seed)
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
  return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
}

/** Where runs are made: in simulated time, or at a real service. */
export interface World {
  readonly clock: Pick<Clock, 'monotonic' | 'sleep'>
  /** Resolves when the run exists. */
  create(run: number): Promise<void>
  /** Whether it is done. */
  look(run: number): Promise<boolean>
}

export type Way = (world: World, runs: number) => Promise<unknown>

export const ours =
  (known: readonly number[] = []): Way =>
  (world, runs) =>
    runSchedule({
      tasks: Array.from(
        { length: runs },
        (_, run): Task => ({
          group: 'one',
          create: async () => {
            await world.create(run)
            return true
          },
          look: async () => ((await world.look(run)) ? { is: 'over' } : { is: 'going' }),
        }),
      ),
      clock: world.clock,
      budget: RUNS_LIMIT,
      learned: () => known,
      mayCreate: () => true,
      signal: new AbortController().signal,
    })

/** Ten at a time, every one looked at after a fixed pause. */
export const tenInFlight: Way = async (world, runs) => {
  let next = 0
  const one = async () => {
    for (let run = next++; run < runs; run = next++) {
      await world.create(run)
      do await world.clock.sleep(1_500)
      while (!(await world.look(run)))
    }
  }
  await Promise.all(Array.from({ length: 10 }, one))
}

/** All at once into the queue before the limiter. */
export const plainQueue: Way = (world, runs) =>
  Promise.all(
    Array.from({ length: runs }, async (_, run) => {
      await world.create(run)
      while (!(await world.look(run)));
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
