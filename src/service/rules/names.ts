/** Names of the local service. Imports only types, since the CLI loads this file at startup. */
import type { Kind } from '../../protocol/models.js'

export const LOCAL_MODELS: Readonly<Record<Kind, string>> = {
  video: 'rushes/preview-video',
  image: 'rushes/preview-image',
}

/** Roles of a node: `api` answers requests, `worker` renders runs, and `all` does both. */
export const ROLES = ['all', 'api', 'worker'] as const

export type NodeRole = (typeof ROLES)[number]
