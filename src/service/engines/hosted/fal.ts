/** The engine `fal`: the queue of fal. A failed job is `COMPLETED` there too: its status or its result has the error. */
import { isObject } from '../../../protocol/parse.js'
import type { Engine, JobHandle, RenderJob } from '../engine.js'
import type { Upstream } from '../upstream/index.js'
import { acceptedJob, createJobEngine, type JobServer } from '../upstream/jobs.js'
import type { SourceFile } from '../upstream/request-body.js'
import { errorTextOf, JobEnded, UpstreamError } from '../upstream/upstream-error.js'
import { type HostedModel, publishResult, type SentFiles, sentInput } from './index.js'

const POLL_STEPS_MS = [1_000, 1_000, 2_000, 3_000, 5_000]
const MAX_DATA_BYTES = 16_384

export const createFalEngine = (model: HostedModel): Engine =>
  createJobEngine(createFalServer(model), model.clock)

function createFalServer(model: HostedModel): JobServer {
  const { upstream, uploads, model: endpoint } = model
  const sent: SentFiles = {
    maxDataBytes: MAX_DATA_BYTES,
    upload: (file, signal) => uploadFile(uploads, file, signal),
  }
  const pathOf = ({ id, urls }: JobHandle, name: 'status' | 'response' | 'cancel'): string =>
    urls?.[name] ??
    `${requestsPath(endpoint)}/${encodeURIComponent(id)}${name === 'response' ? '' : `/${name}`}`

  return {
    type: 'fal',
    upstream,
    pollStepsMs: POLL_STEPS_MS,
    async createRequest(job) {
      return { method: 'POST', path: endpoint, json: await sentInput(job, model, sent) }
    },
    accept(answer) {
      const { request_id, status_url, response_url, cancel_url } = answer
      return acceptedJob(request_id, { status: status_url, response: response_url, cancel: cancel_url })
    },

    async poll(handle, signal) {
      const answer = await upstream.get(pathOf(handle, 'status'), signal)
      const { status, queue_position, error, error_type } = answer
      const position = typeof queue_position === 'number' ? queue_position : undefined
      if (status === 'IN_QUEUE') return { state: 'waiting', position }
      if (status === 'IN_PROGRESS') return { state: 'running' }
      if (status !== 'COMPLETED') return { state: 'unknown' }
      if (!error && !error_type) return { state: 'done', answer }
      return { state: 'failed', message: errorTextOf({ error }) ?? `${error_type ?? ''}` }
    },

    async outputs(_, job, handle) {
      const answer = await fetchResult(upstream, pathOf(handle, 'response'), job)
      return await publishResult(answer, withoutBlackPictures(answer, job), upstream, job)
    },

    async cancel(handle, signal) {
      const request = { method: 'PUT', path: pathOf(handle, 'cancel') } as const
      try {
        ;(await upstream.send(request, signal)).discard()
      } catch (error) {
        // 400: ALREADY_COMPLETED.
        if (error instanceof UpstreamError && error.status === 400) return 'succeeded'
        throw error
      }
      // A job that runs may still end, and be charged.
      return 'unknown'
    },
  }
}

/** `fal-ai/flux/requests` for `fal-ai/flux/dev`. */
function requestsPath(model: string): string {
  const steps = model.split('/')
  return [...steps.slice(0, /^(workflows|comfy)$/.test(steps[0] ?? '') ? 3 : 2), 'requests'].join('/')
}

/** Rejects with status 409 for a result that is not there yet. */
async function fetchResult(upstream: Upstream, path: string, { signal }: RenderJob): Promise<unknown> {
  const tooEarly = () => new UpstreamError('The result is not ready.', { status: 409 })
  const answer = await upstream.get(path, signal).catch((error: unknown) => {
    if (!(error instanceof UpstreamError)) throw error
    if (error.status === 400 && /in progress/i.test(error.message)) throw tooEarly()
    throw isOwnRefusal(error) ? new JobEnded(error.message, error) : error
  })
  if (/^IN_(QUEUE|PROGRESS)$/.test(`${answer.status}`)) throw tooEarly()
  return answer
}

/** Whether the result of a failed job is its error, such as a 422. */
const isOwnRefusal = ({ status = 0, answer }: UpstreamError): boolean =>
  isObject(answer) &&
  status >= 400 &&
  status < 500 &&
  ![401, 402, 403, 404, 408, 409, 410, 425, 429].includes(status)

/** Removes the black pictures of the safety filter. Throws if nothing else is left. */
function withoutBlackPictures(result: unknown, { input }: RenderJob): unknown {
  if (!isObject(result) || input.enable_safety_checker === false) return result
  const { has_nsfw_concepts: flags, images } = result
  if (!Array.isArray(flags) || !flags.includes(true)) return result
  if (flags.every((flag) => flag === true))
    throw new JobEnded("fal's safety filter removed the picture (has_nsfw_concepts). Change the prompt.")
  return Array.isArray(images) ? { ...result, images: images.filter((_, at) => flags[at] !== true) } : result
}

/** Resolves with the URL of the file. Its storage gets no key. */
async function uploadFile(files: Upstream, file: SourceFile, signal: AbortSignal): Promise<string> {
  const json = { content_type: file.contentType, file_name: file.name }
  const path = 'storage/upload/initiate?storage_type=fal-cdn-v3'
  const answer = await files.value({ method: 'POST', path, json }, signal)
  const { upload_url: target, file_url: url } = answer
  if (typeof target !== 'string' || typeof url !== 'string')
    throw new UpstreamError('fal did not accept the upload of a reference image.')
  await files.upload(target, file, signal)
  return url
}
