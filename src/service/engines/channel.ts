/** The messages between the service and a renderer process. */
import type { RenderedFile, RenderJob } from './engine.js'

/** A job without its functions: to stop it, the service ends the process. */
export type RemoteJob = Omit<RenderJob, 'signal' | 'onProgress'>

export type ToRenderer = { readonly type: 'render'; readonly job: RemoteJob }

export type FromRenderer =
  | { readonly type: 'progress'; readonly fraction: number }
  | (Outcome & { readonly isReusable: boolean })
  /** It takes more memory than it may; the service ends it. */
  | { readonly type: 'too-much-memory'; readonly maxBytes: number }

/** Of a job; `isReusable` says whether the process may be given another one. */
export type Outcome =
  | { readonly type: 'done'; readonly files: readonly RenderedFile[] }
  | { readonly type: 'failed'; readonly message: string }
