/** Controls and records faults, for every transport. */
import type { Clock } from '../../src/host/clock.js'
import type { Fault, RequestKind } from '../../src/service/faults/fault.js'
import { parseFault } from '../../src/service/faults/grammar.js'
import { createFaults, requestKindOf } from '../../src/service/faults/index.js'

/** A received request. Times are monotonic. */
export interface Seen {
  readonly method: string
  readonly path: string
  readonly place: RequestKind | undefined
  readonly atMs: number
  /** Whether the service received the whole request, and so may have acted on it. */
  reached: boolean
}

export interface FaultControl {
  /** Adds a fault that applies until its count is used up: `status:500::3`. */
  add(spec: string): void
  /** Adds a fault for the next request of this kind: `next('create', 'lose')`, `next('output', 'reset:1000')`. */
  next(where: RequestKind | 'any' | 'run', what: string): void
  /** All requests, in order. */
  readonly seen: readonly Seen[]
  /** Number of requests of this kind that the service received completely. */
  reached(place: RequestKind): number
  /** Faults that were applied, as text. */
  readonly strikes: readonly string[]
}

export function createControl(specs: readonly string[], clock: Clock) {
  const seen: Seen[] = []
  const strikes: string[] = []
  const given: Fault[] = specs.map(parseFault)
  let once = 0
  const faults = createFaults({ faults: given, clock, onFault: (text) => strikes.push(text) })
  const control: FaultControl = {
    seen,
    strikes,
    add: (spec) => void given.push(parseFault(spec)),
    next: (where, what) => void given.splice(once++, 0, { ...parseFault(`${where}:${what}`), count: 1 }),
    reached: (place) => seen.filter((each) => each.place === place && each.reached).length,
  }
  const note = (method: string, path: string): Seen => {
    const noted = {
      method,
      path,
      place: requestKindOf(method, path),
      atMs: clock.monotonic(),
      reached: false,
    }
    seen.push(noted)
    return noted
  }
  return { control, faults, note }
}
