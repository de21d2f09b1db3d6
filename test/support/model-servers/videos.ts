/**
 * A server of `/v1/videos` as docs/engines.md describes OpenAI's; the answers of vLLM-Omni and SGLang that differ are faults of
 * the tests. A job ends at its third status request, unless the test ends it.
 */
import { createModelServer, type ModelServer, type ServerAnswer, type ServerRequest } from './http.js'

interface VideosJob {
  readonly id: string
  /** Fields of the form; a file as its name and its bytes. */
  readonly fields: Readonly<Record<string, string | { readonly name: string; readonly bytes: Buffer }>>
  status: string
  looks: number
}

interface VideosServer extends ModelServer {
  readonly jobs: readonly VideosJob[]
  /** Ids of the jobs that a DELETE cancelled. */
  readonly cancelled: readonly string[]
}

export interface VideosOptions {
  /** Whether a job ends by itself. */
  readonly isQuick?: boolean
}

/** The beginning of an MP4, and a box of nothing. */
export const FILM = Buffer.concat([
  Buffer.from('\0\0\0\x18ftypmp42\0\0\0\0mp42isom\0\0\0\x80free', 'latin1'),
  Buffer.alloc(120),
])

export async function createVideosServer({ isQuick = true }: VideosOptions = {}): Promise<VideosServer> {
  const jobs: VideosJob[] = []
  const cancelled: string[] = []

  function describe({ id, fields, status, looks }: VideosJob): object {
    const progress = status === 'completed' ? 100 : 40 * looks
    const { model = 'wan', seconds = '4' } = fields
    return { id, object: 'video', status, progress, error: null, created_at: 1, model, seconds }
  }

  async function create(request: ServerRequest): Promise<ServerAnswer> {
    const form = await request.form()
    const fields: Record<string, VideosJob['fields'][string]> = {}
    for (const [name, value] of form)
      fields[name] =
        typeof value === 'string'
          ? value
          : { name: value.name, bytes: Buffer.from(await value.arrayBuffer()) }
    const job = { id: `video_${jobs.length + 1}`, fields, status: 'queued', looks: 0 }
    jobs.push(job)
    return { body: describe(job) }
  }

  function look(job: VideosJob): ServerAnswer {
    job.looks++
    if (job.status === 'queued') job.status = 'in_progress'
    if (isQuick && job.looks > 2) job.status = 'completed'
    return { body: describe(job) }
  }

  function remove(job: VideosJob): ServerAnswer {
    jobs.splice(jobs.indexOf(job), 1)
    cancelled.push(job.id)
    return { body: { id: job.id, deleted: true, object: 'video.deleted' } }
  }

  async function routes(request: ServerRequest): Promise<ServerAnswer> {
    const { method, path } = request
    if (method === 'POST' && path === '/v1/videos') return await create(request)
    const [, id, isContent] = /^\/v1\/videos\/([^/]+)(\/content)?$/.exec(path) ?? []
    const job = jobs.find((each) => each.id === id)
    if (job === undefined) return { status: 404, body: { error: { message: 'Video not found', code: 404 } } }
    if (method === 'DELETE') return remove(job)
    return isContent ? { body: FILM, headers: { 'content-type': 'video/mp4' } } : look(job)
  }

  const server = await createModelServer(routes)
  return Object.assign(server, { jobs, cancelled })
}
