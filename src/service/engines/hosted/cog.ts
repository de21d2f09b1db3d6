/**
 * The engine `cog`: a Cog server, which runs one prediction within one request. It forgets a prediction when it ends, so
 * there is no job to follow.
 */
import { randomUUID } from 'node:crypto'
import { onAbort, withTimeout } from '../../../host/abort.js'
import type { Engine, RenderJob } from '../engine.js'
import type { Answer } from '../upstream/index.js'
import { CANCEL_LIMIT_MS } from '../upstream/jobs.js'
import { createOnceEngine } from '../upstream/outcome.js'
import { errorTextOf, JobEnded, UpstreamError } from '../upstream/upstream-error.js'
import { type HostedModel, publishResult, sentInput } from './index.js'

export const createCogEngine = (model: HostedModel): Engine => {
  const { upstream, clock } = model
  return createOnceEngine(upstream, {
    endpoint: 'predictions',
    clock,
    send: async (job) => await predict(await sentInput(job, model), model, job),
    async publish(answer, job) {
      const { status, output } = answer
      if (status === 'succeeded') return await publishResult(answer, output, upstream, job)
      const text = upstream.clean(errorTextOf(answer) ?? '')
      throw new JobEnded(text || `The Cog server reports the state "${upstream.clean(`${status}`)}".`)
    },
  })
}

/**
 * Resolves with the ended prediction. The server forgets a prediction when it ends, and would start it again: each try has an
 * id of its own, and none is sent after its answer.
 */
async function predict(input: object, { upstream, clock }: HostedModel, job: RenderJob): Promise<Answer> {
  const { signal, run } = job
  const path = `predictions/${encodeURIComponent(`${run?.id}-${randomUUID().slice(0, 8)}`)}`
  const connection = new AbortController()
  const cancel = async (limited: AbortSignal) =>
    (await upstream.send({ method: 'POST', path: `${path}/cancel` }, limited)).discard()
  const forget = onAbort(signal, () => {
    const limit = { timeoutMs: CANCEL_LIMIT_MS, reason: () => new Error('too slow'), clock }
    withTimeout(cancel, limit)
      .catch(() => {})
      .finally(() => connection.abort(signal.reason))
  })
  const sent = { json: { input }, busy: [409], sentSignal: connection.signal }
  try {
    const answer = await upstream.render({ method: 'PUT', path, ...sent }, job)
    if (/^(starting|processing)$/.test(`${answer.status}`))
      throw new UpstreamError('The Cog server did not wait for the end of the prediction.', { status: 202 })
    return answer
  } finally {
    forget()
    signal.throwIfAborted()
  }
}
