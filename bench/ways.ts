/**
 * The ways of making many runs that are compared, in simulated time (`schedule.ts`) and at a real service (`batch.ts`).
 *
 * (a) the floor: 2N requests at 20 in 10 s, or the last run's own time; (b) ten in flight, each asked about every 1.5 s; (c) a
 * plain queue before the limiter: every run is asked about again as soon as it was answered, in turn.
 */
import { chainsBehind, dependentsOf, levelsOf } from '../src/batch/plan/row-order.js'
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
  readonly clock: Pick<Clock, 'monotonic' | 'sleep' | 'alarm'>
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

/** `known`: how long earlier runs of the model took, in ms. */
const schedule = (world: World, known: readonly number[], tasks: readonly Task[]): Promise<void> =>
  runSchedule({
    tasks,
    clock: world.clock,
    budget: RUNS_LIMIT,
    load: world.load,
    durationsOf: () => known,
    random,
    mayCreate: () => true,
    signal: new AbortController().signal,
  })

export const ours =
  (known: readonly number[] = []): Way =>
  (world, runs) => {
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
    const all = Array.from({ length: runs }, (_, run) => taskOf(run))
    return schedule(world, known, all)
  }

/** Runs that use the outputs of others, by their numbers: the sources of each run. */
export type Graph = readonly (readonly number[])[]

const nodesOf = (graph: Graph) =>
  graph.map((sources, run) => ({ run, name: String(run), sources: sources.map(String) }))

/** A run begins when its sources have ended. */
export const oursWithGraph =
  (graph: Graph, known: readonly number[] = []): Way =>
  (world) => {
    const nodes = nodesOf(graph)
    const behind = chainsBehind(nodes)
    const dependents = dependentsOf(nodes)
    const open = graph.map((sources) => sources.length)
    const taskOf = (run: number): Task => ({
      group: 'one',
      behind: behind.get(String(run)) ?? 0,
      create: async () => {
        await world.create(run)
        return world.clock.monotonic()
      },
      poll: async ({ isUrgent }) => {
        if (!(await world.poll(run, isUrgent))) return { is: 'running', next: NEXT }
        const ready = (dependents.get(String(run)) ?? []).filter((each) => {
          const left = (open[each.run] ?? 0) - 1
          open[each.run] = left
          return left === 0
        })
        return {
          is: 'over',
          durationMs: world.durationMs(run),
          next: Promise.resolve(ready.map((each) => taskOf(each.run))),
        }
      },
    })
    const roots = nodes.filter(({ sources }) => sources.length === 0)
    return schedule(
      world,
      known,
      roots.map(({ run }) => taskOf(run)),
    )
  }

/**
 * No client can end before 2N requests fit, nor before the longest chain of runs has ended. `least`: the longer of the two,
 * where only the requests of runs that can have begun count; `sum` adds the two.
 */
export function floorsOfGraph(graph: Graph, durations: readonly number[]): { least: number; sum: number } {
  const startsMs: number[] = []
  const endsMs: number[] = []
  for (const { run } of levelsOf(nodesOf(graph)).flat()) {
    startsMs[run] = Math.max(0, ...(graph[run] ?? []).map((source) => endsMs[source] ?? 0))
    endsMs[run] = startsMs[run] + (durations[run] ?? 0)
  }
  const secondsFor = (runs: number) => (Math.ceil((2 * runs) / RUNS_LIMIT.requests) - 1) * 10
  const chain = Math.max(...endsMs) / 1_000
  // The requests of the runs that cannot begin before an instant are all sent after it.
  const after = startsMs.map(
    (startMs) => startMs / 1_000 + secondsFor(startsMs.filter((each) => each >= startMs).length),
  )
  return { least: Math.max(chain, ...after), sum: secondsFor(graph.length) + chain }
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
