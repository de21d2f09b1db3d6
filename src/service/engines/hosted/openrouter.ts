/** The engine `openrouter`: videos as jobs, which nobody can cancel or find again, and images within one request. */
import { isObject } from '../../../protocol/parse.js'
import { type RunCost, readRunCost } from '../../../protocol/price.js'
import type { Engine, RenderJob } from '../engine.js'
import { acceptedJob, createJobEngine, type JobServer } from '../upstream/jobs.js'
import { renderedOnce } from '../upstream/outcome.js'
import { fetchFiles, publishOutputs, saveBase64 } from '../upstream/outputs.js'
import { errorTextOf, missingResult } from '../upstream/upstream-error.js'
import type { CreateHosted, HostedParts, HostedSettings } from './index.js'
import { sentInput } from './media.js'

/** As its documentation asks for. */
const POLL_STEPS_MS = [10_000, 15_000, 30_000]
const FRAMES = ['first_frame', 'last_frame']

export const createOpenRouterEngine: CreateHosted = (settings, parts) =>
  settings.kind === 'video'
    ? createJobEngine(createVideoServer(settings, parts), parts.clock)
    : createImageEngine(settings, parts)

/** OpenRouter charges in US dollars. */
const costOf = (usage: unknown): RunCost | undefined =>
  readRunCost({ amount: isObject(usage) ? usage.cost : undefined, currency: 'USD' })

const videoPath = (id: string): string => `videos/${encodeURIComponent(id)}`

const asImage = (url: unknown) => ({ type: 'image_url', image_url: { url } })

/** The body of a create, with frames and references in the form of the API. */
async function bodyOf(job: RenderJob, settings: HostedSettings): Promise<Readonly<Record<string, unknown>>> {
  const input = await sentInput(job, settings)
  const frames = FRAMES.filter((name) => input[name] !== undefined)
  const references = Array.isArray(input.input_references) ? input.input_references.map(asImage) : undefined
  const others = Object.entries(input).filter(([name]) => !frames.includes(name))
  return {
    model: settings.model,
    ...Object.fromEntries(others),
    ...(frames.length > 0 && {
      frame_images: frames.map((name) => ({ ...asImage(input[name]), frame_type: name })),
    }),
    ...(references && { input_references: references }),
  }
}

function createVideoServer(settings: HostedSettings, { open }: HostedParts): JobServer<number> {
  const upstream = open(settings.url)
  return {
    type: 'openrouter',
    upstream,
    pollStepsMs: POLL_STEPS_MS,
    async create(job) {
      return {
        request: async () => ({
          ...{ method: 'POST', path: 'videos', json: await bodyOf(job, settings), isQuick: true },
        }),
        accept: (answer) => acceptedJob(isObject(answer) ? answer.id : undefined),
      }
    },

    async poll({ id }, signal) {
      const answer = await upstream.value({ method: 'GET', path: videoPath(id) }, signal)
      const { status, unsigned_urls: urls, error, usage } = isObject(answer) ? answer : {}
      const cost = costOf(usage)
      if (status === 'pending') return { state: 'waiting' }
      if (status === 'in_progress') return { state: 'running' }
      if (status === 'completed')
        return { state: 'done', result: Array.isArray(urls) ? urls.length : 1, cost }
      if (!/^(failed|cancelled|expired)$/.test(`${status}`)) return { state: 'unknown' }
      return {
        ...{ state: 'failed', cost },
        message: errorTextOf({ error }) ?? `OpenRouter reports the state "${status}".`,
      }
    },

    async outputs(count, job, { id }) {
      const links = Array.from(
        { length: Math.max(count, 1) },
        (_, index) => `${videoPath(id)}/content?index=${index}`,
      )
      const paths = await fetchFiles(links, (link, maxBytes) => upstream.file(link, job, maxBytes))
      return await publishOutputs(job, paths)
    },

    // There is no request for it: the job goes on, and is charged.
    cancel: async () => 'unknown',
  }
}

function createImageEngine(settings: HostedSettings, { open, clock }: HostedParts): Engine {
  const upstream = open(settings.url)
  const engine: Engine = {
    async render(job) {
      const json = await bodyOf(job, settings)
      const answer = await upstream.json({ method: 'POST', path: 'images', json }, job)
      const { data, usage } = isObject(answer) ? answer : {}
      const cost = costOf(usage)
      if (cost !== undefined) job.onCharged?.(cost)
      if (!Array.isArray(data) || data.length === 0) throw missingResult(answer, upstream.clean)
      const paths = await fetchFiles(data, (each: unknown) =>
        saveBase64(isObject(each) ? each.b64_json : undefined, job),
      )
      return await publishOutputs(job, paths)
    },
  }
  return renderedOnce(engine, { costs: upstream.costs, endpoint: 'images', clock })
}
