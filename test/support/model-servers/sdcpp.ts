/**
 * The server of stable-diffusion.cpp with its own interface, as read in its source, beside the routes of other
 * servers. A job is drawn at its second status request, unless the test ends it.
 */
import { createModelServer, type ModelServer, type ServerAnswer, type ServerRequest } from './http.js'
import { IMAGES_DIALECTS } from './images.js'
import { pngOf } from './pictures.js'

interface Job {
  readonly id: string
  // biome-ignore lint/suspicious/noExplicitAny: requests of every shape
  readonly fields: any
  status: 'queued' | 'generating' | 'completed' | 'cancelled'
  looks: number
}

interface SdcppServer extends ModelServer {
  readonly jobs: readonly Job[]
}

export interface SdcppOptions {
  /** Whether a job ends by itself. */
  readonly isQuick?: boolean
}

export async function createSdcppServer({ isQuick = true }: SdcppOptions = {}): Promise<SdcppServer> {
  const jobs: Job[] = []
  const describe = (job: Job): object => {
    const { id, status } = job
    const waiting = jobs.filter((each) => each.status === 'queued').indexOf(job)
    const result = status === 'completed' ? resultOf(job) : null
    return { created: 1, error: null, id, kind: 'img_gen', queue_position: waiting + 1, result, status }
  }

  function create(request: ServerRequest): ServerAnswer {
    const fields = request.json()
    const job: Job = { id: `job_${jobs.length + 1}`, fields, status: 'queued', looks: 0 }
    jobs.push(job)
    return { status: 202, body: { id: job.id, status: job.status, poll_url: `/sdcpp/v1/jobs/${job.id}` } }
  }

  function look(job: Job): ServerAnswer {
    job.looks++
    if (job.status === 'queued' && isQuick) job.status = 'generating'
    else if (job.status === 'generating') job.status = 'completed'
    return { body: describe(job) }
  }

  /** A job that is drawn cannot be stopped. */
  function cancel(job: Job): ServerAnswer {
    if (job.status === 'generating')
      return {
        status: 409,
        body: { error: 'job is currently generating and cannot be interrupted yet' },
      }
    if (job.status === 'queued') job.status = 'cancelled'
    return { body: describe(job) }
  }

  async function routes(request: ServerRequest): Promise<ServerAnswer> {
    const { method, path } = request
    if (path === '/sdcpp/v1/capabilities')
      return {
        body: {
          model: { name: 'v1-5.safetensors', stem: 'v1-5', path: '/models/v1-5.safetensors' },
          supported_modes: ['img_gen'],
          defaults_by_mode: { img_gen: { width: 512, height: 512 } },
        },
      }
    if (method === 'POST' && path === '/sdcpp/v1/img_gen') return create(request)
    const [, id, isCancel] = /^\/sdcpp\/v1\/jobs\/([^/]+)(\/cancel)?$/.exec(path) ?? []
    if (id === undefined) return await IMAGES_DIALECTS.sdcpp(request, server)
    const job = jobs.find((each) => each.id === id)
    if (job === undefined) return { status: 404, body: { error: 'job not found' } }
    return isCancel === undefined ? look(job) : cancel(job)
  }

  const server = await createModelServer(routes)
  return Object.assign(server, { jobs })
}

function resultOf({ fields }: Job): object {
  const picture = pngOf(fields.width, fields.height, fields).toString('base64')
  return { output_format: 'png', images: [{ index: 0, b64_json: picture }] }
}
