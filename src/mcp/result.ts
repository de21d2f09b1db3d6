/** An answer as the result of a call: text, links to the files, and their content only if it was asked for. */
import { basename } from 'node:path'
import { pathToFileURL } from 'node:url'
import { withoutControls } from '../protocol/text.js'
import { MAX_INLINE_BYTES } from './definitions.js'
import type { Answer, ResultFile } from './tool.js'

export type Content =
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
    tooLarge.length === 0 ? undefined : `Not inline, because of the limit of 1 MiB: ${tooLarge.join(', ')}`
  return { blocks, note }
}

/** Text from a service could otherwise control the terminal that shows it. Line ends and tabs stay. */
function printableValue(value: unknown): unknown {
  if (typeof value === 'string') return withoutControls(value)
  if (Array.isArray(value)) return value.map(printableValue)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, printableValue(each)]))
}
