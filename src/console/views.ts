/** What the pages show. The service fills these in; the pages know nothing of its store. */
import type { Kind } from '../protocol/models.js'
import type { LocalStatus } from '../protocol/run-state.js'

export interface ShownOutput {
  /** Path at the service. */
  readonly url: string
  readonly name: string
  readonly contentType: string
  readonly bytes: number
  /** Name for a browser that saves the file. */
  readonly savedName: string
}

export interface ShownRun {
  readonly id: string
  readonly kind: Kind
  readonly model: string
  readonly status: LocalStatus
  /** Changes with everything of the run that a row shows. */
  readonly version: string
  /** The first 1,000 characters of the prompt. */
  readonly prompt: string
  /** Width and height of its outputs, as they were asked for. */
  readonly ratio: readonly [number, number]
  /** Name of the API key. Undefined for a run without one. */
  readonly key: string | undefined
  readonly price: number
  readonly isRefunded: boolean
  readonly failure: { readonly code: string; readonly message: string } | undefined
  /** In percent; undefined if the engine reports none. */
  readonly progress: number | undefined
  /** Number of jobs before it at the server of its model. */
  readonly queuePosition: number | undefined
  readonly outputs: readonly ShownOutput[]
  /** Whether the files of its outputs were deleted. */
  readonly isRemoved: boolean
  /** Whether the service makes a small picture of the first output. */
  readonly hasThumbnail: boolean
  readonly createdAtMs: number
  readonly startedAtMs: number | undefined
  readonly finishedAtMs: number | undefined
}

/** Whether the run can still change: it has not ended, or the service is still stopping it. */
export const isUnderWay = ({ status, failure }: ShownRun): boolean =>
  status === 'queued' || status === 'processing' || failure?.code === 'canceling'

export const canCancel = ({ status }: ShownRun): boolean => status === 'queued' || status === 'processing'

export interface KeyChoice {
  readonly id: number
  readonly name: string
}
