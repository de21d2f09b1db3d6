/**
 * A tool of the server: its definition as data, the call of an agent, and its answer as the result of that
 * call. Pure but for reading the files
 * of an answer whose content was requested.
 */
import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { JsonSchema, Properties } from '../../protocol/json-schema.js'
import { printable, printableJson, withoutControls } from '../../protocol/text.js'

/** Clients give up after 60 s, so a call answers before that. */
export const MAX_WAIT_MS = 45_000
const MAX_INLINE_BYTES = 1_048_576

export interface ToolDefinition {
  readonly name: string
  readonly title: string
  /** For the agent: what it does, what it costs, and what to do next. */
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
  /** Checked against the input schema. */
  readonly args: Arguments
  /** Aborted when the client cancels the call, and when it disconnects. */
  readonly signal: AbortSignal
  /** Says how far the call is; ignored unless the client asked for it. */
  progress(message: string): void
}

/** A file that a call has written or found. */
export interface ResultFile {
  /** Absolute. */
  readonly path: string
  readonly bytes: number
  readonly content_type: string
}

export interface Answer {
  /** A few lines for the agent. */
  readonly text: string
  readonly structured: Readonly<Record<string, unknown>>
  readonly files?: readonly ResultFile[]
  /** Whether the content of small files is part of the result. */
  readonly inline?: boolean
  readonly isError?: boolean
}

export type Tools = readonly { readonly definition: ToolDefinition; call(call: Call): Promise<Answer> }[]

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

/** A path with invisible characters as JSON: without them it would be the path of another file. */
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

/** The names under which answers have paths. */
const PATHS: readonly string[] = ['path', 'file', 'files']

/**
 * Text from a service could otherwise control the terminal that shows it. Line ends and tabs stay, and paths are those of
 * the files that exist.
 */
function printableValue(value: unknown, name = ''): unknown {
  if (typeof value === 'string') return PATHS.includes(name) ? value : withoutControls(value)
  if (Array.isArray(value)) return value.map((each) => printableValue(each, name))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, printableValue(each, key)]))
}
