/**
 * The engine `comfyui`: renders a workflow on a ComfyUI server. The workflow is a file, exported for the API; a document
 * names the inputs of its nodes that get the values of a run. The id of a job follows from the run, so that a worker that takes
 * a run over finds its job even if it was not stored. History decides whether a job is done: the server's events reach only
 * an open socket.
 */
import { createHash } from 'node:crypto'
import { sha256OfFile } from '../../../host/files.js'
import { type MediaParameters, mediaParameters } from '../../../protocol/media-parameters.js'
import { isObject } from '../../../protocol/parse.js'
import { mayCost } from '../../../protocol/price.js'
import type { JobHandle, RenderJob } from '../engine.js'
import type { ReadEngine } from '../settings.js'
import { type Answer, createUpstream, type Upstream } from '../upstream/index.js'
import { acceptedJob, createJobEngine, type JobServer, type JobState } from '../upstream/jobs.js'
import { fetchFiles, publishOutputs } from '../upstream/outputs.js'
import { type FormField, mediaFileOf, referencesOf, type SourceFile } from '../upstream/request-body.js'
import { JobEnded, UnusableAnswer, UpstreamError } from '../upstream/upstream-error.js'
import { checkReferences, type ReadSlots, readSlots, slotValues } from './slots.js'
import { filledWorkflow, nodeText, parseWorkflow, type Workflow } from './workflow.js'

const POLL_MS = 1_000
/** Polls of the history for each poll of the queue, which may be long. */
const POLLS_PER_QUEUE = 5
/** Folder for references within the server's folder of inputs, so that no file of the user is overwritten. */
const UPLOAD_FOLDER = 'rushes'
/** The ids that versions before July 2025 choose. Another server may use one id for all jobs. */
const RANDOM_UUID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

const NO_WORKFLOW =
  '. In ComfyUI, choose Workflow > Export (API), and add the file: workflow: flow.json in a model file, or #flow.json after ' +
  'the URL of --engine'

export const readComfyui: ReadEngine = (settings, document) => {
  const url = settings.url('url')
  const key = settings.secret('key_env')
  const text = settings.file('workflow', NO_WORKFLOW)
  const parsed = text === undefined ? undefined : parseWorkflow(text)
  if (parsed?.ok === false) settings.report(['workflow'], parsed.wrong)
  const workflow = parsed?.ok ? parsed.value : undefined
  const slots = readSlots(settings, document, workflow)
  const model = { workflow: workflow ?? {}, slots, media: mediaParameters(document.input) }
  return (parts) => {
    const upstream = createUpstream({ url, key, hasCost: mayCost(document), parts })
    return createJobEngine(createComfyServer(upstream, model), parts.clock)
  }
}

interface ComfyModel {
  readonly workflow: Workflow
  readonly slots: ReadSlots
  readonly media: MediaParameters
}

function createComfyServer(upstream: Upstream, model: ComfyModel): JobServer {
  const { workflow } = model
  return {
    type: 'comfyui',
    upstream,
    pollStepsMs: [POLL_MS],
    async createRequest(job) {
      const prompt = filledWorkflow(workflow, await valuesOf(job, upstream, model))
      const id = jobId(job.run?.id)
      // Without a client id, some versions leave out the outputs of a workflow that they have rendered before.
      return { method: 'POST', path: 'prompt', json: { prompt, client_id: id, prompt_id: id } }
    },
    async accept(answer, job) {
      const handle = acceptedJob(answer.prompt_id)
      if (handle.id !== jobId(job.run?.id) && !RANDOM_UUID.test(handle.id))
        throw new JobEnded('The server does not give each job an id, so it is not ComfyUI.')
      const problem = refusalIn(answer, workflow)
      if (problem === undefined) return handle
      // The parts of the workflow without errors are being rendered.
      await cancel(upstream, handle, job.signal).catch(() => {})
      throw new JobEnded(upstream.clean(problem))
    },
    describeRefusal({ answer }) {
      const problem = refusalIn(answer, workflow)
      return problem && upstream.clean(problem)
    },
    async poll({ id }, signal, number) {
      const fetchState = number % POLLS_PER_QUEUE === 0 ? find : ended
      const found = await fetchState(upstream, id, signal).catch((error) => {
        // A queue of many large workflows is too large to read. The history will have the end of the job.
        if (!(error instanceof UnusableAnswer)) throw error
        return undefined
      })
      return found ?? { state: 'unknown' }
    },
    async outputs(entry, job) {
      const files = filesOf(entry.outputs)
      if (files.length === 0)
        throw new JobEnded(
          'ComfyUI finished the workflow without an image or a video. Either it has no node that saves one, or the server ' +
            'has rendered it before and left out its outputs: give it a slot for the seed.',
        )
      const paths = await fetchFiles(files, (file, maxBytes) =>
        upstream.download(`view?${new URLSearchParams({ ...file })}`, job, maxBytes),
      )
      return await publishOutputs(job, paths, ['image', 'video', 'audio'])
    },
    chosen: {
      handleOf: (runId) => ({ id: jobId(runId) }),
      isKnown: async ({ id }, signal) => (await find(upstream, id, signal)).state !== 'missing',
    },
    cancel: (handle, signal) => cancel(upstream, handle, signal),
  }
}

/** Uploads the media of a run, and returns the value of each slot. */
async function valuesOf(job: RenderJob, upstream: Upstream, { slots, media }: ComfyModel) {
  const references = await referencesOf(job)
  checkReferences(references.length, slots)
  const images: string[] = []
  for (const reference of references) images.push(await upload(reference, upstream, job))
  const input = { ...job.input }
  for (const [name, [path]] of Object.entries(job.media ?? {}))
    input[name] = await upload(await mediaFileOf(path, name, media.get(name) ?? 'file', 0), upstream, job)
  return slotValues(slots, input, images)
}

/** Returns the name by which the workflow loads the uploaded file. */
async function upload(file: SourceFile, upstream: Upstream, { signal }: RenderJob): Promise<string> {
  const extension = file.name.slice(file.name.lastIndexOf('.'))
  const form: readonly FormField[] = [
    ['image', { ...file, name: `${await sha256OfFile(file.path)}${extension}` }],
    ['type', 'input'],
    ['subfolder', UPLOAD_FOLDER],
  ]
  const answer = await upstream.value({ method: 'POST', path: 'upload/image', form }, signal)
  const { name, subfolder = UPLOAD_FOLDER } = answer
  if (typeof name !== 'string')
    throw new UpstreamError('ComfyUI returned no name for the uploaded reference image.')
  return subfolder === '' ? name : `${subfolder}/${name}`
}

/** Resolves with undefined for a job that is not in the history. */
const ended = async (upstream: Upstream, id: string, signal: AbortSignal): Promise<JobState | undefined> =>
  endIn(await upstream.get(`history/${encodeURIComponent(id)}`, signal), id)

async function find(upstream: Upstream, id: string, signal: AbortSignal): Promise<JobState> {
  const end = await ended(upstream, id, signal)
  if (end !== undefined) return end
  const place = placeIn(await upstream.get('queue', signal), id)
  // The job may have ended in between.
  return place.state === 'missing' ? ((await ended(upstream, id, signal)) ?? place) : place
}

/**
 * Sends the interrupt only if the queue shows that this job is running. Versions before autumn 2025 ignore the id in it, and
 * interrupt a job that has started since the queue was read.
 */
async function cancel(upstream: Upstream, { id }: JobHandle, signal: AbortSignal): Promise<'unknown'> {
  const post = async (path: string, json: unknown): Promise<void> =>
    (await upstream.send({ method: 'POST', path, json }, signal)).discard()
  await post('queue', { delete: [id] })
  const { state } = placeIn(await upstream.get('queue', signal), id)
  if (state === 'running') await post('interrupt', { prompt_id: id })
  return 'unknown'
}

function refusalIn(answer: unknown, workflow: Workflow): string | undefined {
  const errors = workflowErrors(answer, workflow)
  return errors && `ComfyUI refused the workflow. ${errors}`
}

/** Returns a UUID (version 8): new versions of ComfyUI accept no other ids. A run has one job. */
function jobId(runId = ''): string {
  const hex = createHash('sha256').update(`${runId}\n0`).digest('hex')
  return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-8$4-$5')
}

/** A file on the server, as `/view` takes it. */
interface ServerFile {
  readonly filename: string
  readonly subfolder: string
  readonly type: string
}

/** Returns the end of a job by the answer of `/history/<id>`, or undefined if the job is not in it. */
function endIn(history: Answer, id: string): JobState | undefined {
  const entry = Object.hasOwn(history, id) ? history[id] : undefined
  if (!isObject(entry)) return undefined
  const { status_str: status, messages } = isObject(entry.status) ? entry.status : {}
  if (status !== 'error') return { state: 'done', answer: entry }
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
export function placeIn(queue: Answer, id: string): JobState {
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
function workflowErrors(answer: unknown, workflow: Workflow): string | undefined {
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
