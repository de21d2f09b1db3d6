/**
 * The service's interface as OpenAPI 3.1, from the model schemas, the error table, the routes and the limits. Pure. The
 * service builds it at the first request; docs/openapi.json is the same text with the default names.
 */
import {
  AUTH_LIMIT,
  POLL_INTERVAL_MS,
  RATE_LIMITED_WAITS_MS,
  RUNS_LIMIT,
  SESSION_CHECK_LIMIT,
} from '../../protocol/limits.js'
import { AUTH_SCHEMAS } from './auth-schemas.js'
import { type Described, paths } from './paths.js'
import { SHARED_RESPONSES } from './responses.js'
import { type Json, schemas } from './schemas.js'

export type { Described } from './paths.js'

const seconds = (...ms: readonly number[]): string => ms.map((each) => each / 1_000).join(', ')

const DESCRIPTION = `Creates videos and images as asynchronous runs: create a run, poll it every ${seconds(POLL_INTERVAL_MS.min)} to ${seconds(POLL_INTERVAL_MS.max)} seconds, then download its outputs.

**Rate limit.** Creates and status requests count together, per API key: by default ${RUNS_LIMIT.requests} in any ${seconds(RUNS_LIMIT.windowMs)} seconds. Further requests get 429 \`RATE_LIMITED\` and do not count. Wait before each retry, for example ${seconds(...RATE_LIMITED_WAITS_MS)} seconds. The authentication operations have their own limits, and the others none.

**Errors.** Every error response has the form \`{"error": {"message": …, "code": …}}\`. A request is checked in this order: the key (401), the account and the IP address (403), the rate (429 \`RATE_LIMITED\`), the body (413, 400), the spend limit (403), the quota (429 \`USAGE_EXCEEDED\`), the balance (402).

**Methods.** Every path with GET answers HEAD too.

**Versions.** Within \`/api/v1\`, later releases may add error codes and fields. Ignore those that you do not know.`

const AUTHENTICATION = `Sessions of people on the console. Those with POST count together: ${AUTH_LIMIT.requests} requests in any ${seconds(AUTH_LIMIT.windowMs)} seconds per client address; sign-ins also per email, and new passwords per user. The session check: ${SESSION_CHECK_LIMIT.requests} in any ${seconds(SESSION_CHECK_LIMIT.windowMs)} seconds per session. Requests with POST need an \`Origin\` of the service itself, except the exchange of a code.`

export const openapiDocument = (described: Described): Json => ({
  openapi: '3.1.0',
  info: {
    title: 'rushes: the local service',
    summary: 'Asynchronous runs of a video model and an image model',
    description: DESCRIPTION,
    // Of the interface, as in its paths. The release of the program is not told to callers without a key.
    version: 'v1',
    license: { name: 'MIT', identifier: 'MIT' },
  },
  servers: [{ url: described.baseUrl }],
  tags: [
    { name: 'runs', description: 'Create runs, and follow them' },
    { name: 'outputs', description: 'Download the files of runs' },
    { name: 'operations', description: 'Health of the service, and this document' },
    ...(described.hasConsole ? [{ name: 'authentication', description: AUTHENTICATION }] : []),
  ],
  security: [{ apiKey: [] }],
  paths: paths(described),
  components: {
    securitySchemes: {
      apiKey: {
        type: 'http',
        scheme: 'bearer',
        description: 'The API key, as `Authorization: Bearer <API_KEY>`',
      },
      ...(described.hasConsole && {
        session: {
          type: 'apiKey',
          in: 'cookie',
          name: 'rushes_session',
          description: 'The session of a person who signed in',
        },
      }),
    },
    responses: SHARED_RESPONSES,
    schemas: { ...schemas(described.models), ...(described.hasConsole && AUTH_SCHEMAS) },
  },
})

export const openapiText = (described: Described): string =>
  `${JSON.stringify(openapiDocument(described), null, 2)}\n`
