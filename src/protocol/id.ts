/**
 * Run ids, and the URLs of runs. The interface does not define the body of a 201, so the id is searched in the usual
 * fields.
 */
import { usageError } from '../errors.js'
import { isObject } from './parse.js'
import { shortened } from './text.js'

/** Fields of a 201 that may contain the id, in this order; the `Location` header comes last. */
const ID_FIELDS = ['id', 'run_id', 'runId'] as const
const ENVELOPES = [undefined, 'run', 'data', 'result'] as const

const ID_MAX_LENGTH = 256

/** `.` and `..` are not valid ids: as path segments of a URL they have another meaning. */
export const isRunId = (text: string): boolean =>
  text.length > 0 &&
  text.length <= ID_MAX_LENGTH &&
  text !== '.' &&
  text !== '..' &&
  text.isWellFormed() &&
  !/[\u0000-\u001f\u007f-\u009f]/.test(text)

/** Returns the id. Throws `usage` if the value cannot be a run id. */
export function checkRunId(id: unknown): string {
  if (typeof id === 'string' && isRunId(id)) return id
  throw usageError(
    `"${typeof id === 'string' ? shortened(id) : typeof id}" is not a valid run id.`,
    'An id has 1 to 256 characters and no control characters.',
  )
}

const asId = (value: unknown): string | undefined => {
  const text = Number.isSafeInteger(value) || typeof value === 'bigint' ? String(value) : value
  return typeof text === 'string' && isRunId(text) ? text : undefined
}

const field = (value: unknown, name: string): unknown =>
  isObject(value) && Object.hasOwn(value, name) ? value[name] : undefined

/** Returns the value at a dotted path such as `job.uuid`. */
const at = (value: unknown, path: string): unknown => path.split('.').reduce(field, value)

/**
 * Returns the last path segment of a `Location` header, decoded; undefined for the URL of all runs, which contains no
 * id.
 */
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
  /** The parsed body; undefined if it is not JSON. */
  readonly body: unknown
  readonly location: string | undefined
  /** Value of the setting `runIdField`: this field is tried first. */
  readonly runIdField?: string | undefined
}

/** Returns the run id of a 201; undefined if no field contains one. */
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

/** Whether the run in the response to a status request may be the one that was asked for: no field says otherwise. */
export function isOfRun(body: unknown, id: string, runIdField?: string): boolean {
  const values = [
    ...(runIdField === undefined ? [] : [at(body, runIdField)]),
    ...ID_FIELDS.map((name) => field(body, name)),
  ]
  const ids = values.flatMap((value) => asId(value) ?? [])
  return ids.length === 0 || ids.includes(id)
}

/** Path of the runs endpoints (section 4 of the interface). */
export const RUNS_PATH = '/api/v1/runs'

/** Last part of the path that cancels a run: an extension of the local service. */
export const CANCEL_PATH = '/cancel'

/** Path of the local service's OpenAPI document. */
export const OPENAPI_PATH = '/api/v1/openapi.json'

/** Path of the list of a service's models. */
export const MODELS_PATH = '/api/v1/models'

/** `baseUrl`: as `parseBaseUrl` returns it. */
export const createRunUrl = (baseUrl: string): URL => new URL(`${baseUrl}${RUNS_PATH}`)

export const modelsUrl = (baseUrl: string): URL => new URL(`${baseUrl}${MODELS_PATH}`)

/** Returns the URL of a run. The id is percent-encoded, so that it is one path segment. */
export const runUrl = (baseUrl: string, id: string): URL =>
  new URL(`${baseUrl}${RUNS_PATH}/${encodeURIComponent(id)}`)

export const cancelUrl = (baseUrl: string, id: string): URL => new URL(`${runUrl(baseUrl, id)}${CANCEL_PATH}`)
