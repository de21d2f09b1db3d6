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
import { type Exchange, respond } from './apply-fault.js'
import { describeStrike, type Fault } from './fault.js'
import { createFaultQueue, type Strike } from './fault-queue.js'
import type { Outcome } from './fault-response.js'
import { createLastingEffects } from './lasting-effects.js'
import { requestKindOf } from './request-kind.js'

export interface InterceptedRequest {
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
  intercept(met: InterceptedRequest): Interception | undefined
}

export interface Interception {
  /** Otherwise the answer is the service's own, but for what earlier faults have made of its runs. */
  readonly isAffected: boolean
  /** Rejects with the signal's reason once nobody waits any more, and as `ask` does. */
  respond(exchange: Exchange): Promise<Outcome>
}

export interface FaultsOptions {
  readonly faults: readonly Fault[]
  readonly clock: Pick<Clock, 'sleep'>
  /** Told of each strike, as in `create answered 429`. */
  onStrike?(words: string): void
}

export function createFaults({ faults, clock, onStrike = () => {} }: FaultsOptions): Faults {
  const plan = createFaultQueue(faults)
  const memory = createLastingEffects(() => {
    const effect = plan.takeRun()
    if (effect !== undefined) onStrike(describeStrike('run', effect))
    return effect
  })

  function turnOf(
    place: NonNullable<ReturnType<typeof requestKindOf>>,
    { path, reused }: InterceptedRequest,
  ): Strike {
    const expired = place === 'output' ? memory.expired(path) : undefined
    if (expired !== undefined) return { effect: expired, delays: [], pace: undefined }
    const turn = plan.take(place, reused)
    if (turn.effect?.what === 'expire') memory.expire(path, turn.effect)
    return turn
  }

  return {
    add: plan.add,
    first: plan.first,
    intercept(met) {
      const place = requestKindOf(met.method, met.path)
      if (place === undefined) return undefined
      const turn = turnOf(place, met)
      const effects = [turn.effect, ...turn.delays, turn.pace].filter((effect) => effect !== undefined)
      for (const effect of effects) onStrike(describeStrike(place, effect))
      const passOn = (exchange: Exchange) =>
        respond(
          turn,
          { place, clock },
          {
            ...exchange,
            ask: async () => memory.rewrite(place, met.path, await exchange.ask()),
          },
        )
      return { isAffected: effects.length > 0, respond: passOn }
    },
  }
}

export type { Exchange, Fault, Outcome }
