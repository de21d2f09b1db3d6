/**
 * A tool of the server: its definition as data, a call by an agent, and the result of the call. Pure, except that it
 * reads files whose content is part of the answer.
 */
import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { JsonSchema, Properties } from '../../protocol/json-schema.js'
import { printable, printableJson, withoutControls } from '../../protocol/text.js'

/** Maximum duration of a call. Clients time out after 60 s. */
export const MAX_WAIT_MS = 45_000
const MAX_INLINE_BYTES = 1_048_576

export interface ToolDefinition {
  readonly name: string
  readonly title: string
  /** Text for the agent: what the tool does, what it costs, and what to do next. */
  readonly description: string
  readonly inputSchema: ObjectSchema
  readonly outputSchema: ObjectSchema
  readonly annotations: {
    readonly readOnlyHint: boolean
    readonly destructiveHint: boolean
    readonly idempotentHint: boolean
    readonly openWorldHint: boolean
  }
}

export interface ObjectSchema extends JsonSchema {
  readonly type: 'object'
  readonly properties: Properties
  readonly required?: readonly string[]
}

export type Arguments = Readonly<Record<string, unknown>>

export interface Call {
  /** Arguments, checked against the input schema. */
  readonly args: Arguments
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
  /** Whether the answer contains the content of small files. */
  readonly inline?: boolean
  readonly isError?: boolean
}

export type Tools = readonly { readonly definition: ToolDefinition; call(call: Call): Promise<Answer> }[]

/** Returns the name of a parameter: `image_urls/3` is the fourth entry of a list. */
export function nameOf(parameter: string): string {
  const [field = '', entry] = parameter.split('/')
  return `${field}${entry === undefined ? '' : ` (entry ${Number(entry) + 1})`}`
}

type Content =
  | { readonly type: 'text'; readonly text: string }
  | {
      readonly type: 'resource_link'
      readonly uri: string
      readonly name: string
      readonly mimeType: string
      readonly size: number
    }
  | { readonly type: 'image'; readonly data: string; readonly mimeType: string }
  | {
      readonly type: 'resource'
      readonly resource: { readonly uri: string; readonly mimeType: string; readonly blob: string }
    }

export interface CallResult {
  readonly content: Content[]
  readonly structuredContent: Record<string, unknown>
  readonly isError: boolean
  readonly [further: string]: unknown
}

export type ReadBytes = (path: string) => Promise<Uint8Array>

export async function resultOf(answer: Answer, read: ReadBytes): Promise<CallResult> {
  const { files = [], inline = false, isError = false } = answer
  const { blocks, note } = inline ? await inlined(files, read) : { blocks: [], note: undefined }
  return {
    content: [
      { type: 'text', text: withoutControls([answer.text, note].filter(Boolean).join('\n')) },
      ...files.map(linkTo),
      ...blocks,
    ],
    structuredContent: printableValue(answer.structured) as Record<string, unknown>,
    isError,
  }
}

/** Returns a path for display. As JSON if it contains invisible characters: without them it would name another file. */
export const shownPath = (path: string): string => (printable(path) === path ? path : printableJson(path))

const uriOf = (path: string): string => pathToFileURL(path).href

const linkTo = ({ path, bytes, content_type }: ResultFile): Content => ({
  type: 'resource_link',
  uri: uriOf(path),
  name: basename(path),
  mimeType: content_type,
  size: bytes,
})

async function inlined(
  files: readonly ResultFile[],
  read: ReadBytes,
): Promise<{ readonly blocks: readonly Content[]; readonly note: string | undefined }> {
  const blocks: Content[] = []
  const tooLarge: string[] = []
  let left = MAX_INLINE_BYTES
  for (const { path, bytes, content_type: mimeType } of files) {
    if (bytes > left) {
      tooLarge.push(path)
      continue
    }
    left -= bytes
    const data = Buffer.from(await read(path)).toString('base64')
    blocks.push(
      mimeType.startsWith('image/')
        ? { type: 'image', data, mimeType }
        : { type: 'resource', resource: { uri: uriOf(path), mimeType, blob: data } },
    )
  }
  const note =
    tooLarge.length === 0
      ? undefined
      : `Not inline, because of the limit of 1 MiB: ${tooLarge.map(shownPath).join(', ')}`
  return { blocks, note }
}

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
