/** Documents of models with every type of parameter, for the form of a new run. */
import { readModelDocument } from '../../src/protocol/model-document.js'
import type { ModelDocument } from '../../src/protocol/models.js'

const documentOf = (value: unknown): ModelDocument => {
  const document = readModelDocument(value, (path, message) => {
    throw new Error(`${path.join('.')} ${message}`)
  })
  if (document === undefined) throw new Error('no document')
  return document
}

/** Every type of parameter, and no price. */
export const FLUX = documentOf({
  ...{ name: 'acme/flux', kind: 'image' },
  input: {
    quality: false,
    steps: { type: 'integer', minimum: 1, maximum: 50, default: 20, description: 'Denoising steps' },
    'cfg.scale': { type: 'number' },
    lora: { type: 'string', maxLength: 5, required: true, description: 'Name of the LoRA.' },
    tiling: { type: 'boolean', default: false },
    sampler: { type: 'string', enum: Array.from({ length: 13 }, (_, index) => `s${index + 1}`) },
    words: { type: 'array', items: { type: 'string' }, maxItems: 2, default: ['a', 'b'] },
    control: { type: 'object', default: { weight: 1 } },
  },
})

/** No prompt, and a parameter that is required although it has a default. */
export const UPSCALE = documentOf({
  ...{ name: 'acme/upscale', kind: 'image', price: { run: 0.5, factors: { scale: { 4: 3 } } } },
  input: {
    type: 'object',
    description: 'Enlarges an image',
    required: ['image_urls', 'scale'],
    properties: {
      image_urls: { type: 'array', items: { type: 'string' }, maxItems: 1 },
      scale: { type: 'integer', enum: [2, 4], default: 2 },
    },
  },
})
