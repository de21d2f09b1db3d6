/**
 * Runs that a provider may have accepted although no answer says so. A server that costs money gets a run once: the
 * intent is stored first, and a create without a clear answer is given to an operator, never sent again.
 */
import { randomUUID } from 'node:crypto'
import { messageOf } from '../../../errors.js'
import { createLateSignal } from '../../../host/abort.js'
import type { Clock } from '../../../host/clock.js'
import { HttpFailure } from '../../../host/http.js'
import { isObject } from '../../../protocol/parse.js'
import {
  type Engine,
  JobDetached,
  type JobHandle,
  type JobIntent,
  OutcomeUnknown,
  type RenderedFile,
  RendererCrashed,
  type RenderJob,
  RunCanceled,
} from '../engine.js'
import { BrokenTransfer, JobEnded, UpstreamError } from './upstream-error.js'

export const newIntent = (endpoint: string, clock: Clock): JobIntent => ({
  id: randomUUID(),
  sentAtMs: clock.now(),
  endpoint,
})

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

/** How an engine renders a run within one request, or one command. */
export interface OneRequest<Answer> {
  readonly endpoint: string
  readonly clock: Clock
  /** Sends the request that renders the run, and resolves with its answer. Calls the hooks of the job. */
  send(job: RenderJob): Promise<Answer>
  /** Converts the answer to the outputs of the run. */
  publish(answer: Answer, job: RenderJob): Promise<readonly RenderedFile[]>
}

/** Creates an engine that sends each run once: if runs cost money, never again after a request that may have been accepted. */
export const createOnceEngine = <Answer>(
  server: { readonly costs: boolean; close?(): Promise<void> },
  plan: OneRequest<Answer>,
): Engine => ({
  async render(job) {
    const { intent, handle } = job.stored ?? {}
    if (intent !== undefined) throw new OutcomeUnknown('The service stopped before it ended.')
    // A job of the engine that the model had before, or that an operator has named.
    if (handle !== undefined && (server.costs || mayBePaid(handle)))
      throw new OutcomeUnknown('Its engine has no jobs that can be followed.')
    return server.costs ? await renderPaid(plan, job) : await plan.publish(await plan.send(job), job)
  },
  async cancel({ stored: { intent, handle } = {} }) {
    if (handle !== undefined && mayBePaid(handle)) return 'not canceled'
    return intent === undefined ? 'not charged' : 'unknown'
  },
  close: async () => await server.close?.(),
})

async function renderPaid<Answer>(
  { endpoint, clock, send, publish }: OneRequest<Answer>,
  job: RenderJob,
): Promise<readonly RenderedFile[]> {
  let state: 'not sent' | 'sent' | 'answered' = 'not sent'
  let intent: JobIntent | undefined
  const onSend = async () => {
    if (!job.signal.aborted) {
      // The same again, after a pause of this process or for another form of the request: the store refuses a second create.
      intent ??= newIntent(endpoint, clock)
      await job.save?.({ intent })
    }
    // Canceled, or the worker stops: nothing is sent, and what was sent before was refused.
    if (job.signal.aborted) await onRefused()
    job.signal.throwIfAborted()
    state = 'sent'
  }
  const onRefused = async () => {
    state = 'not sent'
    intent = undefined
    await job.save?.({})
  }
  const hasEnded = (error: unknown): boolean =>
    // After the answer, an error is about the files of a result that was paid for.
    state === 'answered'
      ? error instanceof JobEnded
      : !(error instanceof UpstreamError && isUncertain(error, true))
  // The answer is the result, which a worker that stops cannot leave to another one.
  const lateMs = () =>
    state !== 'not sent' && job.signal.reason instanceof JobDetached ? job.signal.reason.graceMs : 0
  const late = createLateSignal(job.signal, lateMs, clock)
  try {
    const answer = await send({ ...job, signal: late.signal, onSend, onRefused })
    state = 'answered'
    return await publish(answer, { ...job, signal: late.signal })
  } catch (error) {
    const { aborted, reason } = job.signal
    const isRefused = state !== 'answered' && error instanceof UpstreamError && !isUncertain(error, true)
    if (aborted && isRefused) await onRefused()
    const isLeft = state === 'not sent' || reason instanceof JobDetached || reason instanceof RunCanceled
    if (aborted && isLeft) throw reason
    if (state === 'not sent') throw error
    if (aborted || !hasEnded(error)) throw new OutcomeUnknown(messageOf(error))
    // The server, or the command, has ended the run itself.
    if (!(error instanceof RendererCrashed)) await onRefused()
    throw error
  } finally {
    late.end()
  }
}

const mayBePaid = ({ place }: JobHandle): boolean => place?.costs !== false
