/**
 * The engine `sdcpp`: the own interface of stable-diffusion.cpp's server. A run is a job in the server's queue, with typed
 * parameters in place of an element in the prompt, and without a connection that is held.
 */

import type { ParameterSchema } from '../../../protocol/models.js'
import { isObject } from '../../../protocol/parse.js'
import { mayCost } from '../../../protocol/price.js'
import type { Charge, RenderJob } from '../engine.js'
import type { EngineParts, ReadEngine } from '../read-engine.js'
import { nested, readSentParameters } from '../sent-parameters.js'
import type { EngineSettings } from '../settings.js'
import { readSizes } from '../sizes.js'
import { checkLength } from '../texts.js'
import { createUpstream, type Upstream } from '../upstream/index.js'
import { acceptedJob, createJobEngine, type JobServer, type JobState } from '../upstream/jobs.js'
import { fetchFiles, publishOutputs, saveBase64 } from '../upstream/outputs.js'
import { decodableReferencesOf } from '../upstream/request-body.js'
import { errorTextOf, missingResult } from '../upstream/upstream-error.js'

const POLL_STEPS_MS = [500, 1_000, 2_000]
/** Wan, which draws 4n+1 frames. */
const DEFAULT_FPS = 16
const FIXED_FIELDS = ['prompt', 'width', 'height', 'batch_count', 'output_format', 'video_frames', 'fps']
const REFERENCE_FIELDS = ['ref_images', 'init_image']
/** Fields of a request, by the names of parameters that are sent without an entry in `send`. */
const FIELDS: Readonly<Record<string, string>> = {
  negative_prompt: 'negative_prompt',
  steps: 'sample_params.sample_steps',
  guidance: 'sample_params.guidance.txt_cfg',
  distilled_guidance: 'sample_params.guidance.distilled_guidance',
  strength: 'strength',
}
/** The server changes other steps to these bounds without a word. Its own values are the defaults. */
const OFFERED: Readonly<Record<string, ParameterSchema>> = {
  negative_prompt: { type: 'string', description: 'What the picture must not show' },
  steps: { type: 'integer', minimum: 1, maximum: 100, description: 'Sampling steps' },
  guidance: { type: 'number', minimum: 0, maximum: 100, description: 'Guidance (cfg)' },
}

export const readSdcpp: ReadEngine = (settings, document) => {
  const { kind } = document
  const url = settings.url('url')
  const key = settings.secret('key_env')
  for (const [name, schema] of Object.entries(OFFERED)) settings.offer(name, schema)
  const properties = { ...OFFERED, ...document.input.properties }
  const offered = { ...document, input: { ...document.input, properties } }
  const sent = readSentParameters(settings, offered, [...FIXED_FIELDS, ...REFERENCE_FIELDS], FIELDS)
  const sizes = readSizes(settings, document, sent.names)
  const fps = settings.number('fps') ?? DEFAULT_FPS
  const referenceField = readReferenceField(settings, kind)
  sent.checkRest([
    ...['prompt', 'image_urls', ...sizes.parameters],
    ...(kind === 'video' ? ['duration'] : []),
  ])

  function fieldsOf({ input }: RenderJob): Readonly<Record<string, unknown>> {
    const prompt = String(input.prompt ?? '')
    const fields = sent.fieldsOf(input)
    checkLength(prompt, ...fields.map(([, value]) => value))
    const seconds = Number(input.duration)
    const film = {
      fps,
      ...(seconds > 0 && { video_frames: Math.round(seconds * fps) + 1 }),
    }
    const form = kind === 'video' ? film : { output_format: 'png', batch_count: 1 }
    return nested([...Object.entries({ prompt, ...sizes.sizeOf(input), ...form }), ...fields])
  }

  // Only a document without problems is rendered, and it has a URL.
  return (parts) => {
    const base = new URL(`${url}`.replace(/\/(v1\/?)?$/, '/'))
    const upstream = createUpstream({ url: base, key, hasCost: mayCost(document), parts })
    const mode = kind === 'video' ? 'vid_gen' : 'img_gen'
    const server = createSdcppServer(upstream, parts, { mode, referenceField, fieldsOf })
    return {
      ...createJobEngine(server, parts.clock),
      close: () => upstream.close(),
    }
  }
}

/** The only field for the reference images, if the document names one. A video has a first image, and may have a last one. */
function readReferenceField(settings: EngineSettings, kind: string): string | undefined {
  const field = settings.text('references')
  if (field !== undefined && (kind === 'video' || !REFERENCE_FIELDS.includes(field)))
    settings.report(
      ['references'],
      `must be one of ${REFERENCE_FIELDS.join(', ')}, for a model of kind image`,
    )
  return field
}

interface SdcppModel {
  readonly mode: 'img_gen' | 'vid_gen'
  readonly referenceField: string | undefined
  /** Returns the request without the references. */
  fieldsOf(job: RenderJob): Readonly<Record<string, unknown>>
}

function createSdcppServer(
  upstream: Upstream,
  { preview }: EngineParts,
  { mode, referenceField, fieldsOf }: SdcppModel,
): JobServer<undefined> {
  const isFilm = mode === 'vid_gen'
  const max = isFilm ? 2 : referenceField === 'init_image' ? 1 : Number.POSITIVE_INFINITY
  return {
    type: 'sdcpp',
    upstream,
    pollStepsMs: POLL_STEPS_MS,
    async create(job) {
      const count = job.references.length
      if (count > max)
        throw new Error(
          `This model takes at most ${max} reference image${max === 1 ? '' : 's'}; the run has ${count}.`,
        )
      const fields = fieldsOf(job)
      const references = await decodableReferencesOf(job, preview)
      const [first, last] = references
      // A model that edits reads the list, and one that does not reads the first image, or would ignore the references. The
      // server does the same with the images of `/v1/images/edits`.
      const images = {
        ...(first && referenceField !== 'ref_images' && { init_image: first }),
        ...(first && referenceField !== 'init_image' && !isFilm && { ref_images: references }),
        ...(isFilm && last && { end_image: last }),
      }
      return {
        async request() {
          const format = isFilm && { output_format: await filmFormat(upstream, job.signal) }
          const json = { ...fields, ...images, ...format }
          return { method: 'POST', path: `sdcpp/v1/${mode}`, json, isQuick: true }
        },
        accept: (answer) => acceptedJob(isObject(answer) ? answer.id : undefined),
      }
    },

    async poll({ id }, signal) {
      return stateOf(await upstream.value({ method: 'GET', path: pathOf(id) }, signal), id)
    },

    async outputs(_, job, { id }) {
      const answer = await upstream.value({ method: 'GET', path: pathOf(id) }, job.signal)
      const result = isObject(answer) && isObject(answer.result) ? answer.result : {}
      // A model may draw a picture in several layers.
      const images = Array.isArray(result.images) ? result.images : [result]
      const pictures = images.flatMap((image) => (isObject(image) && image.b64_json) || [])
      if (pictures.length === 0) throw missingResult(answer, upstream.clean)
      return await publishOutputs(job, await fetchFiles(pictures, (base64) => saveBase64(base64, job)))
    },

    /** The server cannot stop a job that it draws, and answers 409. */
    async cancel({ id }, signal): Promise<Charge> {
      const request = { method: 'POST', path: `${pathOf(id)}/cancel`, isQuick: true, once: true } as const
      const answer = await upstream.value(request, signal)
      return isObject(answer) && answer.status === 'cancelled' ? 'not charged' : 'unknown'
    },
  }
}

/** WebM if the server was built with it. Every server has AVI, none has MP4. */
async function filmFormat(upstream: Upstream, signal: AbortSignal): Promise<string> {
  const request = { method: 'GET', path: 'sdcpp/v1/capabilities', isQuick: true } as const
  const answer = await upstream.value(request, signal)
  const { output_formats_by_mode: byMode } = isObject(answer) ? answer : {}
  const formats = isObject(byMode) ? byMode.vid_gen : undefined
  return Array.isArray(formats) && !formats.includes('webm') ? 'avi' : 'webm'
}

const pathOf = (id: string): string => `sdcpp/v1/jobs/${encodeURIComponent(id)}`

/** An answer about another job tells nothing. */
function stateOf(answer: unknown, id: string): JobState<undefined> {
  if (!isObject(answer) || (answer.id ?? id) !== id) return { state: 'unknown' }
  const { status, queue_position: position } = answer
  if (status === 'completed') return { state: 'done', result: undefined }
  if (status === 'cancelled') return { state: 'failed', message: 'The job was canceled at the server.' }
  if (status === 'failed') return { state: 'failed', message: errorTextOf(answer) ?? '' }
  // Counted from 1.
  if (status === 'queued')
    return { state: 'waiting', position: Number(position) > 0 ? Number(position) - 1 : undefined }
  return { state: status === 'generating' ? 'running' : 'unknown' }
}
