/** One fault on one exchange: whether the service acts, and what becomes of its answer. */
import { raceAbort } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { ConnectionReset, corrupted, paced, upTo } from './bytes.js'
import type { Effect, EffectOf, Place } from './fault.js'
import type { Turn } from './fault-queue.js'
import {
  type Answer,
  answered,
  errorAnswer,
  nonsense,
  type Outcome,
  redirectAnswer,
} from './fault-response.js'

/** A request that has come, seen from between the two sides. */
export interface Exchange {
  /** Lets the service act; its answer. Called once at most. */
  ask(): Promise<Answer>
  /** Takes in so many bytes of the request's body, or all when there are fewer. */
  takeIn(bytes: number): Promise<void>
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal
  /** What becomes of a connection on which nothing moves; by default it waits for the signal. */
  standStill?(): Promise<never>
}

/** Rejects with the signal's reason once nobody waits any more. */
export async function carryOut(
  { effect, delays, pace }: Turn,
  { place, clock }: { readonly place: Place; readonly clock: Pick<Clock, 'sleep'> },
  exchange: Exchange,
): Promise<Outcome> {
  const outcome = await outcomeOf(effect, place, exchange)
  const sleep = (ms: number) => clock.sleep(ms, exchange.signal)
  for (const { ms } of delays) await sleep(ms)
  if (pace === undefined || outcome.kind !== 'answer') return outcome
  return withBody(outcome.answer, paced(outcome.answer.body, pace.bytesPerSecond, sleep))
}

async function outcomeOf(effect: Effect | undefined, place: Place, exchange: Exchange): Promise<Outcome> {
  const { ask, signal, standStill = () => raceAbort(never, signal) } = exchange
  switch (effect?.what) {
    case 'status':
      if (effect.acted) (await ask()).discard()
      return answered(errorAnswer(effect))
    case 'expire':
      return answered(errorAnswer({ status: effect.status, code: undefined, headers: {} }))
    case 'redirect':
      return answered(redirectAnswer(effect.url))
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
      return withBody(answer, upTo(answer.body, effect.byte, standStill))
    }
    case 'truncate': {
      const answer = await ask()
      const byte = effect.byte ?? Math.floor(Number(answer.headers['content-length'] ?? 0) / 2)
      return withBody(
        answer,
        upTo(answer.body, byte, async () => {}),
      )
    }
    case 'corrupt': {
      const answer = await ask()
      return withBody(answer, corrupted(answer.body, effect.byte))
    }
    default:
      return answered(await ask())
  }
}

async function reset({ within, byte }: EffectOf<'reset'>, exchange: Exchange): Promise<Outcome> {
  if (within === 'upload') await exchange.takeIn(byte)
  if (within === 'upload' || within === 'start') return { kind: 'reset' }
  const answer = await exchange.ask()
  if (within === 'head') return { kind: 'reset', head: { answer, bytes: byte } }
  const die = () => Promise.reject(new ConnectionReset('a fault resets the connection'))
  return withBody(answer, upTo(answer.body, byte, die))
}

const never = new Promise<never>(() => {})

const withBody = (answer: Answer, body: Answer['body']): Outcome => answered({ ...answer, body })
