/** The authentication endpoints in the OpenAPI document, for a service with a console. */
import { AUTH_PATHS, SESSION_HEADER } from '../../protocol/console.js'
import { AUTH_LIMIT, SESSION_CHECK_LIMIT } from '../../protocol/limits.js'
import { KINDS } from '../../protocol/models.js'
import { CONSOLE_BODIES } from '../rules/console-requests.js'
import type { RefusalCode } from '../rules/refusal.js'
import {
  errorResponses,
  flag,
  integer,
  integerOrNull,
  type Json,
  listOrNull,
  record,
  refTo,
  text,
  textOrNull,
  time,
  timeOrNull,
} from './schemas.js'

const { requests, windowMs } = AUTH_LIMIT
const DESCRIPTION =
  `Sessions of people on the console. Those with POST count together: ${requests} requests in any ` +
  `${windowMs / 1_000} seconds per client address; sign-ins also per email, and new passwords per user. The session ` +
  `check: ${SESSION_CHECK_LIMIT.requests} in any ${SESSION_CHECK_LIMIT.windowMs / 1_000} seconds per session. ` +
  'Requests with POST need an `Origin` of the service itself, except the exchange of a code.'

const DATABASE: readonly RefusalCode[] = ['internal_error', 'not_ready']
/** Errors of all requests with a body. */
const BODY: readonly RefusalCode[] = ['invalid_json', 'invalid_input', 'payload_too_large']
const CHANGE: readonly RefusalCode[] = ['foreign_origin', 'RATE_LIMITED', ...BODY, ...DATABASE]

/** Errors of all requests by which a page changes data. */
const OF_PAGE: readonly RefusalCode[] = ['session_changed', ...CHANGE]

const SHOWN_SESSION: Json = {
  name: SESSION_HEADER,
  in: 'header',
  description:
    'The `id` of the session that the sender shows. If the cookie is that of another session, the request does nothing.',
  schema: { type: 'string' },
}

const COOKIE: Json = {
  'Set-Cookie': { description: 'The session, as `rushes_session`', schema: { type: 'string' } },
}

const LIMIT = 'Counts in the limit of the authentication endpoints.'

interface AuthOperation {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  /** If undefined, the operation is a GET. */
  readonly body?: Json
  /** If undefined, the response is a 204 without content. */
  readonly answer?: readonly [schema: string, description: string]
  readonly setsCookie?: boolean
  readonly needsSession?: boolean
  readonly errors: readonly RefusalCode[]
}

const OPERATIONS: Readonly<Record<keyof typeof AUTH_PATHS, AuthOperation>> = {
  signIn: {
    operationId: 'signIn',
    summary: 'Sign in with email and password',
    description: `Begins a session of 7 days, which every use extends. Needs HTTPS, except on this machine. ${LIMIT}`,
    body: CONSOLE_BODIES.signIn,
    answer: ['Session', 'The session began.'],
    setsCookie: true,
    errors: ['invalid_credentials', 'https_required', ...OF_PAGE, 'overloaded'],
  },
  link: {
    operationId: 'useLink',
    summary: 'Sign in with a link',
    description:
      `A link is valid once, for 15 minutes. In its session the password can be set without the ` +
      `current one. ${LIMIT}`,
    body: CONSOLE_BODIES.link,
    answer: ['Session', 'The session began.'],
    setsCookie: true,
    errors: ['invalid_link', 'https_required', ...OF_PAGE],
  },
  signOut: {
    operationId: 'signOut',
    summary: 'End this session, or all sessions of the user',
    description:
      `The end of all sessions also ends unused links and codes of the user. ${LIMIT} A valid ` +
      `session can always be ended.`,
    body: CONSOLE_BODIES.signOut,
    setsCookie: true,
    needsSession: true,
    errors: ['not_signed_in', ...OF_PAGE],
  },
  password: {
    operationId: 'setPassword',
    summary: 'Set the password',
    description: `Ends the other sessions of the user. ${LIMIT}`,
    body: CONSOLE_BODIES.password,
    answer: ['Session', 'The password was set.'],
    needsSession: true,
    errors: ['not_signed_in', 'invalid_credentials', ...OF_PAGE, 'overloaded'],
  },
  session: {
    operationId: 'getSession',
    summary: 'Check the session',
    description: 'Has a limit of its own, per session.',
    answer: ['Session', 'The session of the cookie'],
    needsSession: true,
    errors: ['not_signed_in', 'RATE_LIMITED', ...DATABASE],
  },
  login: {
    operationId: 'exchangeCode',
    summary: 'Exchange a code for an API key',
    description: `For \`rushes login --web\`: the user grants the code on the console; it is valid once, for 120 s. ${LIMIT}`,
    body: CONSOLE_BODIES.login,
    answer: ['NewKey', 'The key was created.'],
    errors: ['invalid_code', 'account_banned', 'too_many_keys', ...CHANGE],
  },
}

const SCHEMAS: Json = {
  Session: record('A session of a user', {
    id: text('Names the session, for `x-rushes-session`; it is not the token'),
    email: text('Email of the user, in lower case'),
    account: record('The account of the user', {
      name: text('Name of the account'),
      balance: integer('Balance in credits'),
      banned: flag('A banned account can read, and creates nothing'),
    }),
    can_set_password: flag('The password can be set without the current one: the session began with a link'),
    has_password: flag('The user has a password'),
    expires_at: time('When the session ends, unless it is used before'),
    models: record(
      'The models of this service',
      Object.fromEntries(KINDS.map((kind) => [kind, text(`Name of the ${kind} model`)])),
    ),
    base_url: text('What the URLs of this service begin with'),
  }),
  NewKey: record('A new API key', {
    key: refTo('Key'),
    api_key: text('The key itself, which is sent only now'),
  }),
  Key: record('An API key, without its secret', {
    id: integer('Number of the key'),
    name: text('Name of the key'),
    prefix: textOrNull('Its first characters'),
    disabled: flag('It is refused'),
    spent: integer('Credits that its runs have cost'),
    spend_limit: integerOrNull('Credits that its runs may cost over its lifetime'),
    used: integer('Accepted runs'),
    quota: integerOrNull('Runs that are accepted over its lifetime'),
    allowed_ips: listOrNull('Addresses and networks from which it may be used', {
      items: { type: 'string' },
    }),
    expires_at: timeOrNull('When it expires'),
    rate: textOrNull('Rate limit of its own, as `100/10s`'),
    created_at: time('When it was created'),
    last_used_at: timeOrNull('When it was last used, to the minute'),
    archived_at: timeOrNull('When it was archived: disabled for good'),
  }),
}

/** Parts of the OpenAPI document for the authentication endpoints. */
export const AUTHENTICATION = {
  tag: { name: 'authentication', description: DESCRIPTION },
  securityScheme: {
    type: 'apiKey',
    in: 'cookie',
    name: 'rushes_session',
    description: 'The session of a person who signed in',
  },
  schemas: SCHEMAS,
  paths: (): Json =>
    Object.fromEntries(
      Object.entries(OPERATIONS).map(([name, operation]) => [
        AUTH_PATHS[name as keyof typeof AUTH_PATHS],
        { [operation.body ? 'post' : 'get']: documented(operation) },
      ]),
    ),
}

function documented(operation: AuthOperation): Json {
  const { operationId, summary, description, body, answer, setsCookie, needsSession, errors } = operation
  const headers = setsCookie === true && { headers: COOKIE }
  const answered: Json =
    answer === undefined
      ? { '204': { description: 'It was done.', ...headers } }
      : {
          '200': {
            description: answer[1],
            ...headers,
            content: { 'application/json': { schema: refTo(answer[0]) } },
          },
        }
  return {
    operationId,
    tags: ['authentication'],
    summary,
    description,
    ...(errors.includes('session_changed') && { parameters: [SHOWN_SESSION] }),
    security: needsSession === true ? [{ session: [] }] : [],
    ...(body && { requestBody: { required: true, content: { 'application/json': { schema: body } } } }),
    responses: { ...answered, ...errorResponses(errors) },
  }
}
