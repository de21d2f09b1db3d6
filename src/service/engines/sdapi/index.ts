/**
 * Models behind the interface of AUTOMATIC1111's web UI (`/sdapi/v1`), which Forge, SD.Next, KoboldCpp and others
 * speak. It cannot cancel one run: its interrupt stops the run of any client, so this engine never sends it.
 */

import { isObject } from '../../../protocol/parse.js'
import { mayCost } from '../../../protocol/price.js'
import type { Engine } from '../engine.js'
import type { ReadEngine } from '../read-engine.js'
import { nested, readSentParameters } from '../sent-parameters.js'
import { readSizes } from '../sizes.js'
import { checkLength } from '../texts.js'
import { createUpstream } from '../upstream/index.js'
import { renderedOnce } from '../upstream/outcome.js'
import { publishOutputs, saveBase64 } from '../upstream/outputs.js'
import { decodableReferencesOf } from '../upstream/request-body.js'
import { missingResult } from '../upstream/upstream-error.js'

const FIXED_FIELDS = ['prompt', 'batch_size', 'n_iter', 'init_images']

export const readSdapi: ReadEngine = (settings, document) => {
  const url = settings.url('url')
  const model = settings.text('model')
  const key = settings.secret('key_env')
  const sent = readSentParameters(settings, document, FIXED_FIELDS)
  const sizes = readSizes(settings, document, sent.names)
  sent.checkRest(['prompt', 'image_urls', ...sizes.parameters])
  if (document.kind !== 'image') settings.report(['type'], 'sdapi is only for models of kind image')
  return (parts) => {
    const scheme = key?.includes(':') ? 'basic' : 'bearer'
    // Only a document without problems is rendered, and it has a URL.
    const upstream = createUpstream({
      url: url as URL,
      key,
      scheme,
      hasCost: mayCost(document),
      parts,
    })
    const engine: Engine = {
      async render(job) {
        const references = await decodableReferencesOf(job, parts.preview)
        const prompt = String(job.input.prompt ?? '')
        const fields = sent.fieldsOf(job.input)
        // Two of the servers have the program that ends at a long text.
        checkLength(prompt, ...fields.map(([, value]) => value))
        const json = nested([
          ['prompt', prompt],
          ...Object.entries(sizes.sizeOf(job.input)),
          ['batch_size', 1],
          ['n_iter', 1],
          ...(model === undefined ? [] : [['override_settings.sd_model_checkpoint', model] as const]),
          ...fields,
          ...(references.length === 0 ? [] : [['init_images', references] as const]),
        ])
        const path = `sdapi/v1/${references.length === 0 ? 'txt2img' : 'img2img'}`
        const answer = await upstream.json({ method: 'POST', path, json }, job)
        const images = isObject(answer) && Array.isArray(answer.images) ? answer.images : []
        const [image] = images
        // KoboldCpp reports a failure as an empty picture.
        if (typeof image !== 'string' || image === '') throw missingResult(answer, upstream.clean)
        return await publishOutputs(job, [await saveBase64(image, job)])
      },
      close: () => upstream.close(),
    }
    return renderedOnce(engine, { costs: upstream.costs, endpoint: 'sdapi', clock: parts.clock })
  }
}
