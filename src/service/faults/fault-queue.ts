/** Whose turn it is: counts down, in the order in which the faults were given. */
import type { Effect, EffectOf, Fault, RequestKind } from './fault.js'

export interface Strike {
  /** What becomes of the answer; undefined: it is the service's own. */
  readonly effect: Effect | undefined
  /** These go along with any other. */
  readonly delays: readonly EffectOf<'delay'>[]
  readonly pace: EffectOf<'slow'> | undefined
}

export interface FaultQueue {
  /** After those that are there. */
  add(fault: Fault): void
  /** Before those that stay, after those that were put first earlier. */
  first(fault: Fault): void
  /** `reused`: the connection has carried a request before. */
  take(place: RequestKind, reused: boolean): Strike
  /** For a run that was accepted. */
  takeRun(): EffectOf<'fail' | 'never'> | undefined
}

interface Entry {
  readonly fault: Fault
  left: number
}

export function createFaultQueue(faults: readonly Fault[]): FaultQueue {
  const entry = (fault: Fault): Entry => ({ fault, left: fault.count })
  const first: Entry[] = []
  const standing = faults.map(entry)

  const waiting = (where: (fault: Fault) => boolean): readonly Entry[] =>
    [...first, ...standing].filter(({ fault, left }) => left > 0 && where(fault))

  function use(used: Entry): Effect {
    used.left--
    return used.fault.effect
  }

  return {
    add: (fault) => void standing.push(entry(fault)),
    first: (fault) => void first.push(entry(fault)),

    take(place, reused) {
      const entries = waiting(
        ({ where, effect }) => (where === place || where === 'any') && (effect.what !== 'close' || reused),
      )
      const delays: EffectOf<'delay'>[] = []
      let [effect, pace]: [Effect | undefined, EffectOf<'slow'> | undefined] = [undefined, undefined]
      for (const each of entries) {
        const { what } = each.fault.effect
        if (what === 'delay') delays.push(use(each) as EffectOf<'delay'>)
        else if (what === 'slow') pace ??= use(each) as EffectOf<'slow'>
        else effect ??= use(each)
      }
      return { effect, delays, pace }
    },

    takeRun() {
      const [next] = waiting(({ where }) => where === 'run')
      return next === undefined ? undefined : (use(next) as EffectOf<'fail' | 'never'>)
    },
  }
}
