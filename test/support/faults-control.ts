/** What a test says to faults and hears of them, over whichever transport. */
import type { Clock } from '../../src/host/clock.js'
import type { RequestKind } from '../../src/service/faults/fault.js'
import { parseFault } from '../../src/service/faults/grammar.js'
import { createFaults, type Faults } from '../../src/service/faults/index.js'
import { requestKindOf } from '../../src/service/faults/request-kind.js'

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
  /** Everything that was asked for, in order. */
  readonly seen: readonly Seen[]
  /** How many such requests the service got whole. */
  reached(place: RequestKind): number
  /** What struck, in words. */
  readonly strikes: readonly string[]
}

export function createControl(specs: readonly string[], clock: Pick<Clock, 'monotonic' | 'sleep'>) {
  const seen: Seen[] = []
  const strikes: string[] = []
  const faults: Faults = createFaults({
    faults: specs.map(parseFault),
    clock,
    onStrike: (words) => strikes.push(words),
  })
  const control: FaultControl = {
    seen,
    strikes,
    add: (spec) => faults.add(parseFault(spec)),
    next: (where, what) => faults.addFirst({ ...parseFault(`${where}:${what}`), count: 1 }),
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
