/** Which faults apply to the next request: in the order in which they were given, each until its count is used up. */
import type { Effect, EffectOf, Fault, RequestKind } from './fault.js'

export interface Strike {
  /** Undefined: the response is the service's own. */
  readonly effect: Effect | undefined
  /** Delays and a pace combine with any other effect. */
  readonly delays: readonly EffectOf<'delay'>[]
  readonly pace: EffectOf<'slow'> | undefined
}

export interface FaultQueue {
  /** Applies after the faults that are there. */
  add(fault: Fault): void
  /** Applies before the initial faults, after those that were added first earlier. */
  addFirst(fault: Fault): void
  /** `reused`: the connection has carried a request before. */
  take(kind: RequestKind, reused: boolean): Strike
  /** The effect on a run that was just accepted. */
  takeRun(): EffectOf<'fail' | 'never'> | undefined
}

interface QueuedFault {
  readonly fault: Fault
  left: number
}

export function createFaultQueue(faults: readonly Fault[]): FaultQueue {
  const entry = (fault: Fault): QueuedFault => ({ fault, left: fault.count })
  const first: QueuedFault[] = []
  const initial = faults.map(entry)

  const waiting = (where: (fault: Fault) => boolean): readonly QueuedFault[] =>
    [...first, ...initial].filter(({ fault, left }) => left > 0 && where(fault))

  function use(used: QueuedFault): Effect {
    used.left--
    return used.fault.effect
  }

  return {
    add: (fault) => void initial.push(entry(fault)),
    addFirst: (fault) => void first.push(entry(fault)),

    take(kind, reused) {
      const entries = waiting(
        ({ where, effect }) => (where === kind || where === 'any') && (effect.what !== 'close' || reused),
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
