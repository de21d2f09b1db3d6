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
