/** Estimates how long a plan will take, pure: the least by the rate limit, and with the usual durations of the models. */
import type { Step } from './index.js'

export interface Expectation {
  /** What the limit alone takes, if every run were done at once. */
  readonly leastMs: number
  /** Undefined when a duration is not known, and when nothing is to be created. */
  readonly expectedMs: number | undefined
}

export interface Pace {
  /** Requests per window. */
  readonly requests: number
  readonly windowMs: number
  /** The most runs in flight at once; undefined: no cap. */
  readonly concurrency: number | undefined
  /** How long a run of the model usually takes; undefined when that is not known. */
  usualMs(model: string): number | undefined
}

/** `requests`: the least that the plan needs. */
export function expectationOf(
  steps: readonly Pick<Step, 'action' | 'model'>[],
  requests: number,
  pace: Pace,
): Expectation {
  const windowOf = (request: number) => Math.floor(request / pace.requests) * pace.windowMs
  const leastMs = requests === 0 ? 0 : windowOf(requests - 1)
  const toCreate = steps.filter(({ action }) => action.do === 'create')
  const usual = toCreate.map(({ model }) => (model === undefined ? undefined : pace.usualMs(model)))
  if (usual.length === 0 || !usual.every((ms) => ms !== undefined)) return { leastMs, expectedMs: undefined }
  /** When each run in flight ends; under a cap the next one waits for the first of them. */
  const ends: number[] = []
  let lastMs = leastMs
  for (const [at, ms] of usual.entries()) {
    const isFull = pace.concurrency !== undefined && ends.length >= pace.concurrency
    const freeMs = isFull ? (ends.shift() ?? 0) : 0
    const endMs = Math.max(windowOf(at), freeMs) + ms
    insert(ends, endMs)
    lastMs = Math.max(lastMs, endMs)
  }
  return { leastMs, expectedMs: lastMs }
}

/** Inserts into a sorted list. */
function insert(list: number[], value: number): void {
  const at = list.findLastIndex((each) => each <= value)
  list.splice(at + 1, 0, value)
}
