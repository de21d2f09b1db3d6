/** Console requests: their origin, the JSON Schemas of their bodies, and the values of their query strings. Pure. */
import { isLoopback } from '../../host/http.js'
import { MAX_ALLOWED_IPS, MAX_CREDITS, MAX_PASSWORD_LENGTH } from '../../protocol/credentials.js'
import { shortened } from '../../protocol/text.js'
import { MAX_EMAIL_LENGTH } from './credentials.js'
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

/** Maximum length of a token or code in a body. Valid ones are shorter. */
const MAX_SECRET_LENGTH = 300

const email = {
  type: 'string',
  minLength: 1,
  maxLength: MAX_EMAIL_LENGTH,
  description: 'In any case',
} as const
const password = { type: 'string', maxLength: MAX_PASSWORD_LENGTH } as const
const secret = { type: 'string', maxLength: MAX_SECRET_LENGTH } as const

const object = <Properties extends object>(
  properties: Properties,
  required: readonly (keyof Properties)[] = [],
) => ({
  type: 'object',
  required,
  properties,
})

const limit = { type: ['integer', 'null'], minimum: 0, maximum: MAX_CREDITS } as const

const keyTerms = {
  name: { type: 'string' },
  disabled: { type: 'boolean' },
  spend_limit: limit,
  quota: limit,
  allowed_ips: {
    type: ['array', 'null'],
    minItems: 1,
    maxItems: MAX_ALLOWED_IPS,
    items: { type: 'string', maxLength: 100 },
  },
  expires_at: { type: ['string', 'null'], maxLength: 40 },
} as const

export const CONSOLE_BODIES = {
  signIn: object({ email, password }, ['email', 'password']),
  signOut: object({ everywhere: { type: 'boolean', description: 'End all sessions of the user' } }),
  password: object(
    {
      current: { ...password, description: 'Not needed in a session that a link began' },
      password: { ...password, description: 'The new one' },
    },
    ['password'],
  ),
  link: object({ token: { ...secret, description: 'The last part of the sign-in link' } }, ['token']),
  // Refuse unknown fields: otherwise the client would assume that they were set.
  newKey: { ...object(keyTerms, ['name']), additionalProperties: false },
  changedKey: { ...object(keyTerms), additionalProperties: false },
} as const

/** A validation error of Ajv. */
export interface SchemaProblem {
  readonly keyword: string
  readonly instancePath: string
  readonly params: Readonly<Record<string, unknown>>
  readonly message?: string | undefined
}

export function invalidBody([problem]: readonly SchemaProblem[]): Refusal {
  const { keyword = '', instancePath = '', params = {}, message = 'is not valid' } = problem ?? {}
  const name = instancePath === '' ? 'The body' : instancePath.slice(1)
  const sentence =
    keyword === 'required'
      ? `${params.missingProperty} is missing.`
      : keyword === 'additionalProperties'
        ? `${params.additionalProperty} cannot be set here.`
        : `${name} ${message.replace('must NOT', 'must not')}.`
  return invalidInput(sentence)
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
