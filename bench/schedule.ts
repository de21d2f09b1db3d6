/**
 * The scheduler of batches against what else one would do, in simulated time over many draws: `npm run bench -- schedule`. The real
 * limiter and the real scheduler, on a clock that jumps from event to event. Prints Markdown tables.
 */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { Limiter } from '../src/limiter/index.js'
import { median, row } from './table.js'
import { floorOf, ours, plainQueue, random, tenInFlight, type Way } from './ways.js'

interface Timer {
  readonly atMs: number
  readonly ring: () => void
}

/** Time goes on when nothing is left to do at this instant. */
function createVirtualClock() {
  let nowMs = 0
  const timers = new Set<Timer>()
  const sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const abort = () => {
        timers.delete(timer)
        reject(signal?.reason)
      }
      const timer: Timer = {
        atMs: nowMs + Math.max(0, ms),
        ring() {
          signal?.removeEventListener('abort', abort)
          resolve()
        },
      }
      signal?.addEventListener('abort', abort, { once: true })
      timers.add(timer)
    })
  return {
    now: () => nowMs,
    monotonic: () => nowMs,
    sleep,
    alarm: () => {
      throw new Error('no run of the benchmark has a time limit')
    },
    async run<Result>(work: Promise<Result>): Promise<Result> {
      let isDone = false
      work.finally(() => {
        isDone = true
      })
      for (;;) {
        // A schedule begins two turns of the event loop after its call.
        for (let turn = 0; turn < 3; turn++) await nextTurn()
        if (isDone) return work
        let first: Timer | undefined
        for (const timer of timers) if (first === undefined || timer.atMs < first.atMs) first = timer
        if (first === undefined) throw new Error('everybody waits for nothing')
        timers.delete(first)
        nowMs = Math.max(nowMs, first.atMs)
        first.ring()
      }
    },
  }
}

const LATENCY_MS = 50

/** A service that answers after 50 ms, and whose runs take what they take. */
function createWorld(durations: readonly number[]) {
  const clock = createVirtualClock()
  const limiter = new Limiter(clock)
  const doneAt = new Map<number, number>()
  const noticedAt = new Map<number, number>()
  let requests = 0
  async function ask(purpose: 'create' | 'status'): Promise<void> {
    const grant = await limiter.acquire(purpose)
    requests++
    await clock.sleep(LATENCY_MS)
    grant.settle()
  }
  return {
    clock,
    async create(run: number): Promise<void> {
      await ask('create')
      doneAt.set(run, clock.monotonic() + (durations[run] ?? 0))
    },
    async poll(run: number): Promise<boolean> {
      await ask('status')
      // What the service saw when it answered: half of the way back ago.
      const isDone = (doneAt.get(run) ?? Number.POSITIVE_INFINITY) <= clock.monotonic() - LATENCY_MS / 2
      if (isDone && !noticedAt.has(run)) noticedAt.set(run, clock.monotonic())
      return isDone
    },
    limiter,
    figures() {
      const delays = [...noticedAt].map(([run, at]) => at - (doneAt.get(run) ?? 0))
      return {
        seconds: clock.monotonic() / 1_000,
        requests,
        delay: delays.reduce((sum, each) => sum + each, 0) / delays.length / 1_000,
      }
    },
  }
}

const uniform = (from: number, to: number) => () => from + random() * (to - from)
/** Most take a while, and a few take very long. */
const heavy = () => Math.min(600_000, 8_000 / random() ** 0.7)

/** The same draws for every way, so that they differ by what they do and not by luck. */
async function measure(way: Way, draws: readonly (readonly number[])[]) {
  const results: { seconds: number; requests: number; delay: number; ratio: number }[] = []
  for (const durations of draws) {
    const runs = durations.length
    const world = createWorld(durations)
    await world.clock.run(Promise.resolve(way(world, runs)))
    const figures = world.figures()
    results.push({ ...figures, ratio: figures.seconds / floorOf(durations) })
  }
  const of = (name: 'seconds' | 'requests' | 'delay' | 'ratio') => median(results.map((each) => each[name]))
  return { seconds: of('seconds'), requests: of('requests'), delay: of('delay'), ratio: of('ratio') }
}

const WAYS: readonly (readonly [string, Way])[] = [
  ['rushes', ours],
  ['ten in flight', tenInFlight],
  ['plain queue', plainQueue],
]

row('runs', 'each takes', 'way', 'seconds', 'of the floor', 'requests', 'done to noticed, s')
row('--:', '---', '---', '--:', '--:', '--:', '--:')
for (const [runs, spread, draw, draws] of [
  [20, 'all 2 s', () => 2_000, 1],
  [100, 'all 15 s', () => 15_000, 1],
  [100, '5 to 30 s', uniform(5_000, 30_000), 9],
  [200, '5 to 30 s', uniform(5_000, 30_000), 5],
  [1_000, '5 to 30 s', uniform(5_000, 30_000), 3],
  [100, 'a heavy tail', heavy, 9],
  [20, '1 to 3 min', uniform(60_000, 180_000), 41],
] as const) {
  if (process.argv[2] === 'films' && runs !== 20) continue
  const drawn = Array.from({ length: draws }, () => Array.from({ length: runs }, draw))
  for (const [name, way] of WAYS) {
    if (runs === 1_000 && name === 'plain queue') continue
    const { seconds, ratio, requests, delay } = await measure(way, drawn)
    row(runs, spread, name, seconds.toFixed(0), ratio.toFixed(3), requests, delay.toFixed(2))
  }
}
