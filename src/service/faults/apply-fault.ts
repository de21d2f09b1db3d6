/**
 * Applies faults to one request: decides whether the service handles the request, and which response the client gets.
 */
import { STATUS_CODES } from 'node:http'
import { raceAbort } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { problemOf } from '../../protocol/problems.js'
import type { Effect, EffectOf, Nonsense, RequestKind } from './fault.js'

/** Effects that match one request. */
export interface MatchingEffects {
  /** If undefined, the response of the service is not replaced. */
  readonly effect: Effect | undefined
  /** Delays and `pace` are combined with any other effect. */
  readonly delays: readonly EffectOf<'delay'>[]
  readonly pace: EffectOf<'slow'> | undefined
}

/** One request, as an intermediary between client and service sees it. */
export interface Exchange {
  /** Passes the request to the service and returns its response. Called at most once. */
  ask(): Promise<FaultResponse>
  /** Reads this number of bytes from the request body, or the whole body if it is shorter. */
  readUpload(bytes: number): Promise<void>
  /** Aborted when the client disconnects. */
  readonly signal: AbortSignal
  /** Waits without sending or receiving anything. Default: until the signal is aborted. */
  stall?(): Promise<never>
}

/** A response of the service, or an injected response. */
export interface FaultResponse {
  readonly status: number
  /** Header names are in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Must be iterated once, or discarded with `discard`. */
  readonly body: AsyncIterable<Uint8Array>
  discard(): void
}

/** What the transport does with the connection to the client. */
export type FaultOutcome =
  | { readonly kind: 'answer'; readonly answer: FaultResponse }
  /** Resets the connection. With `head`, first sends the first `bytes` bytes of the response headers. */
  | { readonly kind: 'reset'; readonly head?: { readonly answer: FaultResponse; readonly bytes: number } }
  /** Closes the connection normally. */
  | { readonly kind: 'close' }
  | { readonly kind: 'stall' }
  /** Sends bytes that are not HTTP. */
  | { readonly kind: 'noise'; readonly bytes: Uint8Array }

/** Applies the matching effects to a request. Rejects with the signal's reason when `exchange.signal` is aborted. */
export async function applyFault(
  { effect, delays, pace }: MatchingEffects,
  kind: RequestKind,
  exchange: Exchange,
  clock: Clock,
): Promise<FaultOutcome> {
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
): Promise<FaultOutcome> {
  const { ask, signal, stall = () => raceAbort(never, signal) } = exchange
  const act = async () => (await ask()).discard()
  switch (effect?.what) {
    case 'status':
      if (effect.acted) await act()
      return answered(errorResponse(effect))
    case 'expire':
      return answered(errorResponse({ status: effect.status, code: undefined, headers: {} }))
    case 'redirect':
      // 307 keeps the method: a client that follows the redirect would repeat a create.
      return answered(createResponse(307, { location: effect.url }, ''))
    case 'close':
      return { kind: 'close' }
    case 'reset':
      return await reset(effect, exchange)
    case 'lose':
      await act()
      return { kind: 'reset' }
    case 'nonsense':
      await act()
      return nonsenseOutcome(effect.kind, kind)
    case 'stall': {
      if (effect.byte === undefined) return { kind: 'stall' }
      const answer = await ask()
      return withBody(answer, firstBytes(answer.body, effect.byte, stall))
    }
    case 'truncate': {
      const answer = await ask()
      const byte = effect.byte ?? Math.floor(Number(answer.headers['content-length'] ?? 0) / 2)
      return withBody(answer, firstBytes(answer.body, byte))
    }
    case 'corrupt': {
      const answer = await ask()
      return withBody(answer, corruptFrom(answer.body, effect.byte))
    }
    default:
      return answered(await ask())
  }
}

/** Thrown while a body is read: the transport must reset the connection at this point. */
export class ConnectionReset extends Error {
  override readonly name = 'ConnectionReset'
}

async function reset({ within, byte }: EffectOf<'reset'>, exchange: Exchange): Promise<FaultOutcome> {
  if (within === 'upload') await exchange.readUpload(byte)
  if (within === 'upload' || within === 'start') return { kind: 'reset' }
  const answer = await exchange.ask()
  if (within === 'head') return { kind: 'reset', head: { answer, bytes: byte } }
  const fail = () => Promise.reject(new ConnectionReset('the service injected a connection reset'))
  return withBody(answer, firstBytes(answer.body, byte, fail))
}

const never = new Promise<never>(() => {})

const answered = (answer: FaultResponse): FaultOutcome => ({ kind: 'answer', answer })

const withBody = (answer: FaultResponse, body: FaultResponse['body']): FaultOutcome =>
  answered({ ...answer, body })

export function createResponse(
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string | Uint8Array,
): FaultResponse {
  const bytes = Buffer.from(body)
  return {
    status,
    headers: { ...headers, 'content-length': String(bytes.byteLength) },
    body: singleChunk(bytes),
    discard() {},
  }
}

const JSON_TYPE = 'application/json; charset=utf-8'

/** Whether responses with this status have no body (RFC 9110, 6.4.1). */
export const hasNoBody = (status: number): boolean => status < 200 || status === 204 || status === 304

/** Returns an error response in the format of the API. The body has no `code` if `code` is undefined. */
function errorResponse({ status, code, headers }: Omit<EffectOf<'status'>, 'what' | 'acted'>): FaultResponse {
  if (hasNoBody(status)) return { ...createResponse(status, headers, ''), headers }
  const message = problemOf(code)?.cause ?? STATUS_CODES[status] ?? 'The service injected this fault.'
  const body = JSON.stringify({ error: { message, ...(code !== undefined && { code }) } })
  return createResponse(status, { 'content-type': JSON_TYPE, 'cache-control': 'no-store', ...headers }, body)
}

const PAGE = '<!doctype html>\n<title>Welcome</title>\n<h1>Please sign in to this network</h1>\n'
/** Larger than any run that a client should accept. */
const HUGE_BYTES = 9 * 1_048_576

const NONSENSE_BODIES: Readonly<Record<Exclude<Nonsense, 'no-http'>, () => readonly [string, string]>> = {
  html: () => ['text/html; charset=utf-8', PAGE],
  text: () => ['text/plain; charset=utf-8', 'OK'],
  empty: () => [JSON_TYPE, ''],
  list: () => [JSON_TYPE, '[]'],
  object: () => [JSON_TYPE, '{"ok":true}'],
  huge: () => [JSON_TYPE, `{"ok":"${'x'.repeat(HUGE_BYTES)}"}`],
}

/** Returns a success response with an invalid body, or bytes that are not HTTP. */
function nonsenseOutcome(nonsense: Nonsense, kind: RequestKind): FaultOutcome {
  if (nonsense === 'no-http') return { kind: 'noise', bytes: Buffer.from('SSH-2.0-OpenSSH_9.6\r\n') }
  const [type, body] = NONSENSE_BODIES[nonsense]()
  return answered(createResponse(kind === 'create' ? 201 : 200, { 'content-type': type }, body))
}

type ByteStream = AsyncIterable<Uint8Array>

/** Yields the first `bytes` bytes, or the whole body if it is shorter; then awaits `next()`. */
async function* firstBytes(
  body: ByteStream,
  bytes: number,
  next: () => Promise<void> = async () => {},
): AsyncGenerator<Uint8Array> {
  let left = bytes
  // Begins to read also for no byte: the end of the loop closes the file behind the body.
  for await (const chunk of body) {
    if (left > 0) yield chunk.subarray(0, left)
    left -= chunk.byteLength
    if (left <= 0) break
  }
  await next()
}

/** Inverts all bits from the offset `from`. */
async function* corruptFrom(body: ByteStream, from: number): AsyncGenerator<Uint8Array> {
  let offset = 0
  for await (const chunk of body) {
    const intact = Math.max(0, from - offset)
    offset += chunk.byteLength
    yield chunk.map((byte, at) => (at < intact ? byte : byte ^ 0xff))
  }
}

const PIECES_A_SECOND = 10

/** Limits the transfer rate: waits before each piece for as long as its bytes take at `bytesPerSecond`. */
async function* throttle(
  body: ByteStream,
  bytesPerSecond: number,
  sleep: (ms: number) => Promise<void>,
): AsyncGenerator<Uint8Array> {
  const pieceBytes = Math.max(1, Math.ceil(bytesPerSecond / PIECES_A_SECOND))
  for await (const chunk of body)
    for (let at = 0; at < chunk.byteLength; at += pieceBytes) {
      const piece = chunk.subarray(at, at + pieceBytes)
      await sleep((1_000 * piece.byteLength) / bytesPerSecond)
      yield piece
    }
}

export async function* singleChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.byteLength > 0) yield bytes
}
