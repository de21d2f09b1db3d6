/** A tool of the server: its definition as data, its arguments, a call by an agent, and the result of the call. Pure. */
import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { CallToolResult, ResourceLink } from '@modelcontextprotocol/sdk/types.js'
import { writeJson } from '../../protocol/json.js'
import { mediaOfParameter } from '../../protocol/media-parameters.js'
import type { ModelSchema, ParameterSchema } from '../../protocol/models.js'
import { printable, printableJson, shortened, withoutControls } from '../../protocol/text.js'

/** Maximum duration of a call. Clients time out after 60 s. */
export const MAX_WAIT_MS = 45_000

export interface ToolDefinition {
  readonly name: string
  readonly title: string
  /** Text for the agent: what the tool does, what it costs, and what to do next. */
  readonly description: string
  readonly inputSchema: ObjectSchema
  readonly annotations: {
    readonly readOnlyHint: boolean
    readonly destructiveHint: boolean
    readonly idempotentHint: boolean
    readonly openWorldHint: boolean
  }
}

export type JsonSchema = Readonly<Record<string, unknown>>
export type Properties = Readonly<Record<string, JsonSchema>>

export interface ObjectSchema extends JsonSchema {
  readonly type: 'object'
  readonly properties: Properties
  readonly required?: readonly string[]
}

export type Arguments = Readonly<Record<string, unknown>>

export interface Call {
  /** Arguments, checked against the input schema. */
  readonly args: Arguments
  /** Monotonic time of the call, in milliseconds. */
  readonly sinceMs: number
  /** Aborted when the client cancels the call or disconnects. */
  readonly signal: AbortSignal
  /** Sends a progress notification. Ignored unless the client has asked for progress. */
  progress(message: string): void
}

/** A file that a call has written or found. */
export interface ResultFile {
  /** Absolute path. */
  readonly path: string
  readonly bytes: number
  readonly content_type: string
}

export interface Answer {
  /** A few lines of text for the agent. */
  readonly text: string
  readonly structured: Readonly<Record<string, unknown>>
  readonly files?: readonly ResultFile[]
  readonly isError?: boolean
}

export type Tools = readonly { readonly definition: ToolDefinition; call(call: Call): Promise<Answer> }[]

/** Returns the name of a parameter: `image_urls/3` is the fourth entry of a list. */
export function nameOf(parameter: string): string {
  const [field = '', entry] = parameter.split('/')
  return `${field}${entry === undefined ? '' : ` (entry ${Number(entry) + 1})`}`
}

export const resultOf = ({ text, structured, files = [], isError = false }: Answer): CallToolResult => ({
  content: [{ type: 'text', text: withoutControls(text) }, ...files.map(linkTo)],
  structuredContent: printableValue(structured) as Record<string, unknown>,
  isError,
})

/** Returns a path for display. As JSON if it contains invisible characters: without them it would name another file. */
export const shownPath = (path: string): string => (printable(path) === path ? path : printableJson(path))

const linkTo = ({ path, bytes, content_type }: ResultFile): ResourceLink => ({
  type: 'resource_link',
  uri: pathToFileURL(path).href,
  name: basename(path),
  mimeType: content_type,
  size: bytes,
})

/** Names of fields that contain paths. */
const PATHS: readonly string[] = ['path', 'file', 'files']

/**
 * Removes control characters, since text from a service could otherwise control the user's terminal. Keeps line ends
 * and tabs. Paths are unchanged, so that they name existing files.
 */
function printableValue(value: unknown, name = ''): unknown {
  if (typeof value === 'string') return PATHS.includes(name) ? value : withoutControls(value)
  // The message is written with `JSON.stringify`, and clients read it with `JSON.parse`.
  if (typeof value === 'bigint') return String(value)
  if (Array.isArray(value)) return value.map((each) => printableValue(each, name))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, printableValue(each, key)]))
}

/** Ways to name a file in a media parameter. */
export const SOURCES =
  'Each source is an http(s) URL, a data: URL, the path of a file relative to the folder of the server, ' +
  'or run:<id> for an output of an earlier run (run:<id>#2 for its second output)'

/** Returns the parameters of a model, except those whose names the tool itself uses. */
export function parametersFor(
  { properties }: ModelSchema,
  used: readonly string[],
): Readonly<Record<string, JsonSchema>> {
  const own = Object.entries(properties).filter(([name]) => !used.includes(name))
  return Object.fromEntries(own.map(([name, schema]) => [name, argumentOf(name, schema)]))
}

/** Longer lists of values are left out, since every session of an agent reads all tools. A create checks them. */
const MAX_KEYWORD = 1_000
const KEYWORDS: readonly string[] = 'type enum minimum maximum maxLength items maxItems default'.split(' ')

/** Keeps only known keywords: a document may come from a service, and clients use these schemas. */
function argumentOf(name: string, schema: ParameterSchema): JsonSchema {
  const written = shortened(printable(schema.description))
  const description =
    mediaOfParameter(name, { ...schema }) !== undefined
      ? [written, SOURCES].filter(Boolean).join('. ')
      : schema.type === 'other'
        ? [written, 'JSON, see list_models'].filter(Boolean).join('. ')
        : written
  const known = Object.entries(schema).filter(
    ([name, value]) =>
      KEYWORDS.includes(name) && schema.type !== 'other' && writeJson(value).length <= MAX_KEYWORD,
  )
  return {
    ...Object.fromEntries(known.map(([name, value]) => [name, asNumbers(value)])),
    ...(schema.type === 'array' && { items: { type: 'string' } }),
    description,
  }
}

/** Clients parse the schemas with `JSON.parse`: a bound of 64 bits is rounded there in any case. */
const asNumbers = (value: unknown): unknown =>
  Array.isArray(value) ? value.map(asNumbers) : typeof value === 'bigint' ? Number(value) : value
