/** The engine `openrouter`: videos as jobs, which nobody can cancel or find again, and images within one request. */
import { isObject } from '../../../protocol/parse.js'
import type { Engine, RenderJob } from '../engine.js'
import { acceptedJob, createJobEngine, type JobServer } from '../upstream/jobs.js'
import { createOnceEngine } from '../upstream/outcome.js'
import { fetchFiles, publishOutputs, saveBase64 } from '../upstream/outputs.js'
import { errorTextOf, missingResult } from '../upstream/upstream-error.js'
import { type HostedModel, sentInput } from './index.js'

/** As its documentation asks for. */
const POLL_STEPS_MS = [10_000, 15_000, 30_000]
const FRAMES = ['first_frame', 'last_frame']

export const createOpenRouterEngine = (model: HostedModel): Engine =>
  model.kind === 'video' ? createJobEngine(createVideoServer(model), model.clock) : createImageEngine(model)

const videoPath = (id: string): string => `videos/${encodeURIComponent(id)}`

const asImage = (url: unknown) => ({ type: 'image_url', image_url: { url } })

/** The body of a create, with frames and references in the form of the API. */
async function bodyOf(job: RenderJob, model: HostedModel): Promise<Readonly<Record<string, unknown>>> {
  const { input_references: references, ...input } = await sentInput(job, model)
  const frames = FRAMES.filter((name) => input[name] !== undefined)
  const others = Object.entries(input).filter(([name]) => !frames.includes(name))
  return {
    model: model.model,
    ...Object.fromEntries(others),
    ...(frames.length > 0 && {
      frame_images: frames.map((name) => ({ ...asImage(input[name]), frame_type: name })),
    }),
    ...(Array.isArray(references) && { input_references: references.map(asImage) }),
  }
}

function createVideoServer(model: HostedModel): JobServer {
  const { upstream } = model
  return {
    type: 'openrouter',
    upstream,
    pollStepsMs: POLL_STEPS_MS,
    async createRequest(job) {
      return { method: 'POST', path: 'videos', json: await bodyOf(job, model) }
    },
    accept: (answer) => acceptedJob(answer.id),

    async poll({ id }, signal) {
      const answer = await upstream.get(videoPath(id), signal)
      const { status, error } = answer
      if (status === 'pending') return { state: 'waiting' }
      if (status === 'in_progress') return { state: 'running' }
      if (status === 'completed') return { state: 'done', answer }
      if (!/^(failed|cancelled|expired)$/.test(`${status}`)) return { state: 'unknown' }
      const message = errorTextOf({ error }) ?? `OpenRouter reports the state "${status}".`
      return { state: 'failed', message }
    },

    async outputs({ unsigned_urls: urls }, job, { id }) {
      const files = Array.isArray(urls) && urls.length > 0 ? urls : ['the only one']
      const links = files.map((_, index) => `${videoPath(id)}/content?index=${index}`)
      const paths = await fetchFiles(links, (link, maxBytes) => upstream.download(link, job, maxBytes))
      return await publishOutputs(job, paths)
    },

    // There is no request for it: the job goes on, and is charged.
    cancel: async () => 'unknown',
  }
}

function createImageEngine(model: HostedModel): Engine {
  const { upstream, clock } = model
  return createOnceEngine(upstream, {
    endpoint: 'images',
    clock,
    send: async (job) =>
      await upstream.render({ method: 'POST', path: 'images', json: await bodyOf(job, model) }, job),
    async publish(answer, job) {
      const { data } = answer
      if (!Array.isArray(data) || data.length === 0) throw missingResult(answer, upstream.clean)
      const paths = await fetchFiles(data, (each: unknown) =>
        saveBase64(isObject(each) ? each.b64_json : undefined, job),
      )
      return await publishOutputs(job, paths)
    },
  })
}
