/** Workflows as ComfyUI exports them for the API: the default one, and one for films. */

export const IMAGE_WORKFLOW = {
  3: {
    class_type: 'KSampler',
    inputs: {
      seed: 1,
      steps: 20,
      cfg: 8,
      sampler_name: 'euler',
      model: ['4', 0],
      positive: ['6', 0],
      negative: ['7', 0],
      latent_image: ['5', 0],
    },
  },
  4: { class_type: 'CheckpointLoaderSimple', inputs: { ckpt_name: 'sdxl.safetensors' } },
  5: { class_type: 'EmptyLatentImage', inputs: { width: 512, height: 512, batch_size: 1 } },
  6: { class_type: 'CLIPTextEncode', inputs: { text: 'a cat', clip: ['4', 1] } },
  7: { class_type: 'CLIPTextEncode', inputs: { text: 'blurry', clip: ['4', 1] } },
  8: { class_type: 'VAEDecode', inputs: { samples: ['3', 0], vae: ['4', 2] } },
  9: { class_type: 'SaveImage', inputs: { images: ['8', 0], filename_prefix: 'ComfyUI' } },
}

export const VIDEO_WORKFLOW = {
  ...IMAGE_WORKFLOW,
  5: {
    class_type: 'EmptyHunyuanLatentVideo',
    inputs: { width: 832, height: 480, length: 33, batch_size: 1 },
  },
  9: { class_type: 'CreateVideo', inputs: { images: ['8', 0], fps: 16 } },
  10: { class_type: 'SaveVideo', inputs: { video: ['9', 0], filename_prefix: 'video/ComfyUI' } },
}

/** Flux: a guider in place of the conditions, a node for the noise, and a prompt in a node of its own. */
export const FLUX_WORKFLOW = {
  13: {
    class_type: 'SamplerCustomAdvanced',
    inputs: { noise: ['25', 0], guider: ['22', 0], latent_image: ['27', 0] },
  },
  22: { class_type: 'BasicGuider', inputs: { model: ['12', 0], conditioning: ['26', 0] } },
  25: { class_type: 'RandomNoise', inputs: { noise_seed: 7 } },
  26: { class_type: 'FluxGuidance', inputs: { guidance: 3.5, conditioning: ['6', 0] } },
  27: {
    class_type: 'EmptySD3LatentImage',
    inputs: { width: ['30', 0], height: 1024, batch_size: 1 },
  },
  6: { class_type: 'CLIPTextEncode', inputs: { text: ['31', 0], clip: ['11', 0] } },
  30: { class_type: 'PrimitiveInt', inputs: { value: 1024 } },
  31: { class_type: 'PrimitiveStringMultiline', inputs: { value: 'a cat' } },
}
