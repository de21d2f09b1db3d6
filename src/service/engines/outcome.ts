/**
 * Runs that a provider may have accepted although no answer says so. A server that costs money gets a run once: the
 * intent is stored first, and a create without a clear answer is given to an operator, never sent again.
 */
import { randomUUID } from 'node:crypto'
import { messageOf } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import { HttpFailure } from '../../host/http.js'
import { isObject } from '../../protocol/parse.js'
import {
  type Engine,
  JobDetached,
  type JobHandle,
  type JobIntent,
  OutcomeUnknown,
  RendererCrashed,
  RunCanceled,
} from './engine.js'
import { BrokenTransfer, UpstreamError } from './upstream/upstream-error.js'

export const newIntent = (endpoint: string, clock: Clock): JobIntent => ({
  ...{ id: randomUUID(), sentAtMs: clock.now(), endpoint },
})

/** Time in which a request without an answer reaches the queue of the server. */
export const SETTLE_MS = 1_000

/**
 * Whether the server may have accepted the request. If it costs nothing, its errors are refusals, except those of a
 * proxy that waited too long.
 */
export function isUncertain(error: UpstreamError, costs: boolean): boolean {
  const { cause, status = 0, answer } = error
  if (cause instanceof HttpFailure) return cause.sent
  if (error instanceof BrokenTransfer || (status >= 200 && status <= 299)) return true
  if (!costs) return status >= 500 && status !== 503
  if (status === 429 || /^30[1278]$/.test(`${status}`)) return false
  return status !== 0 && !(status >= 400 && status <= 499 && status !== 408 && isObject(answer))
}

/**
 * Wraps an engine that renders within one request, or one command. If that costs money, a run whose request was sent is
 * never sent again.
 */
export const renderedOnce = (engine: Engine, { costs, endpoint, clock }: RenderedOnce): Engine => ({
  ...engine,
  async render(job) {
    const { intent, handle } = job.stored ?? {}
    if (intent !== undefined) throw new OutcomeUnknown('The service stopped before it ended.')
    // A job of the engine that the model had before, or that an operator has named.
    if (handle !== undefined && (costs || mayBePaid(handle)))
      throw new OutcomeUnknown('Its engine has no jobs that can be followed.')
    if (!costs) return await engine.render(job)
    let isSent = false
    const onSend = async () => {
      await job.save?.({ intent: newIntent(endpoint, clock) })
      isSent = true
    }
    const onRefused = async () => {
      isSent = false
      await job.save?.({})
    }
    try {
      return await engine.render({ ...job, onSend, onRefused })
    } catch (error) {
      const { aborted, reason } = job.signal
      if (aborted && (!isSent || reason instanceof JobDetached || reason instanceof RunCanceled)) throw reason
      if (aborted || (error instanceof UpstreamError && isUncertain(error, true)))
        throw new OutcomeUnknown(messageOf(error))
      // The server, or the command, has ended the run itself.
      if (isSent && !(error instanceof RendererCrashed)) await onRefused()
      throw error
    }
  },
  cancel: async ({ stored: { intent, handle } = {} }) => {
    if (handle !== undefined && mayBePaid(handle)) return 'not canceled'
    return intent === undefined ? 'not charged' : 'unknown'
  },
})

const mayBePaid = ({ place }: JobHandle): boolean => place?.costs !== false

interface RenderedOnce {
  readonly costs: boolean
  readonly endpoint: string
  readonly clock: Clock
}
