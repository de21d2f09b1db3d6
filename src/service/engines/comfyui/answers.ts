/**
 * What the answers of a ComfyUI server mean: the history of a job, the queue, and the errors of a workflow. The formats
 * are those of ComfyUI 0.3.64 and of the later version with `/api/jobs` (docs/engines.md).
 */
import { isObject } from '../../../protocol/parse.js'
import { UpstreamError } from '../upstream/upstream-error.js'
import { nodeText, type Workflow } from './workflow.js'

/** A file on the server, as `/view` takes it. */
export interface ServerFile {
  readonly filename: string
  readonly subfolder: string
  readonly type: string
}

export type JobEnd =
  | { readonly state: 'succeeded'; readonly files: readonly ServerFile[] }
  | { readonly state: 'failed'; readonly message: string }
  /** Cancelled, by a user of the server or by this program. */
  | { readonly state: 'interrupted' }

/** Returns the end of a job by the answer of `/history/<id>`, or undefined if the job is not in it. */
export function endOf(history: unknown, id: string): JobEnd | undefined {
  const entry = isObject(history) && Object.hasOwn(history, id) ? history[id] : undefined
  if (!isObject(entry)) return undefined
  const status = isObject(entry.status) ? entry.status : {}
  if (status.status_str !== 'error') return { state: 'succeeded', files: filesOf(entry.outputs) }
  const messages = Array.isArray(status.messages) ? status.messages.filter(Array.isArray) : []
  const error = messages.find(([name]) => name === 'execution_error')?.[1]
  if (isObject(error)) return { state: 'failed', message: executionError(error) }
  if (messages.some(([name]) => name === 'execution_interrupted')) return { state: 'interrupted' }
  return { state: 'failed', message: 'The server reports an error without a message.' }
}

/** Without the traceback, which contains paths of the server. */
const executionError = ({ node_type, node_id, exception_type, exception_message }: Json): string => {
  const message = textOf(exception_message).trim() || textOf(exception_type) || 'no message'
  return `${textOf(node_type) || 'A node'} (node ${textOf(node_id) || '?'}): ${message}`
}

type Json = Readonly<Record<string, unknown>>

const textOf = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : ''

/**
 * Returns the files of all output nodes, in the order of node ids. Each kind of node uses another name for its list
 * (`images`, `gifs`, `audio`), so every list of objects with a file name counts. Temporary files are previews: they
 * count only if the job has nothing else. Files of other types, such as latents, never count.
 */
function filesOf(outputs: unknown): readonly ServerFile[] {
  const files = new Map<string, ServerFile>()
  const nodes = Object.entries(isObject(outputs) ? outputs : {}).sort(([one], [other]) =>
    natural.compare(one, other),
  )
  for (const [, lists] of nodes)
    for (const list of isObject(lists) ? Object.values(lists) : [])
      for (const each of Array.isArray(list) ? list : [])
        if (isObject(each) && typeof each.filename === 'string' && MEDIA_FILE.test(each.filename)) {
          const { filename } = each
          const file = { filename, subfolder: textOf(each.subfolder), type: textOf(each.type) || 'output' }
          files.set(JSON.stringify(file), file)
        }
  const found = [...files.values()]
  const saved = found.filter(({ type }) => type === 'output')
  return saved.length > 0 ? saved : found.filter(({ type }) => type === 'temp')
}

const MEDIA_FILE =
  /\.(png|jpe?g|webp|gif|avif|bmp|tiff?|mp4|webm|mkv|mov|avi|m4v|flac|mp3|wav|opus|ogg|m4a)$/i

const natural = new Intl.Collator('en', { numeric: true })

/** `before`: the number of waiting jobs that run first. */
export type QueuePlace = 'running' | 'missing' | { readonly before: number }

/** Longer than anything that is searched for. */
const MAX_MATCH_CHARACTERS = 128
const UUID = '[\\da-f]{8}(?:-[\\da-f]{4}){3}-[\\da-f]{12}'

/**
 * Finds a job in the answer of `/queue`: `{"queue_running":[[number,"id",workflow,…]],"queue_pending":[…]}`. Waiting jobs
 * run in the order of their numbers, which is not that of the list. The answer contains the workflows of all jobs, so it
 * is searched piece by piece: to parse it would block the event loop for seconds. No text in a workflow can match,
 * because its quotes are escaped.
 */
export async function findInQueue(body: AsyncIterable<Uint8Array>, id: string): Promise<QueuePlace> {
  const pattern = new RegExp(
    `"queue_(running|pending)"\\s*:|\\[\\s*([-+.\\de]+)\\s*,\\s*"(${id}|${UUID})"`,
    'g',
  )
  const lists = new Set<string>()
  const waiting = new Map<string, number>()
  let list = ''
  let rest = ''
  for await (const chunk of body) {
    const text = rest + Buffer.from(chunk).toString('latin1')
    for (const [, name, number, found = ''] of text.matchAll(pattern))
      if (name !== undefined) {
        list = name
        lists.add(list)
      } else if (list === 'pending') waiting.set(found, Number(number))
      else if (list === 'running' && found === id) return 'running'
    rest = text.slice(-MAX_MATCH_CHARACTERS)
  }
  if (lists.size < 2 || !rest.trimEnd().endsWith('}'))
    throw new UpstreamError('The server sent its queue in an unknown format.', { status: 200 })
  const own = waiting.get(id)
  if (own === undefined) return 'missing'
  return { before: [...waiting.values()].filter((number) => number < own).length }
}

/** A workflow in an answer about a job. */
const WORKFLOW_KEYS = ['"prompt"', '"workflow"']
/** A job is at the first or the second level of an answer. */
const MAX_KEY_DEPTH = 2

/**
 * Reads the answer about one job, with `null` in place of its workflow, which may have 64 MiB: to parse it would block the
 * event loop. Throws `UpstreamError` when the rest is longer than `maxBytes`.
 */
export async function readWithoutWorkflow(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<string> {
  const kept: Buffer[] = []
  let [keptBytes, depth, skipDepth, textAt] = [0, 0, -1, -1]
  let isEscaped = false
  /** The last text, with its quotes. */
  let text = ''
  for await (const chunk of body) {
    const bytes = Buffer.from(chunk)
    let [from, textFrom] = [0, 0]
    const keep = (to: number): void => {
      if (skipDepth < 0 && to > from)
        keptBytes += kept[kept.push(bytes.subarray(from, to)) - 1]?.byteLength ?? 0
      from = to
    }
    const nextQuote = nextOf(bytes, QUOTE)
    const nextBackslash = nextOf(bytes, BACKSLASH)
    for (let at = 0; at < bytes.byteLength; at++) {
      const byte = bytes[at]
      if (textAt >= 0) {
        if (isEscaped) isEscaped = false
        else if (byte === BACKSLASH) isEscaped = true
        else if (byte === QUOTE) {
          text = text.length < MAX_MATCH_CHARACTERS ? text + bytes.toString('latin1', textFrom, at + 1) : ''
          textAt = -1
          // Most of a workflow is texts: a search is many times faster than a look at each byte.
        } else at = Math.min(nextQuote(at), nextBackslash(at)) - 1
      } else if (byte === QUOTE) [textAt, textFrom, text] = [at, at, '']
      else if (byte === OPEN_OBJECT || byte === OPEN_LIST) depth++
      else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST || byte === COMMA) {
        // The end of the skipped value: the next comma, or the end of the map that has it.
        if (skipDepth === depth) [from, skipDepth] = [at, -1]
        if (byte !== COMMA) depth--
      } else if (byte === COLON && skipDepth < 0 && depth <= MAX_KEY_DEPTH && WORKFLOW_KEYS.includes(text)) {
        keep(at + 1)
        kept.push(Buffer.from('null'))
        skipDepth = depth
      }
    }
    if (textAt >= 0) text += bytes.toString('latin1', textFrom).slice(0, MAX_MATCH_CHARACTERS)
    keep(bytes.byteLength)
    if (keptBytes > maxBytes)
      throw new UpstreamError("The model's server sent a larger response than expected.", { status: 200 })
  }
  return Buffer.concat(kept).toString('utf8')
}

/** Returns a function that finds the next such byte, or the end. Its argument must not become smaller. */
function nextOf(bytes: Buffer, byte: number): (from: number) => number {
  let next = -1
  return (from) => {
    if (next < from) next = bytes.indexOf(byte, from)
    if (next < 0) next = bytes.byteLength
    return next
  }
}

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a]
const [OPEN_OBJECT, CLOSE_OBJECT, OPEN_LIST, CLOSE_LIST] = [0x7b, 0x7d, 0x5b, 0x5d]

/**
 * Returns the errors of a workflow by the answer of `/prompt`: "KSampler (node 5): Value not in list: sampler_name: …".
 * Undefined if the answer names none. An accepted workflow may have errors too: its other outputs are rendered.
 */
export function workflowErrors(answer: unknown, workflow: Workflow): string | undefined {
  const nodes = isObject(answer) && isObject(answer.node_errors) ? Object.entries(answer.node_errors) : []
  const texts = nodes.map(([id, node]) => {
    const errors = isObject(node) && Array.isArray(node.errors) ? node.errors.map(errorText) : []
    return `${nodeText(workflow, id)}: ${errors.join('; ') || 'error without a message'}`
  })
  return texts.length > 0 ? texts.join('. ') : undefined
}

function errorText(error: unknown): string {
  if (!isObject(error)) return textOf(error)
  const { message, details, type } = error
  return [textOf(message) || textOf(type), textOf(details)].filter((text) => text !== '').join(': ')
}
