/** How long a plan will take, pure: by the limit alone at least, and with what is usual for the models. */
import type { Step } from './index.js'

export interface Expectation {
  /** What the limit alone takes, if every run were done at once. */
  readonly leastMs: number
  /** Undefined where nobody knows how long a model takes, and where nothing is to be made. */
  readonly expectedMs: number | undefined
}

export interface Pace {
  /** So many requests in each window. */
  readonly requests: number
  readonly windowMs: number
  /** Runs under way at once; undefined: no cap. */
  readonly concurrency: number | undefined
  /** How long a run of the model usually takes; undefined when that is not known. */
  usualMs(model: string): number | undefined
}

/** `requests`: all that the plan asks at least. */
export function expectationOf(
  steps: readonly Pick<Step, 'action' | 'model'>[],
  requests: number,
  pace: Pace,
): Expectation {
  const windowOf = (request: number) => Math.floor(request / pace.requests) * pace.windowMs
  const leastMs = requests === 0 ? 0 : windowOf(requests - 1)
  const toMake = steps.filter(({ action }) => action.do === 'make')
  const usual = toMake.map(({ model }) => (model === undefined ? undefined : pace.usualMs(model)))
  if (usual.length === 0 || !usual.every((ms) => ms !== undefined)) return { leastMs, expectedMs: undefined }
  /** When each run under way ends; the next one waits for the first of them where there is a cap. */
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

/** Into a list that stays in order. */
function insert(list: number[], value: number): void {
  const at = list.findLastIndex((each) => each <= value)
  list.splice(at + 1, 0, value)
}
