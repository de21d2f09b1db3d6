/** The messages between the service and a renderer process. */
import type { RenderedFile, RenderJob } from './engine.js'

/** A job without its functions: to stop it, the service ends the process. */
export type RemoteJob = Omit<RenderJob, 'signal' | 'onProgress'>

export type ToRenderer = { readonly type: 'render'; readonly job: RemoteJob }

export type FromRenderer =
  | { readonly type: 'progress'; readonly fraction: number }
  | { readonly type: 'done'; readonly files: readonly RenderedFile[] }
  | { readonly type: 'failed'; readonly message: string }
