/**
 * Faults between a client and the service, so that error paths can be tried: `serve --fault`, and the proxy of the
 * tests. The grammar and what each fault is: docs/faults.md.
 *
 *   fault.ts      the values, and their words
 *   grammar.ts    text to fault, by the table of effects.ts
 *   places.ts     which request is which
 *   plan.ts       whose turn it is
 *   carry-out.ts  one fault on one exchange, over any transport: answer.ts, bytes.ts
 *   memory.ts     what outlasts one request
 *
 * Limit: it knows nothing of sockets. A transport gives it an `Exchange` and does what the `Outcome` says.
 */
import type { Clock } from '../../host/clock.js'
import { carryOut, type Exchange } from './apply-fault.js'
import { type Fault, sayStrike } from './fault.js'
import { createPlan, type Turn } from './fault-queue.js'
import type { Outcome } from './fault-response.js'
import { createMemory } from './lasting-effects.js'
import { placeOf } from './request-kind.js'

export interface Met {
  readonly method: string
  /** With its query. */
  readonly path: string
  /** Whether the connection has carried a request before. */
  readonly reused: boolean
}

export interface Faults {
  /** After those that are there. */
  add(fault: Fault): void
  /** Before those that stay. */
  first(fault: Fault): void
  /** Undefined: this request is left alone. */
  meet(met: Met): Encounter | undefined
}

export interface Encounter {
  /** Otherwise the answer is the service's own, but for what earlier faults have made of its runs. */
  readonly isStruck: boolean
  /** Rejects with the signal's reason once nobody waits any more, and as `ask` does. */
  carryOut(exchange: Exchange): Promise<Outcome>
}

export interface FaultsOptions {
  readonly faults: readonly Fault[]
  readonly clock: Pick<Clock, 'sleep'>
  /** Told of each strike, as in `create answered 429`. */
  onStrike?(words: string): void
}

export function createFaults({ faults, clock, onStrike = () => {} }: FaultsOptions): Faults {
  const plan = createPlan(faults)
  const memory = createMemory(() => {
    const effect = plan.takeRun()
    if (effect !== undefined) onStrike(sayStrike('run', effect))
    return effect
  })

  function turnOf(place: NonNullable<ReturnType<typeof placeOf>>, { path, reused }: Met): Turn {
    const expired = place === 'output' ? memory.expired(path) : undefined
    if (expired !== undefined) return { effect: expired, delays: [], pace: undefined }
    const turn = plan.take(place, reused)
    if (turn.effect?.what === 'expire') memory.expire(path, turn.effect)
    return turn
  }

  return {
    add: plan.add,
    first: plan.first,
    meet(met) {
      const place = placeOf(met.method, met.path)
      if (place === undefined) return undefined
      const turn = turnOf(place, met)
      const effects = [turn.effect, ...turn.delays, turn.pace].filter((effect) => effect !== undefined)
      for (const effect of effects) onStrike(sayStrike(place, effect))
      const passOn = (exchange: Exchange) =>
        carryOut(
          turn,
          { place, clock },
          {
            ...exchange,
            ask: async () => memory.rewrite(place, met.path, await exchange.ask()),
          },
        )
      return { isStruck: effects.length > 0, carryOut: passOn }
    },
  }
}

export type { Exchange, Fault, Outcome }
