/** Responses: the runs, and the errors, grouped by the statuses of the error table. */
import { REFUSALS, type RefusalCode } from '../rules/refusal.js'
import { errorWith, type Json, refTo } from './schemas.js'

const header = (description: string, schema: Json = { type: 'string' }): Json => ({ description, schema })

export const ETAG = header('SHA-256 of the content, in quotes')

/** What a request can get at any path, before an operation handles it. */
const BEFORE_OPERATIONS: readonly RefusalCode[] = [
  'bad_request',
  'not_found',
  'method_not_allowed',
  'request_timeout',
  'expectation_failed',
  'headers_too_large',
]

const RETRY_AFTER = {
  'Retry-After': header('Seconds until a retry', { type: 'integer', minimum: 0 }),
}

const HEADERS: Partial<Record<RefusalCode, Json>> = {
  method_not_allowed: { Allow: header('The methods of this path, with a 405') },
  range_not_satisfiable: { 'Content-Range': header('The size of the file, as `bytes */<size>`') },
  overloaded: RETRY_AFTER,
  not_ready: RETRY_AFTER,
}

const line = (code: RefusalCode, status = ''): string => `* ${status}\`${code}\`: ${REFUSALS[code].cause}`

const errorResponse = (description: string, codes: readonly RefusalCode[]): Json => {
  const headers = Object.assign({}, ...codes.map((code) => HEADERS[code] ?? {}))
  return {
    description,
    ...(Object.keys(headers).length > 0 && { headers }),
    content: {
      'application/json': {
        schema: errorWith(codes),
        examples: Object.fromEntries(
          codes.map((code) => [
            code,
            { summary: code, value: { error: { message: REFUSALS[code].cause, code } } },
          ]),
        ),
      },
    },
  }
}

/** One response for each status of these codes, and the default. */
export function errorResponses(codes: readonly RefusalCode[]): Json {
  const byStatus = new Map<number, RefusalCode[]>()
  for (const code of codes) {
    const { status } = REFUSALS[code]
    byStatus.set(status, [...(byStatus.get(status) ?? []), code])
  }
  return {
    ...Object.fromEntries(
      [...byStatus].map(([status, group]) => [
        String(status),
        errorResponse(group.map((code) => line(code)).join('\n'), group),
      ]),
    ),
    default: { $ref: '#/components/responses/BeforeOperations' },
  }
}

export const SHARED_RESPONSES: Json = {
  BeforeOperations: errorResponse(
    [
      'The request was refused before an operation handled it:',
      '',
      ...BEFORE_OPERATIONS.map((code) => line(code, `${REFUSALS[code].status} `)),
    ].join('\n'),
    BEFORE_OPERATIONS,
  ),
}

export const runResponse = (description: string, examples: Json, headers: Json = {}): Json => ({
  description,
  headers: { ...headers, 'Cache-Control': header('Always `no-store`') },
  content: { 'application/json': { schema: refTo('Run'), examples } },
})

export const LOCATION = header('URL of the run', { type: 'string', format: 'uri' })

const FILE: Json = { 'image/png': {}, 'video/mp4': {}, '*/*': {} }

const FILE_HEADERS: Json = {
  ETag: ETAG,
  'Accept-Ranges': header('Always `bytes`'),
  'Cache-Control': header('A URL always has the same content: `private, max-age=31536000, immutable`'),
  'Last-Modified': header('When the file was written'),
  'X-Content-Type-Options': header('Always `nosniff`'),
  'Content-Security-Policy': header(
    'Opened in a browser, the file runs no script and has an origin of its own',
  ),
}

export const FILE_RESPONSES: Json = {
  '200': { description: 'The whole file', headers: FILE_HEADERS, content: FILE },
  '206': {
    description: 'The requested range of the file',
    headers: { ...FILE_HEADERS, 'Content-Range': header('The range, as `bytes <first>-<last>/<size>`') },
    content: FILE,
  },
  '304': { description: 'The client has this file already', headers: { ETag: ETAG } },
}
