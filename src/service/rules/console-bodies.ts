/** The bodies of the console's requests as JSON Schemas, and why one is refused. Pure. */
import { MAX_ALLOWED_IPS, MAX_CREDITS } from '../../protocol/key-terms.js'
import { MAX_PASSWORD_LENGTH } from '../../protocol/password.js'
import { type Refusal, refusalSaying } from './refusal.js'

/** Of the longest address that mail can be sent to. */
const MAX_EMAIL_LENGTH = 254
/** Longer than any token or code. */
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
  login: object({ code: secret, verifier: secret }, ['code', 'verifier']),
  // What is not known here is refused: people would think that it is set.
  newKey: { ...object(keyTerms, ['name']), additionalProperties: false },
  changedKey: { ...object(keyTerms), additionalProperties: false },
  grantedLogin: object(
    { challenge: { type: 'string', pattern: '^[A-Za-z0-9_-]{43}$' }, name: { type: 'string' } },
    ['challenge', 'name'],
  ),
} as const

/** What Ajv tells. */
export interface SchemaProblem {
  readonly keyword: string
  readonly instancePath: string
  readonly params: Readonly<Record<string, unknown>>
  readonly message?: string | undefined
}

export function invalidBody([problem]: readonly SchemaProblem[]): Refusal {
  const {
    keyword,
    instancePath,
    params,
    message = 'is not valid',
  } = problem ?? {
    keyword: '',
    instancePath: '',
    params: {},
  }
  const name = instancePath === '' ? 'The body' : instancePath.slice(1)
  const sentence =
    keyword === 'required'
      ? `${params.missingProperty} is missing.`
      : keyword === 'additionalProperties'
        ? `${params.additionalProperty} cannot be set here.`
        : `${name} ${message.replace('must NOT', 'must not')}.`
  return refusalSaying('invalid_input', sentence)
}
