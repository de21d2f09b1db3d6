/** A response on its way to the client: the service's own, or an invented one. */
import { STATUS_CODES } from 'node:http'
import { problemOf } from '../../protocol/problems.js'
import type { EffectOf, Nonsense, RequestKind } from './fault.js'

export interface FaultResponse {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  /** Iterate once, or call `discard`. */
  readonly body: AsyncIterable<Uint8Array>
  discard(): void
}

/** What is sent to the client. */
export type Outcome =
  | { readonly kind: 'answer'; readonly answer: FaultResponse }
  /** Resets the connection, after a number of bytes of a response's head when there is one. */
  | { readonly kind: 'reset'; readonly head?: { readonly answer: FaultResponse; readonly bytes: number } }
  /** Closes the connection normally. */
  | { readonly kind: 'close' }
  | { readonly kind: 'stall' }
  /** Bytes that are not HTTP. */
  | { readonly kind: 'noise'; readonly bytes: Uint8Array }

export const answered = (answer: FaultResponse): Outcome => ({ kind: 'answer', answer })

async function* singleChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  if (bytes.byteLength > 0) yield bytes
}

export const createResponse = (
  status: number,
  headers: Readonly<Record<string, string>>,
  body: string | Uint8Array,
): FaultResponse => {
  const bytes = Buffer.from(body)
  return {
    status,
    headers: { ...headers, 'content-length': String(bytes.byteLength) },
    body: singleChunk(bytes),
    discard() {},
  }
}

export const JSON_TYPE = 'application/json; charset=utf-8'

/** Statuses whose responses have no body (RFC 9110, 6.4.1). */
export const hasNoBody = (status: number): boolean => status < 200 || status === 204 || status === 304

/** In the interface's shape; `code` is left out where there is none. */
export function errorResponse({
  status,
  code,
  headers,
}: Omit<EffectOf<'status'>, 'what' | 'acted'>): FaultResponse {
  if (hasNoBody(status)) return { ...createResponse(status, headers, ''), headers }
  const message = problemOf(code)?.cause ?? STATUS_CODES[status] ?? 'The service injected this fault.'
  const body = JSON.stringify({ error: { message, ...(code !== undefined && { code }) } })
  return createResponse(status, { 'content-type': JSON_TYPE, 'cache-control': 'no-store', ...headers }, body)
}

/** 307 keeps the method, so that a client which followed it would repeat a create. */
export const redirectResponse = (url: string): FaultResponse => createResponse(307, { location: url }, '')

const PAGE = '<!doctype html>\n<title>Welcome</title>\n<h1>Please sign in to this network</h1>\n'
/** More than a client should accept as a run. */
const HUGE_BYTES = 9 * 1_048_576

const NONSENSE_BODIES: Readonly<Record<Exclude<Nonsense, 'no-http'>, () => readonly [string, string]>> = {
  html: () => ['text/html; charset=utf-8', PAGE],
  text: () => ['text/plain; charset=utf-8', 'OK'],
  empty: () => [JSON_TYPE, ''],
  list: () => [JSON_TYPE, '[]'],
  object: () => [JSON_TYPE, '{"ok":true}'],
  huge: () => [JSON_TYPE, `{"ok":"${'x'.repeat(HUGE_BYTES)}"}`],
}

/** The status of a success with an invalid body, or bytes that are not HTTP. */
export function nonsenseOutcome(nonsense: Nonsense, kind: RequestKind): Outcome {
  if (nonsense === 'no-http') return { kind: 'noise', bytes: Buffer.from('SSH-2.0-OpenSSH_9.6\r\n') }
  const [type, body] = NONSENSE_BODIES[nonsense]()
  return answered(createResponse(kind === 'create' ? 201 : 200, { 'content-type': type }, body))
}
