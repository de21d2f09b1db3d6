/**
 * ComfyUI as a server of jobs. The id of a job follows from the run, so that a worker that takes a run over finds its job
 * even if it was not stored. History decides whether a job is done: the server's events reach only an open socket.
 */
import { createHash } from 'node:crypto'
import { sha256OfFile } from '../../../host/files.js'
import type { MediaParameters } from '../../../protocol/media-parameters.js'
import type { JobHandle, RenderJob } from '../engine.js'
import type { Upstream } from '../upstream/index.js'
import { acceptedJob, type JobServer } from '../upstream/jobs.js'
import { fetchFiles, publishOutputs } from '../upstream/outputs.js'
import { type FormField, mediaFileOf, referencesOf, type SourceFile } from '../upstream/request-body.js'
import { JobEnded, UnusableAnswer, UpstreamError } from '../upstream/upstream-error.js'
import { type ComfyState, endIn, placeIn, type ServerFile, workflowErrors } from './answers.js'
import { checkReferences, type ReadSlots, slotValues } from './slots.js'
import { filledWorkflow, type Workflow } from './workflow.js'

const POLL_MS = 1_000
/** Polls of the history for each poll of the queue, which may be long. */
const POLLS_PER_QUEUE = 5
/** Folder for references within the server's folder of inputs, so that no file of the user is overwritten. */
const UPLOAD_FOLDER = 'rushes'
/** The ids that versions before July 2025 choose. Another server may use one id for all jobs. */
const RANDOM_UUID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

export interface ComfyModel {
  readonly workflow: Workflow
  readonly slots: ReadSlots
  readonly media: MediaParameters
  /** Key of the user's account at Comfy, for nodes that call its partners. */
  readonly partnerKey: string | undefined
}

export function createComfyServer(upstream: Upstream, model: ComfyModel): JobServer<readonly ServerFile[]> {
  const { workflow, partnerKey } = model
  return {
    type: 'comfyui',
    upstream,
    pollStepsMs: [POLL_MS],
    async createRequest(job) {
      const prompt = filledWorkflow(workflow, await valuesOf(job, upstream, model))
      const id = jobId(job.run?.id)
      // Without a client id, some versions leave out the outputs of a workflow that they have rendered before.
      const extra = partnerKey !== undefined && { extra_data: { api_key_comfy_org: partnerKey } }
      const json = { prompt, client_id: id, prompt_id: id, ...extra }
      return { method: 'POST', path: 'prompt', json, isQuick: true }
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
    async outputs(files, job) {
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
  const answer = await upstream.value({ method: 'POST', path: 'upload/image', form, isQuick: true }, signal)
  const { name, subfolder = UPLOAD_FOLDER } = answer
  if (typeof name !== 'string')
    throw new UpstreamError('ComfyUI returned no name for the uploaded reference image.')
  return subfolder === '' ? name : `${subfolder}/${name}`
}

/** Resolves with undefined for a job that is not in the history. */
const ended = async (upstream: Upstream, id: string, signal: AbortSignal): Promise<ComfyState | undefined> =>
  endIn(await upstream.value({ method: 'GET', path: `history/${encodeURIComponent(id)}` }, signal), id)

async function find(upstream: Upstream, id: string, signal: AbortSignal): Promise<ComfyState> {
  const end = await ended(upstream, id, signal)
  if (end !== undefined) return end
  const place = placeIn(await upstream.value({ method: 'GET', path: 'queue' }, signal), id)
  // The job may have ended in between.
  return place.state === 'missing' ? ((await ended(upstream, id, signal)) ?? place) : place
}

/**
 * Sends the interrupt only if the queue shows that this job is running. Versions before autumn 2025 ignore the id in it, and
 * interrupt a job that has started since the queue was read.
 */
async function cancel(upstream: Upstream, { id }: JobHandle, signal: AbortSignal): Promise<'unknown'> {
  const post = async (path: string, json: unknown): Promise<void> =>
    (await upstream.send({ method: 'POST', path, json, isQuick: true }, signal)).discard()
  await post('queue', { delete: [id] })
  const { state } = placeIn(await upstream.value({ method: 'GET', path: 'queue' }, signal), id)
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
