/** The authentication endpoints of the document. They are there when the service has a console. */
import { AUTH_PATHS, SESSION_HEADER } from '../../protocol/console.js'
import { CONSOLE_BODIES } from '../rules/console-bodies.js'
import type { RefusalCode } from '../rules/refusal.js'
import { errorResponses } from './responses.js'
import { type Json, refTo } from './schemas.js'

const DATABASE: readonly RefusalCode[] = ['internal_error', 'not_ready']
/** Of every request with a body. */
const BODY: readonly RefusalCode[] = ['bad_request', 'invalid_json', 'invalid_input', 'payload_too_large']
const CHANGE: readonly RefusalCode[] = ['foreign_origin', 'RATE_LIMITED', ...BODY, ...DATABASE]

/** Of every change that a page sends. */
const OF_PAGE: readonly RefusalCode[] = ['session_changed', ...CHANGE]

const SHOWN_SESSION: Json = {
  name: SESSION_HEADER,
  in: 'header',
  description:
    'The `id` of the session that the sender shows. If the cookie is that of another session, the request does nothing.',
  schema: { type: 'string' },
}

const LIMIT = 'Counts in the limit of the authentication endpoints.'

interface Described {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly body?: Json
  /** Undefined: 204, without content. */
  readonly answer?: readonly [schema: string, description: string]
  readonly setsCookie?: boolean
  readonly needsSession?: boolean
  readonly errors: readonly RefusalCode[]
}

const COOKIE: Json = {
  'Set-Cookie': { description: 'The session, as `rushes_session`', schema: { type: 'string' } },
}

const operation = (described: Described): Json => {
  const { operationId, summary, description, body, answer, setsCookie, needsSession, errors } = described
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

const OPERATIONS: Readonly<Record<keyof typeof AUTH_PATHS, readonly [method: 'get' | 'post', Described]>> = {
  signIn: [
    'post',
    {
      operationId: 'signIn',
      summary: 'Sign in with email and password',
      description: `Begins a session of 7 days, which every use extends. Needs HTTPS, except on this machine. ${LIMIT}`,
      body: CONSOLE_BODIES.signIn,
      answer: ['Session', 'The session began.'],
      setsCookie: true,
      errors: ['invalid_credentials', 'https_required', ...OF_PAGE, 'overloaded'],
    },
  ],
  link: [
    'post',
    {
      operationId: 'useLink',
      summary: 'Sign in with a link',
      description: `A link is valid once, for 15 minutes. In its session the password can be set without the current one. ${LIMIT}`,
      body: CONSOLE_BODIES.link,
      answer: ['Session', 'The session began.'],
      setsCookie: true,
      errors: ['invalid_link', 'https_required', ...OF_PAGE],
    },
  ],
  signOut: [
    'post',
    {
      operationId: 'signOut',
      summary: 'End this session, or all sessions of the user',
      description: `The end of all sessions also ends unused links and codes of the user. ${LIMIT} A valid session can always be ended.`,
      body: CONSOLE_BODIES.signOut,
      setsCookie: true,
      needsSession: true,
      errors: ['not_signed_in', ...OF_PAGE],
    },
  ],
  password: [
    'post',
    {
      operationId: 'setPassword',
      summary: 'Set the password',
      description: `Ends the other sessions of the user. ${LIMIT}`,
      body: CONSOLE_BODIES.password,
      answer: ['Session', 'The password was set.'],
      needsSession: true,
      errors: ['not_signed_in', 'invalid_credentials', ...OF_PAGE, 'overloaded'],
    },
  ],
  session: [
    'get',
    {
      operationId: 'getSession',
      summary: 'Check the session',
      description: 'Has a limit of its own, per session.',
      answer: ['Session', 'The session of the cookie'],
      needsSession: true,
      errors: ['not_signed_in', 'RATE_LIMITED', ...DATABASE],
    },
  ],
  login: [
    'post',
    {
      operationId: 'exchangeCode',
      summary: 'Exchange a code for an API key',
      description: `For \`rushes login --web\`: the user grants the code on the console; it is valid once, for 60 s. ${LIMIT}`,
      body: CONSOLE_BODIES.login,
      answer: ['NewKey', 'The key was created.'],
      errors: ['invalid_code', 'account_banned', 'too_many_keys', ...CHANGE],
    },
  ],
}

export const authPaths = (): Json =>
  Object.fromEntries(
    Object.entries(OPERATIONS).map(([name, [method, described]]) => [
      AUTH_PATHS[name as keyof typeof AUTH_PATHS],
      { [method]: operation(described) },
    ]),
  )
