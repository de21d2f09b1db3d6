/**
 * The engine `sdcpp`: the own interface of stable-diffusion.cpp's server. A run is a job in the server's queue, with typed
 * parameters in place of an element in the prompt, and without a connection that is held.
 */
import { isObject } from '../../../protocol/parse.js'
import { checkLength, nested } from '../sent-parameters.js'
import type { ReadEngine } from '../settings.js'
import { type Answer, readServer, type Upstream } from '../upstream/index.js'
import { acceptedJob, createJobEngine, type JobServer, type JobState } from '../upstream/jobs.js'
import { fetchFiles, publishOutputs, saveBase64 } from '../upstream/outputs.js'
import { checkDecodable, referencesOf } from '../upstream/request-body.js'
import { errorTextOf, missingResult } from '../upstream/upstream-error.js'

const POLL_STEPS_MS = [500, 1_000, 2_000]
const FIXED_FIELDS = ['prompt', 'width', 'height', 'batch_count', 'output_format', 'ref_images', 'init_image']

export const readSdcpp: ReadEngine = (settings, document) => {
  const { url, sent, sizes, open } = readServer(settings, document, {
    kind: 'image',
    fixed: FIXED_FIELDS,
  })

  const createRequest: JobServer['createRequest'] = async (job) => {
    const references = await referencesOf(job)
    checkDecodable(references)
    const prompt = String(job.input.prompt ?? '')
    const fields = sent.fieldsOf(job.input)
    checkLength(prompt, ...fields.map(([, value]) => value))
    const { width, height } = sizes.sizeOf(job.input)
    const [first] = references
    const json = {
      ...nested([
        ...Object.entries({ prompt, width, height, output_format: 'png', batch_count: 1 }),
        ...fields,
      ]),
      // A model that edits reads the list, and one that does not reads the first image, or would ignore the references.
      // The server does the same with the images of `/v1/images/edits`.
      ...(first && { init_image: first, ref_images: references }),
    }
    return { method: 'POST', path: 'sdcpp/v1/img_gen', json }
  }

  return (parts) => {
    const base = new URL(url.href.replace(/\/(v1\/?)?$/, '/'))
    return createJobEngine(createSdcppServer(open(parts, { url: base }), createRequest), parts.clock)
  }
}

function createSdcppServer(upstream: Upstream, createRequest: JobServer['createRequest']): JobServer {
  return {
    type: 'sdcpp',
    upstream,
    pollStepsMs: POLL_STEPS_MS,
    createRequest,
    accept: (answer) => acceptedJob(answer.id),

    async poll({ id }, signal) {
      return stateOf(await upstream.get(pathOf(id), signal), id)
    },

    async outputs(answer, job) {
      const { images } = isObject(answer.result) ? answer.result : {}
      // A model may draw a picture in several layers.
      const pictures = Array.isArray(images)
        ? images.flatMap((image) => (isObject(image) && image.b64_json) || [])
        : []
      if (pictures.length === 0) throw missingResult(answer, upstream.clean)
      return await publishOutputs(job, await fetchFiles(pictures, (base64) => saveBase64(base64, job)))
    },

    /** The server cannot stop a job that it draws, and answers 409. */
    async cancel({ id }, signal) {
      const answer = await upstream.value({ method: 'POST', path: `${pathOf(id)}/cancel` }, signal)
      return answer.status === 'cancelled' ? 'not charged' : 'unknown'
    },
  }
}

const pathOf = (id: string): string => `sdcpp/v1/jobs/${encodeURIComponent(id)}`

/** An answer about another job tells nothing. */
function stateOf(answer: Answer, id: string): JobState {
  if ((answer.id ?? id) !== id) return { state: 'unknown' }
  const { status, queue_position: position } = answer
  if (status === 'completed') return { state: 'done', answer }
  if (status === 'cancelled') return { state: 'failed', message: 'The job was canceled at the server.' }
  if (status === 'failed') return { state: 'failed', message: errorTextOf(answer) ?? '' }
  // Counted from 1.
  if (status === 'queued')
    return { state: 'waiting', position: Number(position) > 0 ? Number(position) - 1 : undefined }
  return { state: status === 'generating' ? 'running' : 'unknown' }
}
