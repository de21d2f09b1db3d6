/**
 * Faults between a client and the service, to try out error paths: `serve --fault`, and the proxy of the tests. The
 * grammar and the effect of each fault: docs/faults.md.
 *
 *   fault.ts            a fault as a value, and as a sentence
 *   grammar.ts          text to fault, by the table of effects.ts
 *   request-kind.ts     create, status or output?
 *   fault-queue.ts      which faults apply to the next request
 *   apply-fault.ts      one fault on one request, over any transport: fault-response.ts, bytes.ts
 *   lasting-effects.ts  effects that outlast one request
 *
 * Limit: no sockets. A transport passes in an `Exchange` and performs the `Outcome`.
 */
import type { Clock } from '../../host/clock.js'
import { applyFault, type Exchange } from './apply-fault.js'
import { describeStrike, type Fault, type RequestKind } from './fault.js'
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
  /** Applies after the faults that are there. */
  add(fault: Fault): void
  /** Applies before the faults that were given at the start. */
  addFirst(fault: Fault): void
  /** Undefined for a request that faults never touch. */
  intercept(met: InterceptedRequest): Interception | undefined
}

export interface Interception {
  /** False: the response is the service's own, apart from lasting effects of earlier faults. */
  readonly isAffected: boolean
  /** Rejects with the signal's reason once nobody waits for the response, and when `ask` rejects. */
  respond(exchange: Exchange): Promise<Outcome>
}

export interface FaultsOptions {
  readonly faults: readonly Fault[]
  readonly clock: Pick<Clock, 'sleep'>
  /** Called for each fault that is applied, with text such as `create answered 429`. */
  onStrike?(words: string): void
}

export function createFaults({ faults, clock, onStrike = () => {} }: FaultsOptions): Faults {
  const queue = createFaultQueue(faults)
  const lasting = createLastingEffects(() => {
    const effect = queue.takeRun()
    if (effect !== undefined) onStrike(describeStrike('run', effect))
    return effect
  })

  function strikeOf(kind: RequestKind, { path, reused }: InterceptedRequest): Strike {
    const expired = kind === 'output' ? lasting.expired(path) : undefined
    if (expired !== undefined) return { effect: expired, delays: [], pace: undefined }
    const strike = queue.take(kind, reused)
    if (strike.effect?.what === 'expire') lasting.expire(path, strike.effect)
    return strike
  }

  return {
    add: queue.add,
    addFirst: queue.addFirst,
    intercept(request) {
      const kind = requestKindOf(request.method, request.path)
      if (kind === undefined) return undefined
      const strike = strikeOf(kind, request)
      const effects = [strike.effect, ...strike.delays, strike.pace].filter((effect) => effect !== undefined)
      for (const effect of effects) onStrike(describeStrike(kind, effect))
      return {
        isAffected: effects.length > 0,
        respond(exchange) {
          const ask = async () => lasting.rewrite(kind, request.path, await exchange.ask())
          return applyFault(strike, { kind, clock }, { ...exchange, ask })
        },
      }
    },
  }
}

export type { Exchange, Fault, Outcome }
