/** Applies one fault to one request: whether the service handles it, and what is sent in place of its response. */
import { raceAbort } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { ConnectionReset, corruptFrom, firstBytes, throttle } from './bytes.js'
import type { Effect, EffectOf, RequestKind } from './fault.js'
import type { Strike } from './fault-queue.js'
import {
  answered,
  errorResponse,
  type FaultResponse,
  nonsenseOutcome,
  type Outcome,
  redirectResponse,
} from './fault-response.js'

/** One request, seen from between client and service. */
export interface Exchange {
  /** Passes the request to the service; its response. Called at most once. */
  ask(): Promise<FaultResponse>
  /** Reads this many bytes of the request's body, or all when there are fewer. */
  readUpload(bytes: number): Promise<void>
  /** Aborted when nobody waits for the response any more. */
  readonly signal: AbortSignal
  /** Waits on a connection on which nothing moves; by default until the signal is aborted. */
  stall?(): Promise<never>
}

/** Rejects with the signal's reason once it is aborted. */
export async function applyFault(
  { effect, delays, pace }: Strike,
  { kind, clock }: { readonly kind: RequestKind; readonly clock: Pick<Clock, 'sleep'> },
  exchange: Exchange,
): Promise<Outcome> {
  const outcome = await outcomeOf(effect, kind, exchange)
  const sleep = (ms: number) => clock.sleep(ms, exchange.signal)
  for (const { ms } of delays) await sleep(ms)
  if (pace === undefined || outcome.kind !== 'answer') return outcome
  return withBody(outcome.answer, throttle(outcome.answer.body, pace.bytesPerSecond, sleep))
}

async function outcomeOf(
  effect: Effect | undefined,
  kind: RequestKind,
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
      return nonsenseOutcome(effect.kind, kind)
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
  const die = () => Promise.reject(new ConnectionReset('the service injected a connection reset'))
  return withBody(answer, firstBytes(answer.body, byte, die))
}

const never = new Promise<never>(() => {})

const withBody = (answer: FaultResponse, body: FaultResponse['body']): Outcome =>
  answered({ ...answer, body })
