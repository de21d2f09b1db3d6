/** The control of faults and their record, for every transport. */
import type { Clock } from '../../src/host/clock.js'
import type { Fault, RequestKind } from '../../src/service/faults/fault.js'
import { parseFault } from '../../src/service/faults/grammar.js'
import { createFaults, requestKindOf } from '../../src/service/faults/index.js'

/** A request as it came, by the monotonic clock. */
export interface Seen {
  readonly method: string
  readonly path: string
  readonly place: RequestKind | undefined
  readonly atMs: number
  /** Whether the service got it whole, and so may have acted. */
  reached: boolean
}

export interface FaultControl {
  /** One more fault, which stays for its count: `status:500::3`. */
  add(spec: string): void
  /** What happens to the next such request, once: `next('create', 'lose')`, `next('output', 'reset:1000')`. */
  next(where: RequestKind | 'any' | 'run', what: string): void
  /** All requests, in order. */
  readonly seen: readonly Seen[]
  /** How many such requests the service got whole. */
  reached(place: RequestKind): number
  /** What struck, in words. */
  readonly strikes: readonly string[]
}

export function createControl(specs: readonly string[], clock: Pick<Clock, 'monotonic' | 'sleep'>) {
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
