/**
 * Runs that a provider may have accepted although no answer says so. A server that costs money gets a run once: the
 * intent is stored first, and a create without a clear answer is looked up or given to an operator, never sent again.
 */
import { createHash } from 'node:crypto'
import { messageOf } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import { HttpFailure } from '../../host/http.js'
import { retry } from '../../host/retry.js'
import { writeJson } from '../../protocol/json.js'
import { isObject } from '../../protocol/parse.js'
import {
  type Engine,
  JobDetached,
  type JobHandle,
  type JobIntent,
  OutcomeUnknown,
  RendererCrashed,
  type RenderJob,
  RunCanceled,
} from './engine.js'
import { BrokenTransfer, UpstreamError } from './upstream/upstream-error.js'

/** Times of the lookups, after the create. */
const LOOKUP_MS = [5_000, 30_000, 120_000]
/** Time in which a request without an answer reaches the queue of the server. */
export const SETTLE_MS = 1_000

/** A run whose job is looked up. */
export interface SearchedRun {
  readonly run?: RenderJob['run']
  readonly signal: AbortSignal
  adopt?(handle: JobHandle): Promise<boolean>
}

/** Finds the jobs of a create whose answer was lost. Without an intent, of a create that was perhaps never sent. */
export type Lookup = (
  job: SearchedRun,
  intent: JobIntent | undefined,
  signal: AbortSignal,
) => Promise<readonly JobHandle[]>

interface FindAgain {
  readonly lookup: Lookup | undefined
  readonly job: SearchedRun
  readonly intent: JobIntent | undefined
  readonly clock: Clock
  /** Whether to ask several times: the list of a provider may be late. */
  readonly isPatient: boolean
}

/** Resolves with the job of a create whose answer was lost, if exactly one job matches. */
export async function findAgain({
  lookup,
  job,
  intent,
  clock,
  isPatient,
}: FindAgain): Promise<JobHandle | undefined> {
  const { signal } = job
  if (lookup === undefined) return undefined
  const stepsMs = isPatient ? LOOKUP_MS : [SETTLE_MS]
  const waitMs = (number: number): number =>
    intent === undefined ? 0 : Math.max(0, intent.sentAtMs + (stepsMs[number - 1] ?? 0) - clock.now())
  const attempt = async (): Promise<readonly JobHandle[]> => {
    try {
      return await lookup(job, intent, signal)
    } catch (error) {
      signal.throwIfAborted()
      // Without an intent, nothing may be sent before the server has answered.
      if (intent === undefined) throw error
      return []
    }
  }
  if (waitMs(1) > 0) await clock.sleep(waitMs(1), signal)
  return await retry<readonly JobHandle[], JobHandle | undefined>({
    attempt,
    decide(found, number) {
      if (found.length === 1) return { done: found[0] }
      return number < stepsMs.length ? { retryInMs: waitMs(number + 1) } : { done: undefined }
    },
    clock,
    signal,
  })
}

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
    if (!costs) return await engine.render(job)
    if (handle !== undefined) throw new OutcomeUnknown('Its engine has no jobs that can be followed.')
    let isSent = false
    const onSend = async () => {
      await job.save?.({ intent: { sentAtMs: clock.now(), endpoint } })
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
  cancel: async ({ stored }) =>
    stored?.intent === undefined && stored?.handle === undefined ? 'not charged' : 'unknown',
})

interface RenderedOnce {
  readonly costs: boolean
  readonly endpoint: string
  readonly clock: Clock
}

/** Returns a short digest of each field. */
export const digestsOf = (input: Readonly<Record<string, unknown>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(input).map(([name, value]) => [name, digestOf(value)]))

/** Whether an input in a list of the server has all fields that were sent. The server may have added others. */
export const hasSentInput = ({ input = {} }: JobIntent, listed: unknown): boolean =>
  isObject(listed) &&
  Object.keys(input).length > 0 &&
  Object.entries(input).every(
    ([name, digest]) => Object.hasOwn(listed, name) && digestOf(listed[name]) === digest,
  )

const digestOf = (value: unknown): string =>
  createHash('sha256')
    .update(writeJson(sorted(value)))
    .digest('base64url')
    .slice(0, 16)

/** A server may list the keys of an object in another order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (!isObject(value)) return value
  const entries = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([name, each]) => [name, sorted(each)]))
}
