/** The models of the local service. The command line imports this file at start-up, so it imports types alone. */
import type { Kind } from '../protocol/models.js'

export const LOCAL_MODELS: Readonly<Record<Kind, string>> = {
  video: 'rushes/preview-video',
  image: 'rushes/preview-image',
}
