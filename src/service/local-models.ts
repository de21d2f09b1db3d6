/** The models of the local service. The command line imports this file at start-up, so it imports types alone. */
import type { Kind } from '../protocol/models.js'

export const LOCAL_MODELS: Readonly<Record<Kind, string>> = {
  video: 'rushes/preview-video',
  image: 'rushes/preview-image',
}

/** Defaults of parameters (CONTRACT 9): the interface does not publish its own. */
export const LOCAL_DEFAULTS: Readonly<Record<Kind, Readonly<Record<string, string | number | boolean>>>> = {
  video: { aspect_ratio: '16:9', resolution: '720p', duration: '5' },
  image: { aspect_ratio: '1:1', quality: 'basic' },
}
