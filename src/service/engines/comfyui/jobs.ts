/**
 * ComfyUI as a server of jobs. The id of a job follows from the run, so that a worker that takes a run over finds its job
 * even if it was not stored. History decides whether a job is done: the server's events reach only an open socket.
 */
import { createHash, randomUUID } from 'node:crypto'
import { isObject } from '../../../protocol/parse.js'
import type { Charge, JobHandle, RenderJob } from '../engine.js'
import type { Upstream } from '../upstream/index.js'
import type { JobCreate, JobServer } from '../upstream/jobs.js'
import { JobEnded, UnusableAnswer, type UpstreamError } from '../upstream/upstream-error.js'
import { type ComfyState, endIn, placeIn, type ServerFile, workflowErrors } from './answers.js'
import type { Workflow } from './workflow.js'

const POLL_MS = 1_000
/** Looks into the history for each look for the job in the queue, which may be long. */
const LOOKS_PER_QUEUE = 5
/** The queue has the workflows of all jobs. */
const MAX_VALUES = 1_000_000
/** The ids that versions before July 2025 choose. Another server may use one id for all jobs. */
const RANDOM_UUID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

export type ComfyServer = Omit<JobServer<readonly ServerFile[]>, 'create' | 'outputs'> & {
  /** The part of `create` that knows the server. */
  plan(job: RenderJob, fill: () => Promise<Workflow>): JobCreate
}

/** `partnerKey`: of the user's account at Comfy, for nodes that call its partners. */
export function createComfyServer(upstream: Upstream, partnerKey?: string): ComfyServer {
  const get = (path: string, signal: AbortSignal): Promise<unknown> =>
    upstream.value({ method: 'GET', path, isQuick: true, maxValues: MAX_VALUES }, signal)

  /** Resolves with undefined for a job that is not in the history. */
  const ended = async (id: string, signal: AbortSignal): Promise<ComfyState | undefined> =>
    endIn(await get(`history/${id}`, signal), id)

  async function find(id: string, signal: AbortSignal): Promise<ComfyState> {
    const end = await ended(id, signal)
    if (end !== undefined) return end
    const place = placeIn(await get('queue', signal), id)
    // The job may have ended in between.
    return place.state === 'missing' ? ((await ended(id, signal)) ?? place) : place
  }

  /**
   * The interrupt is sent only if the queue shows right before that this job is running. Versions before autumn 2025 ignore
   * its id: there, a job that starts between these two requests is interrupted.
   */
  async function cancel({ id }: JobHandle, signal: AbortSignal): Promise<Charge> {
    const post = async (path: string, json: unknown): Promise<void> =>
      (await upstream.send({ method: 'POST', path, json, isQuick: true, once: true }, signal)).discard()
    await post('queue', { delete: [id] })
    const { state } = placeIn(await get('queue', signal), id)
    if (state === 'running') await post('interrupt', { prompt_id: id })
    return 'unknown'
  }

  return {
    type: 'comfyui',
    upstream,
    pollStepsMs: [POLL_MS],
    plan: (job, fill) => planOf(job, fill, { upstream, partnerKey, cancel }),
    async poll({ id }, signal, number) {
      const look = number % LOOKS_PER_QUEUE === 0 ? find(id, signal) : ended(id, signal)
      const found = await look.catch((error) => {
        // A queue of many large workflows tells nothing. The job is being rendered, and the history will have its end.
        if (!(error instanceof UnusableAnswer)) throw error
        return undefined
      })
      return found ?? { state: 'unknown' }
    },
    chosen: {
      handleOf: (runId) => ({ id: jobId(runId) }),
      isKnown: async ({ id }, signal) => (await find(id, signal)).state !== 'missing',
    },
    cancel,
  }
}

interface PlanParts extends Pick<ComfyServer, 'upstream' | 'cancel'> {
  readonly partnerKey: string | undefined
}

function planOf(
  job: RenderJob,
  fill: () => Promise<Workflow>,
  { upstream, partnerKey, cancel }: PlanParts,
): JobCreate {
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
}

/** Returns a UUID (version 8): new versions of ComfyUI accept no other ids. A run has one job. */
function jobId(runId: string): string {
  const hex = createHash('sha256').update(`${runId}\n0`).digest('hex')
  return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-8$4-$5')
}
