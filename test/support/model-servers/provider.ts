/**
 * A provider of jobs that costs money, in the manner of fal and Replicate: a queue, fresh links with each poll, and a failure
 * that hides behind `COMPLETED`. `createProviderServer` is its type of server, as an engine would have it.
 */
import type { Charge } from '../../../src/service/engines/engine.js'
import type { Upstream } from '../../../src/service/engines/upstream/index.js'
import { acceptedJob, type JobServer } from '../../../src/service/engines/upstream/jobs.js'
import { publishOutputs } from '../../../src/service/engines/upstream/outputs.js'
import { ONE_PIXEL_PNG } from '../engines.js'
import { createModelServer, type ModelServer, type ServerAnswer, type ServerRequest } from './http.js'

interface ProviderJob {
  readonly id: string
  readonly input: Readonly<Record<string, unknown>>
  status: string
  polls: number
  position: number
}

export interface Provider extends ModelServer {
  /** Accepted jobs, in order. Each one costs money. */
  readonly jobs: ProviderJob[]
  readonly canceled: readonly string[]
  /** What a cancel is known to have cost. */
  charge: Charge
}

export interface ProviderOptions {
  /** Polls until a job is done. Default: 2. */
  readonly polls?: number
  /** Jobs that wait before a new one. */
  readonly queued?: number
  /** Jobs fail with this message, although their state is `COMPLETED`. */
  readonly error?: string
  /** States of a job in order, in place of `IN_QUEUE`, `IN_PROGRESS`, `COMPLETED`. */
  readonly states?: readonly string[]
}

export async function createProvider({
  polls = 2,
  queued = 0,
  states,
  error,
}: ProviderOptions = {}): Promise<Provider> {
  const jobs: ProviderJob[] = []
  const canceled: string[] = []
  let links = 0

  function look(job: ProviderJob): ServerAnswer {
    job.polls++
    job.position = Math.max(0, job.position - 6_000)
    if (states !== undefined) job.status = states[Math.min(job.polls, states.length) - 1] ?? job.status
    else if (job.position > 0) job.status = 'IN_QUEUE'
    else job.status = job.polls > polls ? 'COMPLETED' : 'IN_PROGRESS'
    const link = job.status === 'COMPLETED' ? { link: `/files/${job.id}/${++links}` } : {}
    return { body: { request_id: job.id, status: job.status, queue_position: job.position, ...link } }
  }

  function routes(request: ServerRequest): ServerAnswer {
    const { method, path } = request
    if (method === 'POST' && path === '/model') {
      const job = {
        id: `job_${jobs.length + 1}`,
        input: request.json(),
        status: 'IN_QUEUE',
        polls: 0,
        position: queued,
      }
      jobs.push(job)
      const base = `http://${request.headers.host}/requests/${job.id}`
      return { body: { request_id: job.id, status_url: base, cancel_url: `${base}/cancel` } }
    }
    const [, folder, id, last] = path.split('/')
    const job = jobs.find((each) => each.id === id)
    if (job === undefined) return { status: 404, body: { status: 'NOT_FOUND' } }
    if (folder === 'requests' && method === 'PUT') {
      canceled.push(job.id)
      return { status: 202, body: { charge: provider.charge } }
    }
    if (folder === 'requests') return look(job)
    if (error !== undefined)
      return { status: 422, body: { detail: [{ loc: ['body', 'prompt'], msg: error }] } }
    if (Number(last) < links) return { status: 404, body: { detail: 'gone' } }
    return { body: ONE_PIXEL_PNG, headers: { 'content-type': 'image/png' } }
  }

  const provider: Provider = Object.assign(await createModelServer(routes), {
    jobs,
    canceled,
    charge: 'unknown' as Charge,
  })
  return provider
}

interface Answer {
  readonly request_id?: string
  readonly status_url: string
  readonly cancel_url: string
  readonly status: string
  readonly queue_position: number
  readonly link: string
}

export function createProviderServer(upstream: Upstream): JobServer {
  const get = async (path: string, signal: AbortSignal) =>
    (await upstream.get(path, signal)) as unknown as Answer
  return {
    type: 'provider',
    upstream,
    pollStepsMs: [1_000, 2_000, 5_000],
    createRequest: async ({ input }) => ({ method: 'POST', path: 'model', json: input }),
    accept(answer) {
      const { request_id: id, status_url: get, cancel_url: cancel } = answer
      return acceptedJob(id, { get, cancel })
    },
    async poll({ id, urls }, signal) {
      const answer = await get(urls?.get ?? `requests/${id}`, signal)
      const { status, queue_position: position } = answer
      if (status === 'IN_QUEUE') return { state: 'waiting', position }
      if (status === 'IN_PROGRESS') return { state: 'running' }
      if (status === 'aborted') return { state: 'failed', message: 'The job was aborted.' }
      return status === 'COMPLETED' ? { state: 'done', answer: { ...answer } } : { state: 'unknown' }
    },
    outputs: async ({ link }, job) => await publishOutputs(job, [await upstream.download(`${link}`, job)]),
    async cancel({ id, urls }, signal): Promise<Charge> {
      const path = urls?.cancel ?? `requests/${id}/cancel`
      const answer = await upstream.value({ method: 'PUT', path }, signal)
      return (answer as { readonly charge: Charge }).charge
    },
  }
}
