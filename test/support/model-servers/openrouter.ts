/** The videos and images of OpenRouter, as its documentation of 2026 describes them. */
import { ONE_PIXEL_PNG } from '../engines.js'
import { tinyVideo } from '../tiny-video.js'
import { SECRET } from './fal.js'
import { createModelServer, type ModelServer, type ServerAnswer, type ServerRequest } from './http.js'

export interface OpenRouterOptions {
  /** States of a video, one for each poll; the last one stays. */
  readonly states?: readonly string[]
  readonly error?: string
  /** Number of outputs that a video announces. */
  readonly outputs?: number
}

interface OpenRouterServer extends ModelServer {
  /** Accepted requests, in order. Each one costs money. */
  readonly bodies: Readonly<Record<string, unknown>>[]
}

const PRICE = { billable: 'output_image', unit: 'image', cost_usd: 0.04 }

const MODELS = {
  videos: [
    {
      ...{ id: 'acme/film', name: 'Film', description: 'Films by text.' },
      supported_resolutions: ['720p', '1080p'],
      supported_aspect_ratios: ['16:9', '9:16'],
      supported_sizes: null,
      supported_durations: [4, 8],
      supported_frame_images: ['first_frame', 'last_frame'],
      generate_audio: true,
      seed: null,
      pricing_skus: { 'per-video-second': '0.40', 'per-video-second-1080p': '0.60' },
      allowed_passthrough_parameters: [],
    },
  ],
  images: [
    {
      ...{ id: 'acme/still', name: 'Still', description: 'Draws.' },
      architecture: { input_modalities: ['text', 'image'], output_modalities: ['image'] },
      supported_parameters: {
        resolution: { type: 'enum', values: ['1K', '2K'] },
        n: { type: 'range', min: 1, max: 4 },
        output_compression: { type: 'range', min: 0, max: 100 },
        seed: { type: 'boolean' },
      },
    },
  ],
}

export async function createOpenRouterServer({
  states = ['pending', 'in_progress', 'completed'],
  error,
  outputs = 1,
}: OpenRouterOptions = {}): Promise<OpenRouterServer> {
  const bodies: OpenRouterServer['bodies'] = []
  const video = await tinyVideo(4)
  const polls = new Map<string, number>()

  function routes({ method, path, query, headers, json }: ServerRequest): ServerAnswer {
    if (path === '/images/models/acme/still/endpoints')
      return { body: { id: 'acme/still', endpoints: [{ provider_name: 'Acme', pricing: [PRICE] }] } }
    const [, list] = /^\/(videos|images)\/models$/.exec(path) ?? []
    if (list !== undefined) return { body: { data: MODELS[list as keyof typeof MODELS] } }
    if (headers.authorization !== `Bearer ${SECRET}`)
      return { status: 401, body: { error: { code: 401, message: 'No auth credentials found' } } }
    if (method === 'POST') {
      bodies.push(json())
      const id = `job-${bodies.length}`
      if (path === '/videos')
        return { status: 202, body: { id, polling_url: `/api/v1/videos/${id}`, status: 'pending' } }
      const data = [{ b64_json: ONE_PIXEL_PNG.toString('base64'), media_type: 'image/png' }]
      return { body: { created: 1, data, usage: { cost: 0.04 } } }
    }
    const [, id = '', content] = /^\/videos\/([^/]+)(\/content)?$/.exec(path) ?? []
    if (!bodies[Number(id.slice(4)) - 1])
      return { status: 404, body: { error: { message: 'Job not found' } } }
    if (content !== undefined)
      return Number(query.get('index')) < outputs
        ? { body: video, headers: { 'content-type': 'video/mp4' } }
        : { status: 404, body: { error: { message: 'no such output' } } }
    const number = (polls.get(id) ?? 0) + 1
    polls.set(id, number)
    const status = states[Math.min(number, states.length) - 1] ?? ''
    return {
      body: {
        ...{ id, status, polling_url: `/api/v1/videos/${id}` },
        ...(status === 'completed' && { unsigned_urls: Array(outputs).fill('') }),
        ...(/^(completed|failed)$/.test(status) && { usage: { cost: 1.6, is_byok: false } }),
        ...(error !== undefined && { error }),
      },
    }
  }

  return Object.assign(await createModelServer(routes), { bodies })
}
