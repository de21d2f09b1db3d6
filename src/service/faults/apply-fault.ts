/** One fault on one exchange: whether the service acts, and what becomes of its answer. */
import { raceAbort } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { ConnectionReset, corruptFrom, firstBytes, throttle } from './bytes.js'
import type { Effect, EffectOf, RequestKind } from './fault.js'
import type { Strike } from './fault-queue.js'
import {
  answered,
  errorResponse,
  type FaultResponse,
  nonsense,
  type Outcome,
  redirectResponse,
} from './fault-response.js'

/** A request that has come, seen from between the two sides. */
export interface Exchange {
  /** Lets the service act; its answer. Called once at most. */
  ask(): Promise<FaultResponse>
  /** Takes in so many bytes of the request's body, or all when there are fewer. */
  readUpload(bytes: number): Promise<void>
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal
  /** What becomes of a connection on which nothing moves; by default it waits for the signal. */
  stall?(): Promise<never>
}

/** Rejects with the signal's reason once nobody waits any more. */
export async function respond(
  { effect, delays, pace }: Strike,
  { place, clock }: { readonly place: RequestKind; readonly clock: Pick<Clock, 'sleep'> },
  exchange: Exchange,
): Promise<Outcome> {
  const outcome = await outcomeOf(effect, place, exchange)
  const sleep = (ms: number) => clock.sleep(ms, exchange.signal)
  for (const { ms } of delays) await sleep(ms)
  if (pace === undefined || outcome.kind !== 'answer') return outcome
  return withBody(outcome.answer, throttle(outcome.answer.body, pace.bytesPerSecond, sleep))
}

async function outcomeOf(
  effect: Effect | undefined,
  place: RequestKind,
  exchange: Exchange,
): Promise<Outcome> {
  const { ask, signal, stall = () => raceAbort(never, signal) } = exchange
  switch (effect?.what) {
    case 'status':
      if (effect.acted) (await ask()).discard()
      return answered(errorResponse(effect))
    case 'expire':
      return answered(errorResponse({ status: effect.status, code: undefined, headers: {} }))
    case 'redirect':
      return answered(redirectResponse(effect.url))
    case 'close':
      return { kind: 'close' }
    case 'reset':
      return await reset(effect, exchange)
    case 'lose': {
      const answer = await ask()
      answer.discard()
      return { kind: 'reset' }
    }
    case 'nonsense': {
      const answer = await ask()
      answer.discard()
      return nonsense(effect.kind, place)
    }
    case 'stall': {
      if (effect.byte === undefined) return { kind: 'stall' }
      const answer = await ask()
      return withBody(answer, firstBytes(answer.body, effect.byte, stall))
    }
    case 'truncate': {
      const answer = await ask()
      const byte = effect.byte ?? Math.floor(Number(answer.headers['content-length'] ?? 0) / 2)
      return withBody(
        answer,
        firstBytes(answer.body, byte, async () => {}),
      )
    }
    case 'corrupt': {
      const answer = await ask()
      return withBody(answer, corruptFrom(answer.body, effect.byte))
    }
    default:
      return answered(await ask())
  }
}

async function reset({ within, byte }: EffectOf<'reset'>, exchange: Exchange): Promise<Outcome> {
  if (within === 'upload') await exchange.readUpload(byte)
  if (within === 'upload' || within === 'start') return { kind: 'reset' }
  const answer = await exchange.ask()
  if (within === 'head') return { kind: 'reset', head: { answer, bytes: byte } }
  const die = () => Promise.reject(new ConnectionReset('a fault resets the connection'))
  return withBody(answer, firstBytes(answer.body, byte, die))
}

const never = new Promise<never>(() => {})

const withBody = (answer: FaultResponse, body: FaultResponse['body']): Outcome =>
  answered({ ...answer, body })
