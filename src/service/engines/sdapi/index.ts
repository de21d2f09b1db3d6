/**
 * Models behind the interface of AUTOMATIC1111's web UI (`/sdapi/v1`), which Forge, SD.Next, KoboldCpp and others
 * speak. It cannot cancel one run: its interrupt stops the run of any client, so this engine never sends it.
 */
import type { RenderJob } from '../engine.js'
import { checkLength, nested } from '../sent-parameters.js'
import type { ReadEngine } from '../settings.js'
import { readServer } from '../upstream/index.js'
import { createOnceEngine } from '../upstream/outcome.js'
import { publishOutputs, saveBase64 } from '../upstream/outputs.js'
import { checkDecodable, referencesOf } from '../upstream/request-body.js'
import { missingResult } from '../upstream/upstream-error.js'

const FIXED_FIELDS = ['prompt', 'batch_size', 'n_iter', 'init_images']

export const readSdapi: ReadEngine = (settings, document) => {
  const model = settings.text('model')
  const { key, sent, sizes, open } = readServer(settings, document, { kind: 'image', fixed: FIXED_FIELDS })

  async function requestOf(job: RenderJob) {
    const references = await referencesOf(job)
    checkDecodable(references)
    const prompt = String(job.input.prompt ?? '')
    const fields = sent.fieldsOf(job.input)
    // Two of the servers contain stable-diffusion.cpp, which exits at a long text.
    checkLength(prompt, ...fields.map(([, value]) => value))
    const json = nested([
      ...Object.entries({ prompt, ...sizes.sizeOf(job.input), batch_size: 1, n_iter: 1 }),
      ...(model === undefined ? [] : [['override_settings.sd_model_checkpoint', model] as const]),
      ...fields,
      ...(references.length === 0 ? [] : [['init_images', references] as const]),
    ])
    return {
      method: 'POST',
      path: `sdapi/v1/${references.length === 0 ? 'txt2img' : 'img2img'}`,
      json,
    } as const
  }

  return (parts) => {
    const upstream = open(parts, { scheme: key?.includes(':') ? 'Basic' : 'Bearer' })
    return createOnceEngine(upstream, {
      endpoint: 'sdapi',
      clock: parts.clock,
      send: async (job) => await upstream.render(await requestOf(job), job),
      async publish(answer, job) {
        const [image] = Array.isArray(answer.images) ? answer.images : []
        // KoboldCpp reports a failure as an empty picture.
        if (typeof image !== 'string' || image === '') throw missingResult(answer, upstream.clean)
        return await publishOutputs(job, [await saveBase64(image, job)])
      },
    })
  }
}
