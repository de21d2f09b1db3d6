/**
 * The models of the local service. The command line imports this file alone, so it depends on nothing that runs.
 */
import type { Kind } from '../protocol/models.js'

export const LOCAL_MODELS: Readonly<Record<Kind, string>> = {
  video: 'rushes/preview-video',
  image: 'rushes/preview-image',
}

/** What a parameter is when it is left out (CONTRACT 9): the interface does not show its own defaults. */
export const LOCAL_DEFAULTS: Readonly<Record<Kind, Readonly<Record<string, string | number | boolean>>>> = {
  video: { aspect_ratio: '16:9', resolution: '720p', duration: '5' },
  image: { aspect_ratio: '1:1', quality: 'basic' },
}
