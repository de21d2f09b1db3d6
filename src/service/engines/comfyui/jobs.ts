/**
 * ComfyUI as a server of jobs. The id of a job follows from the run, so that a worker that takes a run over finds its job
 * even if it was not stored. History decides whether a job is done: the server's events reach only an open socket.
 */
import { createHash, randomUUID } from 'node:crypto'
import { isObject, parseJson } from '../../../protocol/parse.js'
import type { Charge, JobHandle, RenderJob } from '../engine.js'
import type { Upstream } from '../upstream/index.js'
import type { JobCreate, JobServer } from '../upstream/jobs.js'
import { errorTextOf, JobEnded, UpstreamError } from '../upstream/upstream-error.js'
import {
  endOf,
  findInQueue,
  type JobEnd,
  type QueuePlace,
  readWithoutWorkflow,
  type ServerFile,
  workflowErrors,
} from './answers.js'
import type { Workflow } from './workflow.js'

const POLL_MS = 1_000
/** Looks into the history for each look for the job in the queue, which may be long. */
const LOOKS_PER_QUEUE = 5
/** The answers about a job, without its workflow. */
const MAX_BYTES = 8 * 1_048_576
/** The ids that versions before July 2025 choose. Another server may use one id for all jobs. */
const RANDOM_UUID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

export type ComfyServer = Omit<JobServer<readonly ServerFile[]>, 'create' | 'outputs'> & {
  /** The part of `create` that knows the server. */
  plan(job: RenderJob, fill: () => Promise<Workflow>): JobCreate
}

/** `partnerKey`: of the user's account at Comfy, for nodes that call its partners. */
export function createComfyServer(upstream: Upstream, partnerKey?: string): ComfyServer {
  const get = async (path: string, signal: AbortSignal): Promise<unknown> => {
    const request = { method: 'GET', path, isQuick: true } as const
    const text = await upstream.stream(request, signal, (body) => readWithoutWorkflow(body, MAX_BYTES))
    const json = parseJson(text)
    if (!json.ok) throw new UpstreamError('The server sent a response that is not JSON.', { status: 200 })
    return json.value
  }

  /** Resolves with undefined for a job that is not in the history. */
  const history = async (id: string, signal: AbortSignal): Promise<JobEnd | undefined> =>
    endOf(await get(`history/${id}`, signal), id)

  const placeInQueue = (id: string, signal: AbortSignal): Promise<QueuePlace> =>
    upstream.stream({ method: 'GET', path: 'queue', isQuick: true }, signal, (body) => findInQueue(body, id))

  /** Asks for this job alone where the server can: the queue contains the workflows of all jobs. */
  async function placeOf(id: string, signal: AbortSignal): Promise<QueuePlace> {
    try {
      const job = await get(`api/jobs/${id}`, signal)
      if (isObject(job) && job.id === id && job.status !== 'pending') return 'running'
    } catch (error) {
      if (!(error instanceof UpstreamError) || error.status === undefined) throw error
      if (error.status === 404 && errorTextOf(error.answer) === 'Job not found') return 'missing'
    }
    return await placeInQueue(id, signal)
  }

  async function find(id: string, signal: AbortSignal): Promise<JobEnd | QueuePlace> {
    const end = await history(id, signal)
    if (end !== undefined) return end
    const place = await placeOf(id, signal)
    // The job may have ended in between.
    return place === 'missing' ? ((await history(id, signal)) ?? place) : place
  }

  const post = async (path: string, signal: AbortSignal, json?: unknown): Promise<void> =>
    (await upstream.send({ method: 'POST', path, json, isQuick: true, once: true }, signal)).discard()

  /**
   * On a server without `/api/jobs`, the interrupt is sent only if the queue shows right before that this job is
   * running. Versions before autumn 2025 ignore the id of an interrupt: there, a job that starts between these two
   * requests is interrupted.
   */
  async function cancel({ id }: JobHandle, signal: AbortSignal): Promise<Charge> {
    try {
      await post(`api/jobs/${id}/cancel`, signal)
    } catch (error) {
      if (!(error instanceof UpstreamError && (error.status === 404 || error.status === 405))) throw error
      await post('queue', signal, { delete: [id] })
      if ((await placeInQueue(id, signal)) === 'running') await post('interrupt', signal, { prompt_id: id })
    }
    return 'unknown'
  }

  return {
    type: 'comfyui',
    upstream,
    pollStepsMs: [POLL_MS],

    plan(job, fill) {
      const id = jobId(job.run?.id ?? randomUUID())
      let workflow: Workflow = {}
      const refusal = (answer: unknown): UpstreamError | undefined => {
        const errors = workflowErrors(answer, workflow)
        return errors ? new JobEnded(upstream.clean(`ComfyUI refused the workflow. ${errors}`)) : undefined
      }
      return {
        async request() {
          workflow = await fill()
          // Without a client id, some versions leave out the outputs of a workflow that they have rendered before.
          const extra = partnerKey !== undefined && { extra_data: { api_key_comfy_org: partnerKey } }
          const json = { prompt: workflow, client_id: id, prompt_id: id, ...extra }
          return { method: 'POST', path: 'prompt', json, isQuick: true }
        },
        async accept(answer) {
          const { prompt_id: accepted = id } = isObject(answer) ? answer : {}
          if (accepted !== id && !RANDOM_UUID.test(String(accepted)))
            throw new JobEnded('The server does not give each job an id, so it is not ComfyUI.')
          const problem = refusal(answer)
          if (problem === undefined) return { id: String(accepted) }
          // The parts of the workflow without errors are being rendered.
          await cancel({ id: String(accepted) }, job.signal).catch(() => {})
          throw problem
        },
        describe: ({ answer }) => refusal(answer),
      }
    },

    async poll({ id }, signal, number) {
      const end =
        number % LOOKS_PER_QUEUE === 0 ? await find(id, signal) : ((await history(id, signal)) ?? 'unknown')
      if (typeof end === 'string') return { state: end }
      if ('before' in end) return { state: 'waiting', position: end.before }
      if (end.state === 'interrupted') return { state: 'failed', message: 'The job was canceled in ComfyUI.' }
      if (end.state === 'failed') return end
      return { state: 'done', result: end.files }
    },

    chosen: {
      handleOf: (runId) => ({ id: jobId(runId) }),
      isKnown: async ({ id }, signal) => (await find(id, signal)) !== 'missing',
    },

    cancel,
  }
}

/** Returns a UUID (version 8): new versions of ComfyUI accept no other ids. A run has one job. */
function jobId(runId: string): string {
  const hex = createHash('sha256').update(`${runId}\n0`).digest('hex')
  return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-8$4-$5')
}
