/** Names of the local service. The command line imports this file at start-up, so it imports types alone. */
import type { Kind } from '../protocol/models.js'

export const LOCAL_MODELS: Readonly<Record<Kind, string>> = {
  video: 'rushes/preview-video',
  image: 'rushes/preview-image',
}

/** The work of one node of a service: `api` answers requests, `worker` renders runs, and `all` does both. */
export const ROLES = ['all', 'api', 'worker'] as const

export type NodeRole = (typeof ROLES)[number]
