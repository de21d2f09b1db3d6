/** The queue of fal, and at another address its storage, as docs/engines.md describes them. */
import { ONE_PIXEL_PNG } from '../engines.js'
import { createModelServer, type ModelServer, type ServerAnswer, type ServerRequest } from './http.js'

/** A key of fal is an id and a secret. */
export const SECRET = 'id-of-the-key:key-of-the-user-7f3a'

interface FalJob {
  readonly id: string
  readonly endpoint: string
  readonly input: Readonly<Record<string, unknown>>
  /** Jobs before it. */
  position: number
  polls: number
}

export interface FalOptions {
  /** Jobs before a new one: 6,000 fewer at each poll. */
  readonly queued?: number
  /** Fields of the status `COMPLETED`, such as an `error`. */
  readonly completed?: object
  /** The result of a job. Default: one picture, at a link that only the latest poll has. */
  result?(job: FalJob, picture: string): ServerAnswer
}

interface FalServer extends ModelServer {
  /** Accepted jobs, in order. Each one costs money. */
  readonly jobs: FalJob[]
  readonly canceled: readonly string[]
  readonly uploads: ReadonlyMap<string, Buffer>
  /** Its storage, at another address. */
  readonly media: ModelServer
}

export async function createFalServer({
  queued = 0,
  completed = {},
  result = (_, url) => ({ body: { images: [{ url, content_type: 'image/png' }], seed: 7 } }),
}: FalOptions = {}): Promise<FalServer> {
  const jobs: FalJob[] = []
  const canceled: string[] = []
  const uploads = new Map<string, Buffer>()

  function create({ path, json }: ServerRequest, base: string): ServerAnswer {
    const job = {
      id: `fal_${jobs.length + 1}`,
      endpoint: path.slice(1),
      input: json(),
      position: queued,
      polls: 0,
    }
    jobs.push(job)
    const url = `${base}/${path.split('/').slice(1, 3).join('/')}/requests/${job.id}`
    return {
      body: {
        ...{ status: 'IN_QUEUE', request_id: job.id, queue_position: queued },
        ...{ response_url: url, status_url: `${url}/status`, cancel_url: `${url}/cancel` },
      },
    }
  }

  function look(job: FalJob): ServerAnswer {
    job.polls++
    job.position = Math.max(0, job.position - 6_000)
    if (job.position > 0 || job.polls === 1)
      return { status: 202, body: { status: 'IN_QUEUE', queue_position: job.position } }
    if (job.polls === 2) return { status: 202, body: { status: 'IN_PROGRESS' } }
    return { body: { status: 'COMPLETED', request_id: job.id, ...completed } }
  }

  /** Each poll has a fresh link. */
  const media = await createModelServer(({ method, path, headers, body }): ServerAnswer => {
    if (headers.authorization !== undefined) return { status: 400, body: { detail: 'a key' } }
    if (method === 'PUT') {
      uploads.set(path, body)
      return {}
    }
    const [, id, poll] = path.split('/')
    const isFresh = jobs.some((job) => job.id === id && String(job.polls) === poll)
    if (!isFresh) return { status: 404, body: 'expired' }
    return { body: ONE_PIXEL_PNG, headers: { 'content-type': 'image/png' } }
  })

  function routes(request: ServerRequest): ServerAnswer {
    const { method, path, headers } = request
    const base = `http://${headers.host}`
    if (headers.authorization !== `Key ${SECRET}`) return { status: 401, body: { detail: 'No user found' } }
    if (path === '/storage/upload/initiate') {
      const name = `/uploads/${uploads.size + 1}-${request.json().file_name}`
      return { body: { upload_url: `${media.url}${name}`, file_url: `https://v3.fal.media${name}` } }
    }
    const [, id, last] = /\/requests\/([^/]+)(?:\/(\w+))?$/.exec(path) ?? []
    if (method === 'POST' && id === undefined) return create(request, base)
    const job = jobs.find((each) => each.id === id)
    if (job === undefined) return { status: 404, body: { status: 'NOT_FOUND' } }
    if (method === 'PUT' && last === 'cancel') {
      canceled.push(job.id)
      return { status: 202, body: { status: 'CANCELLATION_REQUESTED' } }
    }
    return last === 'status' ? look(job) : result(job, `${media.url}/${job.id}/${job.polls}`)
  }

  return Object.assign(await createModelServer(routes), { media, jobs, canceled, uploads })
}
