/** Values whose type is not known: parses JSON into the types of the protocol, or returns the first error; and lists by key. */
import { readJson } from './json.js'
import { phaseOf, type RunState } from './run-state.js'

export type Parsed<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly wrong: string }

type JsonObject = Readonly<Record<string, unknown>>

export const isObject = (value: unknown): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export function parseJson(text: string): Parsed<unknown> {
  try {
    return { ok: true, value: readJson(text.replace(/^\uFEFF/, '')) }
  } catch {
    return { ok: false, wrong: text.trim() === '' ? 'the body is empty' : 'the body is not JSON' }
  }
}

export function isHttpUrl(value: unknown): value is string {
  if (typeof value !== 'string') return false
  try {
    const { protocol } = new URL(value)
    return protocol === 'http:' || protocol === 'https:'
  } catch {
    return false
  }
}

/**
 * Encodes spaces, line ends and invisible characters of a URL, so that `xargs` and `curl` read a printed URL as one
 * word.
 */
const asOneWord = (url: string): string => (/[\p{C}\p{Z}]/u.test(url) ? new URL(url).href : url)

const date = (value: unknown): string | undefined => {
  if (typeof value !== 'string') return undefined
  const time = Date.parse(value)
  const iso = Number.isNaN(time) ? '' : new Date(time).toISOString()
  // RFC 3339 has no year of more than four digits.
  return /^\d{4}-/.test(iso) ? iso : undefined
}

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value : undefined

/**
 * Returns the error message of a run. The interface does not define its field, so the usual fields are tried.
 */
const failureOf = (run: JsonObject): string | undefined =>
  (isObject(run.error) ? (text(run.error.message) ?? text(run.error.code)) : text(run.error)) ??
  text(run.error_message) ??
  text(run.message) ??
  text(run.failure_reason)

interface RunUrls {
  readonly urls: readonly string[]
  readonly withoutUrls?: string
}

/** The URLs of a run that succeeded, or why it has none: they may be late, or the service may have withheld them. */
function outputUrls(run: JsonObject): RunUrls {
  const urls = isObject(run.output) ? run.output.urls : undefined
  if (!Array.isArray(urls)) return { urls: [], withoutUrls: 'output.urls is missing' }
  if (urls.length === 0) return { urls: [], withoutUrls: 'output.urls is empty' }
  return urls.every(isHttpUrl)
    ? { urls: urls.map(asOneWord) }
    : { urls: [], withoutUrls: 'output.urls contains a value that is not an http or https URL' }
}

/** Parses a run from a response of the status endpoint. */
export function parseRun(
  value: unknown,
  id: string,
  furtherFailures: readonly string[] = [],
): Parsed<RunState> {
  if (!isObject(value)) return { ok: false, wrong: 'the body is not a JSON object' }
  if (typeof value.status !== 'string' || value.status === '')
    return { ok: false, wrong: 'the run has no status' }
  const phase = phaseOf(value.status, furtherFailures)
  const outputs: RunUrls = phase === 'succeeded' ? outputUrls(value) : { urls: [] }
  return {
    ok: true,
    value: {
      id,
      status: value.status,
      phase,
      ...outputs,
      failure: phase === 'failed' || outputs.withoutUrls !== undefined ? failureOf(value) : undefined,
      createdAt: date(value.created_at),
      finishedAt: date(value.finished_at),
      service: value,
    },
  }
}

interface ErrorBody {
  readonly code: string | undefined
  readonly message: string | undefined
}

/** Returns code and message of an error response, in any common form. */
export function parseErrorBody(body: string): ErrorBody {
  const parsed = parseJson(body)
  if (!parsed.ok || !isObject(parsed.value)) return { code: undefined, message: undefined }
  const { error } = parsed.value
  if (isObject(error)) return { code: text(error.code), message: text(error.message) }
  const { code, message, detail } = parsed.value
  return { code: text(code), message: text(error) ?? text(message) ?? textOfDetail(detail) }
}

/**
 * Returns the text of `detail`, in the form of FastAPI, which many services and model servers are written with: a text, or a list
 * of problems, as `body.size: field required; …`.
 */
export function textOfDetail(detail: unknown): string | undefined {
  if (!Array.isArray(detail)) return typeof detail === 'string' && detail.trim() !== '' ? detail : undefined
  const problems = detail.slice(0, MAX_PROBLEMS).flatMap((each: unknown) => {
    const { msg, loc } = (each ?? {}) as { readonly msg?: unknown; readonly loc?: unknown }
    if (typeof msg !== 'string') return []
    // An object cannot always be joined.
    const steps = Array.isArray(loc) ? loc.filter((step) => typeof step !== 'object') : []
    return [steps.length > 0 ? `${steps.join('.')}: ${msg}` : msg]
  })
  return problems.length === 0 ? undefined : problems.join('; ')
}

const MAX_PROBLEMS = 5

/** Adds a value to the list of its key. */
export function addTo<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [value])
  else list.push(value)
}
