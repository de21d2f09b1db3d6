/** Requests of the pages: their origin, and the values of their query strings. Pure. */
import { isLoopback } from '../../host/http.js'
import { shortened } from '../../protocol/text.js'
import { invalidInput, Refusal } from './refusal.js'

/** A request as the client sent it, also through a trusted proxy. */
export interface SeenRequest {
  /** `http` or `https`. */
  readonly scheme: string
  /** Includes the port, if any. */
  readonly host: string
  readonly origin: string | undefined
  /** Value of the header `Sec-Fetch-Site`. */
  readonly fetchSite: string | undefined
}

/**
 * Throws `Refusal` (403) unless the request comes from a page of the service. Browsers send `Origin` with every request
 * that can change data. It is `null` for a page without an origin, such as a file.
 */
export function checkOwnOrigin(request: SeenRequest, publicUrl: string | undefined): void {
  const { origin, fetchSite } = request
  const isOwn =
    origin !== undefined && /^https?:\/\//i.test(origin) && ownOrigins(request, publicUrl).includes(origin)
  if (!isOwn || fetchSite === 'cross-site') throw new Refusal('foreign_origin')
}

const originOf = (url: string): string | undefined => (URL.canParse(url) ? new URL(url).origin : undefined)

const ownOrigins = ({ scheme, host }: SeenRequest, publicUrl: string | undefined) => [
  originOf(`${scheme}://${host}`),
  publicUrl === undefined ? undefined : originOf(publicUrl),
]

/** Whether the browser is on this machine and uses plain HTTP. Then a cookie cannot be `Secure`. */
export function isPlainLoopback(
  { scheme, host, origin }: SeenRequest,
  publicUrl: string | undefined,
): boolean {
  const isPlain = (url: string) => {
    const { protocol, hostname } = new URL(url)
    return protocol === 'http:' && isLoopback(hostname)
  }
  // Prefer the browser's `Origin`: a proxy may have put its own address into `Host`.
  if (origin !== undefined && URL.canParse(origin)) return isPlain(origin)
  const url = `${scheme}://${host}`
  return URL.canParse(url) && isPlain(url) && !/^https:/i.test(publicUrl ?? '')
}

/**
 * Throws `Refusal` (403) for a password or sign-in link that is sent over plain HTTP from another machine. Call it
 * after `checkOwnOrigin`.
 */
export function checkTransport(request: SeenRequest, publicUrl: string | undefined): void {
  if (/^http:/i.test(request.origin ?? '') && !isPlainLoopback(request, publicUrl))
    throw new Refusal('https_required')
}

/** Id of a key or a user in a path. Returns 0 for text that is not a number. No row has this number. */
export const idIn = (text: string): number => (/^[1-9]\d{0,14}$/.test(text) ? Number(text) : 0)

export type Query = Readonly<Record<string, unknown>>

/**
 * Throws `Refusal` (400), which names the field, like `numberIn`, `cursorIn` and `choiceIn`. An empty value counts as
 * absent, since forms send empty values.
 */
export function textIn(query: Query, name: string, maxLength = 300): string | undefined {
  const value = query[name]
  if (value === undefined || value === '') return undefined
  if (typeof value !== 'string') throw invalidInput(`${name} is given more than once.`)
  if (value.length > maxLength) throw invalidInput(`${name} has more than ${maxLength} characters.`)
  return value
}

export function numberIn(query: Query, name: string, min: number, max: number): number | undefined {
  const text = textIn(query, name)
  if (text === undefined) return undefined
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (value >= min && value <= max) return value
  throw invalidInput(`${name}: "${shortened(text)}" is not a whole number from ${min} to ${max}.`)
}

/** Sequence number of a run or ledger entry, from an earlier page. */
export const cursorIn = (query: Query, name: string): number | undefined =>
  numberIn(query, name, 0, Number.MAX_SAFE_INTEGER)

export function choiceIn<Choice extends string>(
  query: Query,
  name: string,
  choices: readonly Choice[],
): Choice | undefined {
  const text = textIn(query, name)
  const found = choices.find((each) => each === text)
  if (text !== undefined && found === undefined)
    throw invalidInput(`${name}: "${shortened(text)}" is not one of ${choices.join(', ')}.`)
  return found
}
