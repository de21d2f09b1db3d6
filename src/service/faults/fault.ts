/** Types and descriptions of faults. A fault has a target, an effect and a count. */

/** Kinds of requests that faults can apply to. */
export type RequestKind = 'create' | 'status' | 'output'

/** `run` applies to the next accepted run instead of a request. */
export type FaultTarget = RequestKind | 'any' | 'run'

export const NONSENSE = ['html', 'text', 'empty', 'list', 'object', 'huge', 'no-http'] as const
export type Nonsense = (typeof NONSENSE)[number]

export type Effect =
  /** Responds with this status. The service handles the request first only if `acted` is true. */
  | {
      readonly what: 'status'
      readonly status: number
      readonly code: string | undefined
      readonly headers: Readonly<Record<string, string>>
      readonly acted: boolean
    }
  | { readonly what: 'redirect'; readonly url: string }
  /**
   * Resets the connection before the service handles the request (`start`), or after `byte` bytes of the request body,
   * the response headers or the response body.
   */
  | { readonly what: 'reset'; readonly within: 'start' | 'upload' | 'head' | 'body'; readonly byte: number }
  | { readonly what: 'lose' }
  | { readonly what: 'close' }
  /** Without `byte`, sends no response, and the service does not handle the request. */
  | { readonly what: 'stall'; readonly byte: number | undefined }
  /** Without `byte`, the body is cut in the middle. */
  | { readonly what: 'truncate'; readonly byte: number | undefined }
  | { readonly what: 'corrupt'; readonly byte: number }
  | { readonly what: 'nonsense'; readonly kind: Nonsense }
  | { readonly what: 'delay'; readonly ms: number }
  | { readonly what: 'slow'; readonly bytesPerSecond: number }
  | { readonly what: 'expire'; readonly status: number }
  | { readonly what: 'fail'; readonly message: string }
  | { readonly what: 'never' }

export type EffectOf<What extends Effect['what']> = Extract<Effect, { what: What }>

export interface Fault {
  readonly where: FaultTarget
  readonly effect: Effect
  /** Number of requests that the fault applies to. Infinity: all requests. */
  readonly count: number
}

const bytes = (count: number): string => (count === 1 ? '1 byte' : `${count} bytes`)

const RESETS: Readonly<Record<EffectOf<'reset'>['within'], (byte: number) => string>> = {
  start: () => 'was reset before the service acted',
  upload: (byte) => `was reset after ${bytes(byte)} of its body`,
  head: (byte) => `was reset after ${bytes(byte)} of the response headers`,
  body: (byte) => `was reset after ${bytes(byte)} of the response body`,
}

const DESCRIPTIONS: { readonly [What in Effect['what']]: (effect: EffectOf<What>) => string } = {
  status: ({ status, code, acted }) =>
    `answered ${[status, code].filter(Boolean).join(' ')}${acted ? ' after the service acted' : ''}`,
  redirect: ({ url }) => `redirected to ${url}`,
  reset: ({ within, byte }) => RESETS[within](byte),
  lose: () => 'lost its response after the service acted',
  close: () => 'was sent on a connection that was closing',
  stall: ({ byte }) => (byte === undefined ? 'stalled without a response' : `stalled after ${bytes(byte)}`),
  truncate: ({ byte }) => `was cut short ${byte === undefined ? 'in the middle' : `after ${bytes(byte)}`}`,
  corrupt: ({ byte }) => `was corrupted after ${bytes(byte)}`,
  nonsense: ({ kind }) => `sent an invalid response (${kind})`,
  delay: ({ ms }) => `delayed by ${ms} ms`,
  slow: ({ bytesPerSecond }) => `slowed to ${bytes(bytesPerSecond)} a second`,
  expire: ({ status }) => `answered ${status}: the link has expired`,
  fail: () => 'will end as failed',
  never: () => 'will never end',
}

/** Returns text for the terminal of the service, for example `create answered 429 RATE_LIMITED`. */
export function describeEffect(where: FaultTarget, effect: Effect): string {
  const describe = DESCRIPTIONS[effect.what] as (effect: Effect) => string
  return `${where} ${describe(effect)}`
}
