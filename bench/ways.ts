/**
 * The ways of making many runs that are compared, in simulated time (`schedule.ts`).
 *
 * (a) the floor: 2N requests at 20 in 10 s, or the last run's own time; (b) ten in flight, each asked about every 1.5 s; (c) a
 * plain queue before the limiter: every run is asked about again as soon as it was answered, in turn.
 */
import type { Clock } from '../src/host/clock.js'
import type { Limiter } from '../src/limiter/index.js'
import { RUNS_LIMIT } from '../src/protocol/limits.js'
import type { Begin, RunsSession } from '../src/runs/run.js'
import { carryOut } from '../src/runs/schedule.js'

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
  poll(run: number): Promise<boolean>
  readonly limiter: Limiter
}

export type Way = (world: World, runs: number) => Promise<unknown>

/** The real schedule; the client asks the world. */
export const ours: Way = async (world, runs) => {
  const client = {
    limiter: world.limiter,
    baseUrl: 'https://a.example',
    async create(body: Uint8Array, { beforeSend }: { beforeSend?(): void }) {
      beforeSend?.()
      const run = Number(Buffer.from(body).toString())
      await world.create(run)
      return { id: String(run), body: {} }
    },
    async status(id: string, _: AbortSignal, onSend: () => void) {
      onSend()
      const isDone = await world.poll(Number(id))
      const phase = isDone ? 'succeeded' : 'running'
      const times = { failure: undefined, createdAt: undefined, finishedAt: undefined, service: {} }
      return {
        kind: 'state',
        state: { id, status: phase, phase, urls: isDone ? ['https://a.example/1'] : [], ...times },
      }
    },
  }
  const never = new AbortController().signal
  const session = {
    ...{
      client,
      clock: world.clock,
      random,
      journal: undefined,
      policy: 'best effort',
      address: '',
      profile: '',
    },
    ...{ interrupts: { first: never, second: never }, stopsCreates: () => true },
  } as unknown as RunsSession
  const rows = Array.from({ length: runs }, (_, run) => ({
    name: String(run),
    begin: (): Begin => ({
      is: 'create',
      request: async () => ({
        body: Buffer.from(String(run)),
        intent: { kind: undefined, model: 'acme/still-1', input: {} },
      }),
    }),
  }))
  for await (const _ of carryOut(rows, session));
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
