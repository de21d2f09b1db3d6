/** What the service and a renderer in a process of its own say to each other. */
import type { RenderedFile, RenderJob } from './engine.js'

/** A job as it travels: the signal stays behind, since stopping a job means ending the process. */
export type RemoteJob = Omit<RenderJob, 'signal' | 'onProgress'>

export type ToRenderer = { readonly type: 'render'; readonly job: RemoteJob }

export type FromRenderer =
  | { readonly type: 'progress'; readonly fraction: number }
  | { readonly type: 'done'; readonly files: readonly RenderedFile[] }
  | { readonly type: 'failed'; readonly message: string }
