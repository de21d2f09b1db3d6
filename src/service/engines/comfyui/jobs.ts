/**
 * The jobs of a ComfyUI server. The id of a job follows from the run, so that a worker that takes a run over finds its
 * job and renders nothing twice. History decides whether a job is done: the server's events reach only an open socket.
 */
import { createHash } from 'node:crypto'
import { withTimeout } from '../../../host/abort.js'
import type { Clock } from '../../../host/clock.js'
import { HttpFailure } from '../../../host/http.js'
import { isObject } from '../../../protocol/parse.js'
import type { RenderJob } from '../engine.js'
import type { Upstream } from '../upstream/index.js'
import { pollUntilDone } from '../upstream/polling.js'
import { errorTextOf, UpstreamError } from '../upstream/upstream-error.js'
import {
  endOf,
  findInQueue,
  type JobEnd,
  type QueuePlace,
  type ServerFile,
  workflowErrors,
} from './answers.js'
import type { FollowProgress } from './progress.js'
import type { Workflow } from './workflow.js'

export interface ComfyJobs {
  /**
   * Renders a workflow and resolves with the files of its job. `fill` creates the workflow unless the run has a job
   * already. A job that has not ended is cancelled when this fails.
   */
  run(
    runId: string,
    fill: () => Promise<Workflow>,
    job: Pick<RenderJob, 'signal' | 'onProgress'>,
  ): Promise<readonly ServerFile[]>
}

const POLL_MS = 1_000
/** Looks into the history for each look for the job in the queue, which may be long. */
const LOOKS_PER_QUEUE = 5
/** The answers about a job contain its workflow. */
const MAX_BYTES = 64 * 1_048_576
/** Jobs of one run. Each worker that stops cancels its own, and the next one starts another. */
const MAX_JOBS = 20
/** Time in which a request without an answer reaches the queue. */
const SETTLE_MS = 1_000
/** An aborted engine has 3 s to stop. */
const CANCEL_LIMIT_MS = 2_500
/** The ids that versions before July 2025 choose. Another server may use one id for all jobs. */
const RANDOM_UUID = /^[\da-f]{8}-[\da-f]{4}-4[\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/

export function createComfyJobs(
  upstream: Upstream,
  clock: Pick<Clock, 'alarm' | 'sleep'>,
  followProgress: FollowProgress,
): ComfyJobs {
  const get = (path: string, signal: AbortSignal): Promise<unknown> =>
    upstream.value({ method: 'GET', path, isQuick: true, maxBytes: MAX_BYTES }, signal)

  /** Resolves with undefined for a job that is not in the history. */
  const history = async (id: string, signal: AbortSignal): Promise<JobEnd | undefined> =>
    endOf(await get(`history/${id}`, signal), id)

  const placeInQueue = (id: string, signal: AbortSignal): Promise<QueuePlace> =>
    upstream.stream({ method: 'GET', path: 'queue', isQuick: true }, signal, (body) => findInQueue(body, id))

  /** Asks for this job alone where the server can: the queue contains the workflows of all jobs. */
  async function isQueued(id: string, signal: AbortSignal): Promise<boolean> {
    try {
      const job = await get(`api/jobs/${id}`, signal)
      if (isObject(job) && job.id === id) return true
    } catch (error) {
      if (!(error instanceof UpstreamError) || error.status === undefined) throw error
      if (error.status === 404 && errorTextOf(error.answer) === 'Job not found') return false
    }
    return (await placeInQueue(id, signal)) !== 'missing'
  }

  /** Resolves with undefined for a job that waits or runs. */
  async function find(id: string, signal: AbortSignal): Promise<JobEnd | undefined> {
    const end = await history(id, signal)
    if (end !== undefined) return end
    if (await isQueued(id, signal)) return undefined
    // The job may have ended in between.
    return (await history(id, signal)) ?? { state: 'unknown' }
  }

  /** Resolves with the id of the job, which old servers choose. */
  async function submit(id: string, workflow: Workflow, signal: AbortSignal): Promise<string> {
    const refusal = (answer: unknown): UpstreamError | undefined => {
      const errors = workflowErrors(answer, workflow)
      return errors ? new UpstreamError(upstream.clean(`ComfyUI refused the workflow. ${errors}`)) : undefined
    }
    const isThere = async (): Promise<boolean> => {
      await clock.sleep(SETTLE_MS, signal)
      return (await find(id, signal))?.state !== 'unknown'
    }
    // Without a client id, some versions leave out the outputs of a workflow that they have rendered before.
    const json = { prompt: workflow, client_id: id, prompt_id: id }
    let answer: unknown
    try {
      answer = await upstream.value({ method: 'POST', path: 'prompt', json, isQuick: true }, signal)
    } catch (error) {
      if (error instanceof UpstreamError && !mayBeAccepted(error)) throw refusal(error.answer) ?? error
      // The answer was lost, but perhaps not the request.
      if (await isThere().catch(() => false)) return id
      await cancel(id, SETTLE_MS)
      signal.throwIfAborted()
      throw error
    }
    const { prompt_id: accepted = id } = isObject(answer) ? answer : {}
    if (accepted !== id && !RANDOM_UUID.test(String(accepted)))
      throw new UpstreamError('The server does not give each job an id, so it is not ComfyUI.')
    const problem = refusal(answer)
    if (problem === undefined) return String(accepted)
    // The parts of the workflow without errors are being rendered.
    await cancel(String(accepted), 0)
    throw problem
  }

  async function untilEnd(id: string, signal: AbortSignal): Promise<JobEnd> {
    const look = (number: number) => (number % LOOKS_PER_QUEUE === 0 ? find(id, signal) : history(id, signal))
    try {
      return await pollUntilDone(look, { clock, signal, pauseMs: () => POLL_MS })
    } catch (error) {
      await cancel(id, 0)
      throw error
    }
  }

  /**
   * Cancels this job and never another one. On a server without `/api/jobs`, the interrupt is sent only if the queue
   * shows right before that this job is running. Versions before autumn 2025 ignore the id of an interrupt: there, a
   * job that starts between these two requests is interrupted.
   */
  async function cancelNow(id: string, signal: AbortSignal): Promise<void> {
    const post = async (path: string, json?: unknown): Promise<void> =>
      (await upstream.send({ method: 'POST', path, json, isQuick: true, once: true }, signal)).discard()
    try {
      return await post(`api/jobs/${id}/cancel`)
    } catch (error) {
      if (!(error instanceof UpstreamError && (error.status === 404 || error.status === 405))) throw error
    }
    await post('queue', { delete: [id] })
    if ((await placeInQueue(id, signal)) === 'running') await post('interrupt', { prompt_id: id })
  }

  /** Waits first if the job may be about to enter the queue. */
  async function cancel(id: string, waitMs: number): Promise<void> {
    const work = async (signal: AbortSignal): Promise<void> => {
      await clock.sleep(waitMs, signal)
      await cancelNow(id, signal)
    }
    // The failure that led here is the one to report.
    await withTimeout(work, { timeoutMs: CANCEL_LIMIT_MS, reason: () => new Error(), clock }).catch(() => {})
  }

  return {
    async run(runId, fill, { signal, onProgress }) {
      const rendered = async (id: string, clientId: string): Promise<JobEnd> => {
        const stopFollowing = followProgress(clientId, id, onProgress)
        return await untilEnd(id, signal).finally(stopFollowing)
      }
      for (let attempt = 0; attempt < MAX_JOBS; attempt++) {
        if (attempt > 0) await clock.sleep(POLL_MS, signal)
        const id = jobId(runId, attempt)
        const earlier = await find(id, signal)
        const isNew = earlier?.state === 'unknown'
        const end = isNew
          ? await rendered(await submit(id, await fill(), signal), id)
          : (earlier ?? (await rendered(id, id)))
        // An earlier worker that stopped has cancelled its job: while it waited, it is gone from the queue.
        if (isNew || (end.state !== 'interrupted' && end.state !== 'unknown')) return filesAt(end)
      }
      throw new UpstreamError(`ComfyUI has cancelled ${MAX_JOBS} jobs of this run.`)
    },
  }

  function filesAt(end: JobEnd): readonly ServerFile[] {
    if (end.state === 'interrupted') throw new UpstreamError('The job was cancelled in ComfyUI.')
    if (end.state === 'failed') throw new UpstreamError(upstream.clean(end.message))
    if (end.state === 'unknown')
      throw new UpstreamError('ComfyUI no longer knows this job: it was probably restarted. Run it again.')
    if (end.files.length > 0) return end.files
    throw new UpstreamError(
      'ComfyUI finished the workflow without an image or a video. Either it has no node that saves one, or the server ' +
        'has rendered it before and left out its outputs: give it a slot for the seed.',
    )
  }
}

/** A 5xx may come from a proxy that waited too long, and a 2xx that is not JSON from the server itself. */
function mayBeAccepted({ cause, status = 0 }: UpstreamError): boolean {
  if (cause instanceof HttpFailure) return cause.sent
  return (status >= 200 && status <= 299) || (status >= 500 && status !== 503)
}

/** Returns a UUID (version 8): new versions of ComfyUI accept no other ids. */
function jobId(runId: string, attempt: number): string {
  const hex = createHash('sha256').update(`${runId}\n${attempt}`).digest('hex')
  return hex.replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12}).*$/, '$1-$2-8$3-8$4-$5')
}
