/**
 * Run ids, and the URLs of runs. The body of a created run is not published: the id is searched where services put
 * it.
 */
import { usageError } from '../errors.js'
import type { Kind } from './models.js'
import { isObject } from './parse.js'
import { printable, shortened } from './text.js'

/** Fields of the 201 that may hold the id, in this order; the `Location` header comes last. */
const ID_FIELDS = ['id', 'run_id', 'runId'] as const
const ENVELOPES = [undefined, 'run', 'data', 'result'] as const

const ID_MAX_LENGTH = 256

/** `.` and `..` are refused: in a URL they are path segments with another meaning. */
export const isRunId = (text: string): boolean =>
  text.length > 0 &&
  text.length <= ID_MAX_LENGTH &&
  text !== '.' &&
  text !== '..' &&
  text.isWellFormed() &&
  !/[\u0000-\u001f\u007f-\u009f]/.test(text)

/** Throws `usage` for a value that cannot be a run id. */
export function checkRunId(id: unknown): string {
  if (typeof id === 'string' && isRunId(id)) return id
  throw usageError(
    `"${typeof id === 'string' ? shortened(printable(id)) : typeof id}" is not a valid run id.`,
    'An id has 1 to 256 characters and no control characters.',
  )
}

const asId = (value: unknown): string | undefined => {
  const text = Number.isSafeInteger(value) ? String(value) : value
  return typeof text === 'string' && isRunId(text) ? text : undefined
}

const field = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined

/** The value at a dotted path such as `job.uuid`. */
const at = (value: unknown, path: string): unknown => path.split('.').reduce(field, value)

/** The last segment of a `Location`, decoded. The URL of all runs contains no id. */
function idOfLocation(location: string | undefined): string | undefined {
  if (location === undefined) return undefined
  try {
    const segments = new URL(location, 'http://location.invalid').pathname.split('/').filter(Boolean)
    if (`/${segments.join('/')}`.endsWith(RUNS_PATH)) return undefined
    return asId(decodeURIComponent(segments.at(-1) ?? ''))
  } catch {
    return undefined
  }
}

interface CreateAnswer {
  /** The parsed body; undefined when it was not JSON. */
  readonly body: unknown
  readonly location: string | undefined
  /** The setting `runIdField`; tried first. */
  readonly runIdField?: string | undefined
}

/** The run id of a 201; undefined when none is found. */
export function findRunId({ body, location, runIdField }: CreateAnswer): string | undefined {
  if (runIdField !== undefined) {
    const own = asId(at(body, runIdField))
    if (own !== undefined) return own
  }
  for (const envelope of ENVELOPES) {
    const holder = envelope === undefined ? body : field(body, envelope)
    for (const name of ID_FIELDS) {
      const id = asId(field(holder, name))
      if (id !== undefined) return id
    }
  }
  return idOfLocation(location)
}

/** Section 4 of the interface. */
export const RUNS_PATH = '/api/v1/runs'

/** The OpenAPI document of the local service. */
export const OPENAPI_PATH = '/api/v1/openapi.json'

/** In that document, the schema of the body of a create. */
export const createSchemaName = (kind: Kind): string =>
  `Create${kind.charAt(0).toUpperCase()}${kind.slice(1)}Run`

/** A base URL without trailing slashes: `https://host/prefix`. */
const withoutSlash = (baseUrl: string): string => baseUrl.replace(/\/+$/, '')

export const createRunUrl = (baseUrl: string): URL => new URL(`${withoutSlash(baseUrl)}${RUNS_PATH}`)

/** The id is percent-encoded, so that it stays one path segment. */
export const runUrl = (baseUrl: string, id: string): URL =>
  new URL(`${withoutSlash(baseUrl)}${RUNS_PATH}/${encodeURIComponent(id)}`)
