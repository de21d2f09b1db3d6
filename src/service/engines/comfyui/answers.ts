/** What the answers of a ComfyUI server mean: the history of a job, the queue, and the errors of a workflow. */
import { isObject } from '../../../protocol/parse.js'
import type { Answer } from '../upstream/index.js'
import type { JobState } from '../upstream/jobs.js'
import { UpstreamError } from '../upstream/upstream-error.js'
import { nodeText, type Workflow } from './workflow.js'

/** A file on the server, as `/view` takes it. */
export interface ServerFile {
  readonly filename: string
  readonly subfolder: string
  readonly type: string
}

export type ComfyState = JobState<readonly ServerFile[]>

/** Returns the end of a job by the answer of `/history/<id>`, or undefined if the job is not in it. */
export function endIn(history: Answer, id: string): ComfyState | undefined {
  const entry = Object.hasOwn(history, id) ? history[id] : undefined
  if (!isObject(entry)) return undefined
  const { status_str: status, messages } = isObject(entry.status) ? entry.status : {}
  if (status !== 'error') return { state: 'done', result: filesOf(entry.outputs) }
  const events = Array.isArray(messages) ? messages.filter(Array.isArray) : []
  const [, error] = events.find(([name]) => name === 'execution_error') ?? []
  if (isObject(error)) return { state: 'failed', message: executionError(error) }
  const isCanceled = events.some(([name]) => name === 'execution_interrupted')
  return { state: 'failed', message: isCanceled ? 'The job was canceled in ComfyUI.' : '' }
}

/** Without the traceback, which contains paths of the server. */
const executionError = ({ node_type, node_id, exception_type, exception_message }: Answer): string => {
  const message = textOf(exception_message).trim() || textOf(exception_type) || 'no message'
  return `${textOf(node_type) || 'A node'} (node ${textOf(node_id) || '?'}): ${message}`
}

const textOf = (value: unknown): string =>
  typeof value === 'string' || typeof value === 'number' ? String(value) : ''

/**
 * Returns the files of all output nodes, in the order of node ids. Each kind of node uses another name for its list
 * (`images`, `gifs`, `audio`), so every list of objects with a file name counts. Temporary files are previews: they
 * count only if the job has nothing else. Files of other types, such as latents, never count.
 */
function filesOf(outputs: unknown): readonly ServerFile[] {
  const nodes = Object.entries(isObject(outputs) ? outputs : {})
  const lists = nodes
    .toSorted(([one], [other]) => natural.compare(one, other))
    .flatMap(([, node]) => (isObject(node) ? Object.values(node).filter(Array.isArray) : []))
  const files = lists.flat().flatMap((each): readonly ServerFile[] => {
    if (!isObject(each) || !MEDIA_FILE.test(textOf(each.filename))) return []
    const { filename, subfolder, type } = each
    return [{ filename: textOf(filename), subfolder: textOf(subfolder), type: textOf(type) || 'output' }]
  })
  const found = [...new Map(files.map((file) => [JSON.stringify(file), file])).values()]
  const saved = found.filter(({ type }) => type === 'output')
  return saved.length > 0 ? saved : found.filter(({ type }) => type === 'temp')
}

const MEDIA_FILE =
  /\.(png|jpe?g|webp|gif|avif|bmp|tiff?|mp4|webm|mkv|mov|avi|m4v|flac|mp3|wav|opus|ogg|m4a)$/i

const natural = new Intl.Collator('en', { numeric: true })

/**
 * Finds a job in the answer of `/queue`: `{"queue_running":[[number,"id",workflow,…]],"queue_pending":[…]}`. Waiting jobs
 * run in the order of their numbers, which is not that of the list.
 */
export function placeIn(queue: Answer, id: string): ComfyState {
  const { queue_running: running, queue_pending: pending } = queue
  if (!Array.isArray(running) || !Array.isArray(pending))
    throw new UpstreamError('The server sent its queue in an unknown format.', { status: 200 })
  const isOwn = (job: unknown): job is unknown[] => Array.isArray(job) && job[1] === id
  if (running.some(isOwn)) return { state: 'running' }
  const own = pending.find(isOwn)
  if (own === undefined) return { state: 'missing' }
  return { state: 'waiting', position: pending.filter(([number]) => number < Number(own[0])).length }
}

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
