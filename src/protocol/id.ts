/**
 * Run identifiers. The body of a created run is not published, so the id is looked for where services put it.
 */
import { RUNS_PATH } from './routes.js'

/** Where an id may stand in the answer to a create, in this order; the `Location` header comes last. */
const ID_FIELDS = ['id', 'run_id', 'runId'] as const
const ENVELOPES = [undefined, 'run', 'data', 'result'] as const

const ID_MAX_LENGTH = 256

/** `.` and `..` cannot be asked for: every URL parser takes them as steps of the path. */
export const isRunId = (text: string): boolean =>
  text.length > 0 &&
  text.length <= ID_MAX_LENGTH &&
  text !== '.' &&
  text !== '..' &&
  text.isWellFormed() &&
  !/[\u0000-\u001f\u007f-\u009f]/.test(text)

const asId = (value: unknown): string | undefined => {
  const text = Number.isSafeInteger(value) ? String(value) : value
  return typeof text === 'string' && isRunId(text) ? text : undefined
}

const field = (value: unknown, name: string): unknown =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && Object.hasOwn(value, name)
    ? (value as Record<string, unknown>)[name]
    : undefined

/** The value at a dotted path such as `job.uuid`. */
const at = (value: unknown, path: string): unknown => path.split('.').reduce(field, value)

/** The last segment of a `Location`, decoded. The address of all runs names none of them. */
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

export interface CreateAnswer {
  /** The parsed body; undefined when it was no JSON. */
  readonly body: unknown
  readonly location: string | undefined
  /** The user's own place for the id (`runIdField`), looked at first. */
  readonly runIdField?: string | undefined
}

/** The id of the run that a 201 tells of, or undefined when there is none to be found. */
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
