/**
 * The life of a job at the server of a model, the same for all types of servers. It is one state, stored with its run and read
 * before each decision:
 *
 *   (nothing) ──▶ intent ──▶ handle ──▶ end: done     its outputs can be fetched
 *      ▲             │          ├─────▶ end: over     it ended without a result
 *      └─────────────┘          └─────▶ end: charged  it was canceled, and costs all the same
 *     certainly refused
 *
 * A worker that takes the run over goes on from there. A type of server is a `JobServer`: what its requests are, and what
 * its answers mean.
 */
import { messageOf } from '../../../errors.js'
import { createLateSignal, withTimeout } from '../../../host/abort.js'
import type { Clock } from '../../../host/clock.js'
import { retry, retryErrors, stepOf } from '../../../host/retry.js'
import { isObject } from '../../../protocol/parse.js'
import { asSentence, shortened } from '../../../protocol/text.js'
import {
  type CancelEnd,
  type CanceledJob,
  type Engine,
  JobDetached,
  type JobHandle,
  type JobPlace,
  OutcomeUnknown,
  type RenderedFile,
  type RenderJob,
  RunCanceled,
  type StoredJob,
} from '../engine.js'
import type { Answer, Upstream, UpstreamRequest } from './index.js'
import { isUncertain, newIntent } from './outcome.js'
import {
  isRefusedKey,
  isTransient,
  isUnreachable,
  JobEnded,
  NoJobId,
  UpstreamError,
} from './upstream-error.js'

export type JobState =
  | { readonly state: 'waiting'; readonly position?: number | undefined }
  | { readonly state: 'running'; readonly fraction?: number | undefined }
  | { readonly state: 'done'; readonly answer: Answer }
  | { readonly state: 'failed'; readonly message: string }
  /** The server itself does not know the job. */
  | { readonly state: 'missing' }
  /** The answer does not contain the state of the job. */
  | { readonly state: 'unknown' }

export interface JobServer {
  /** The type of its engine, such as `fal`. */
  readonly type: string
  readonly upstream: Upstream
  /** Pauses between polls; the last one repeats. */
  readonly pollStepsMs: readonly number[]
  /** Checks the run, uploads its references, and returns the request that creates the job. */
  createRequest(job: RenderJob): Promise<UpstreamRequest>
  /** Reads the job from the answer. Throws `NoJobId` if it names none, and `JobEnded` for a refusal. */
  accept(answer: Answer, job: RenderJob): JobHandle | Promise<JobHandle>
  /** Describes an answer that refuses the request. Undefined: its own error text does. */
  describeRefusal?(error: UpstreamError): string | undefined
  /** Asks for the state of the job. A 404 or 410 of the server itself counts as `missing`. `number`: from 1. */
  poll(handle: JobHandle, signal: AbortSignal, number: number): Promise<JobState>
  /**
   * Fetches the outputs that the answer about a done job names. After 403, 404, 409 or 410, it is called again with a fresh
   * one.
   */
  outputs(answer: Answer, job: RenderJob, handle: JobHandle): Promise<readonly RenderedFile[]>
  /** Cancels this job, and never another one. Rejects if the server does not confirm it. */
  cancel(handle: JobHandle, signal: AbortSignal): Promise<Exclude<CancelEnd, 'not canceled'>>
  /** For a server where the client chooses the id: the run then always has the same job. */
  readonly chosen?: {
    handleOf(runId: string): JobHandle
    isKnown(handle: JobHandle, signal: AbortSignal): Promise<boolean>
  }
}

/** Time in which a request without an answer reaches the queue of the server. */
const SETTLE_MS = 1_000
/** Failed polls in a row by which a job that costs nothing is lost. */
const MAX_FAILURES = 20
/** Answers in a row by which a server denies a job. Right after its creation, not all servers of a provider may know it. */
const MIN_DENIALS = 4
/** Time for which a provider must deny a paid job, or the key, before the polls end. */
const DENIED_FOR_MS = 180_000
/** Pauses between the tries for outputs that are announced before they can be fetched. */
const OUTPUT_STEPS_MS = [1_000, 2_000, 4_000, 8_000]
/** Tries for outputs whose host is down; for paid ones about five minutes. */
const MAX_OUTPUT_TRIES = 3
const MAX_PAID_OUTPUT_TRIES = 40
/** An aborted engine has 3 s to stop. */
export const CANCEL_LIMIT_MS = 2_500
/** After the time limit of a run, its engine has 30 s to cancel the job, or to fetch its result. */
const LATE_LIMIT_MS = 10_000
const MAX_HANDLE_BYTES = 4_096

/** Reads the job that an answer names. Throws `NoJobId` without an id. */
export function acceptedJob(id: unknown, urls: Readonly<Record<string, unknown>> = {}): JobHandle {
  if (typeof id !== 'string' || id === '') throw new NoJobId()
  const isText = (entry: [string, unknown]): entry is [string, string] => typeof entry[1] === 'string'
  return { id, urls: Object.fromEntries(Object.entries(urls).filter(isText)) }
}

export function createJobEngine(
  server: JobServer,
  clock: Clock,
): Required<Pick<Engine, 'render' | 'cancel' | 'close'>> {
  return {
    render: (job) => new JobRun(server, clock, job).render(),
    cancel: (run) => cancelStored(server, clock, run),
    close: () => server.upstream.close(),
  }
}

/** Cancels the job of a run that is not rendered any longer. */
async function cancelStored(
  server: JobServer,
  clock: Clock,
  { id, stored = {} }: CanceledJob,
): Promise<CancelEnd> {
  const { handle, intent, end } = stored
  if ((handle === undefined && intent === undefined) || end === 'over') return 'not charged'
  if (end === 'done') return 'succeeded'
  if (end === 'charged') return end
  const job = handle ?? server.chosen?.handleOf(id)
  if (job === undefined || isElsewhere(stored, server)) return 'not canceled'
  const canceled = await cancelJob(server, clock, job)
  return server.upstream.costs || canceled === 'not canceled' ? canceled : 'not charged'
}

/** Whether the job is at another server than that of its model: the document was changed. */
function isElsewhere({ handle, intent }: StoredJob, server: JobServer): boolean {
  const { place } = handle ?? intent ?? {}
  return place !== undefined && (place.type !== server.type || place.origin !== server.upstream.origin)
}

/** A run at its server. Every decision reads what is stored with the run. */
class JobRun {
  readonly #server: JobServer
  readonly #clock: Clock
  readonly #costs: boolean
  readonly #place: JobPlace
  readonly #chosen: JobHandle | undefined
  #job: RenderJob
  #stored: StoredJob
  /** Failed polls in a row. */
  #failures = 0
  /** Polls in a row that the server has denied, and when the first one was. */
  #denials = 0
  #deniedAtMs = 0
  #isQueued = false

  constructor(server: JobServer, clock: Clock, job: RenderJob) {
    const { origin, costs } = server.upstream
    this.#server = server
    this.#clock = clock
    this.#costs = costs
    this.#place = { type: server.type, origin, costs }
    this.#chosen = server.chosen?.handleOf(job.run?.id ?? '')
    this.#job = job
    this.#stored = job.stored ?? {}
  }

  async render(): Promise<readonly RenderedFile[]> {
    try {
      if (isElsewhere(this.#stored, this.#server))
        throw new OutcomeUnknown('The model now has another server.')
      const handle = this.#stored.handle ?? (await this.#start())
      const answer = await this.#follow(handle)
      // From here on, a cancel would delete the paid result.
      if (this.#costs) await this.#save({ ...this.#stored, end: 'done' })
      return await this.#fetchOutputs(handle, answer)
    } catch (error) {
      const isOver = error instanceof JobEnded && this.#costs && this.#stored.handle !== undefined
      if (isOver) await this.#save({ ...this.#stored, end: 'over' })
      if (!(error instanceof OutcomeUnknown)) this.#job.signal.throwIfAborted()
      throw error
    }
  }

  async #save(stored: StoredJob): Promise<void> {
    await this.#job.save?.(stored)
    this.#stored = stored
  }

  async #keep(handle: JobHandle): Promise<JobHandle> {
    const kept = { ...bounded(handle, this.#place.origin), place: this.#place }
    await this.#save({ handle: kept })
    return kept
  }

  /**
   * Whether the run may be canceled here: it still belongs to this worker, also after a pause of this process, and neither
   * another worker follows the job nor the user's cancel decides on it.
   */
  async #isMine(): Promise<boolean> {
    if (this.#job.signal.reason instanceof JobDetached) return false
    return await this.#save(this.#stored).then(
      () => true,
      () => false,
    )
  }

  /** Returns the job of an earlier create, or a new one. */
  async #start(): Promise<JobHandle> {
    const { signal } = this.#job
    const chosen = this.#chosen
    if (chosen && (await this.#server.chosen?.isKnown(chosen, signal))) return await this.#keep(chosen)
    // Never sent again, also if the document no longer has a cost.
    if (this.#stored.intent !== undefined)
      throw new OutcomeUnknown('The service stopped before the response arrived.')
    const request = await this.#server.createRequest(this.#job)
    // A job whose id does not arrive before the abort could not be canceled or followed.
    const lateMs = () => {
      if (signal.reason instanceof JobDetached) return signal.reason.graceMs
      return chosen === undefined ? CANCEL_LIMIT_MS : 0
    }
    const late = createLateSignal(signal, lateMs, this.#clock)
    try {
      return await this.#keep(await this.#create(request, late.signal))
    } catch (error) {
      // The request may still be in flight.
      if (chosen !== undefined && !(error instanceof JobEnded) && (await this.#isMine()))
        await cancelJob(this.#server, this.#clock, chosen, { waitMs: SETTLE_MS })
      throw error
    } finally {
      late.end()
    }
  }

  /** Sends the request once. */
  async #create(request: UpstreamRequest, sentSignal: AbortSignal): Promise<JobHandle> {
    const { signal } = this.#job
    const onSend = () => {
      const intent = { ...newIntent(request.path, this.#clock), place: this.#place }
      // The same again, after a pause of this process: the store refuses a second create.
      return this.#save({ intent: this.#stored.intent ?? intent })
    }
    const onRefused = () => this.#save({})
    const hooks = this.#costs && { onSend, onRefused }
    try {
      const answer = await this.#server.upstream.value({ ...request, sentSignal, ...hooks }, signal)
      return await this.#server.accept(answer, this.#job)
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error
      if (error instanceof JobEnded || !isUncertain(error, this.#costs)) {
        if (this.#costs) await onRefused()
        if (error instanceof JobEnded) throw error
        throw new JobEnded(this.#server.describeRefusal?.(error) ?? error.message, error)
      }
      signal.throwIfAborted()
      if (this.#chosen !== undefined) {
        await this.#clock.sleep(SETTLE_MS, signal)
        const isKnown = await this.#server.chosen?.isKnown(this.#chosen, signal).catch(() => false)
        if (isKnown) return this.#chosen
      }
      signal.throwIfAborted()
      throw this.#costs ? new OutcomeUnknown(error.message) : error
    }
  }

  /** Resolves with the answer about the done job. Cancels the job when it is not followed any longer, unless it may be paid. */
  async #follow(handle: JobHandle): Promise<Answer> {
    try {
      return await this.#untilDone(handle)
    } catch (error) {
      const { aborted, reason } = this.#job.signal
      const isDecided = error instanceof JobEnded || error instanceof OutcomeUnknown
      if (isDecided || reason instanceof RunCanceled || this.#stored.isNamed || !(await this.#isMine()))
        throw error
      if (this.#costs && aborted) return await this.#endAtLimit(handle, reason)
      if (this.#costs) throw undecided(handle, error)
      await cancelJob(this.#server, this.#clock, handle)
      throw error
    }
  }

  /** Cancels a paid job at the time limit of its run. One that has just ended gets some more time for its result. */
  async #endAtLimit(handle: JobHandle, reason: unknown): Promise<Answer> {
    const options = { keepsEnded: true, limitMs: LATE_LIMIT_MS }
    const end = await cancelJob(this.#server, this.#clock, handle, options)
    if (end === 'charged' || end === 'not charged') {
      await this.#save({ ...this.#stored, end: end === 'charged' ? end : 'over' })
      throw reason
    }
    // If the answer does not mention the charge, the job may still succeed.
    if (end !== 'succeeded') throw undecided(handle, reason)
    const late = new AbortController()
    this.#clock.alarm(LATE_LIMIT_MS, () => late.abort(reason))
    this.#job = { ...this.#job, signal: late.signal }
    return await this.#untilDone(handle).catch((error) => {
      throw error instanceof JobEnded ? error : undecided(handle, reason)
    })
  }

  async #untilDone(handle: JobHandle): Promise<Answer> {
    return await retry({
      attempt: (number) => this.#poll(handle, number),
      decide: (answer, number) =>
        answer === undefined ? { retryInMs: stepOf(this.#server.pollStepsMs, number) } : { done: answer },
      clock: this.#clock,
      signal: this.#job.signal,
    })
  }

  /** Returns the answer about a job that is done. A failed poll is repeated: the job continues, and may have been paid for. */
  async #poll(handle: JobHandle, number: number): Promise<Answer | undefined> {
    const { signal } = this.#job
    try {
      const state = await this.#server.poll(handle, signal, number)
      // A job that an operator has named is the run's own from now on.
      if (this.#stored.isNamed && state.state !== 'missing' && state.state !== 'unknown')
        await this.#keep(handle)
      return this.#read(state, handle)
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof JobEnded || !(error instanceof UpstreamError)) throw error
      this.#readFailure(error, handle)
      return undefined
    }
  }

  #read(state: JobState, handle: JobHandle): Answer | undefined {
    if (state.state === 'missing') return this.#deny(this.#missing(handle))
    this.#failures = 0
    if (state.state === 'unknown') return undefined
    this.#denials = 0
    const position = state.state === 'waiting' ? state.position : 0
    if (position !== undefined && (state.state === 'waiting' || this.#isQueued)) {
      this.#job.onPosition?.(position)
      this.#isQueued = state.state === 'waiting'
    }
    if (state.state === 'running' && state.fraction !== undefined) this.#job.onProgress?.(state.fraction)
    if (state.state === 'failed') throw new JobEnded(failedText(this.#server.upstream, state.message))
    return state.state === 'done' ? state.answer : undefined
  }

  /** Throws if the poll is not repeated. A page is that of a proxy: the job continues. */
  #readFailure(error: UpstreamError, handle: JobHandle): void {
    const isOwn = isObject(error.answer)
    const isMissing = error.status === 404 || error.status === 410
    if (isOwn && isMissing) return void this.#deny(this.#missing(handle))
    if (this.#costs && isRefusedKey(error)) {
      if (isOwn) this.#deny(undecided(handle, error))
      return
    }
    const isRepeated = isMissing || isTransient(error) || (this.#costs && isUnreachable(error))
    if (!isRepeated || (++this.#failures >= MAX_FAILURES && !this.#costs)) throw error
  }

  /** Throws the error after several denials in a row: a single one may be a temporary fault of the server. */
  #deny(error: Error): undefined {
    const nowMs = this.#clock.monotonic()
    if (++this.#denials === 1) this.#deniedAtMs = nowMs
    const isLong = !this.#costs || nowMs - this.#deniedAtMs >= DENIED_FOR_MS
    if (this.#denials >= MIN_DENIALS && isLong) throw error
  }

  #missing({ id }: JobHandle): Error {
    return this.#costs || this.#stored.isNamed
      ? new OutcomeUnknown(`The model's server does not know the job ${shortened(id)}.`)
      : new JobEnded("The model's server no longer knows this job: it was probably restarted. Run it again.")
  }

  /** Fetches the outputs. The links of an old answer may have expired: each further try has a fresh one. */
  async #fetchOutputs(handle: JobHandle, first: Answer): Promise<readonly RenderedFile[]> {
    const { signal } = this.#job
    const costs = this.#costs
    let answer = first
    const attempt = async (number: number): Promise<readonly RenderedFile[]> => {
      if (number > 1) {
        const state = await this.#server.poll(handle, signal, number).catch(() => undefined)
        if (state?.state === 'done') answer = state.answer
      }
      return await this.#server.outputs(answer, this.#job, handle)
    }
    const pauseMs = (error: unknown, number: number): number | undefined => {
      if (!(error instanceof UpstreamError) || error instanceof JobEnded) return undefined
      // A paid result is not given up while its host is down.
      if (isTransient(error) || (costs && isUnreachable(error)))
        return number < (costs ? MAX_PAID_OUTPUT_TRIES : MAX_OUTPUT_TRIES)
          ? stepOf(OUTPUT_STEPS_MS, number)
          : undefined
      return [403, 404, 409, 410].includes(error.status ?? 0) ? OUTPUT_STEPS_MS[number - 1] : undefined
    }
    return await retryErrors(attempt, { pauseMs, clock: this.#clock, signal }).catch((error: unknown) => {
      const { aborted, reason } = signal
      const isLeft = reason instanceof JobDetached || reason instanceof RunCanceled
      if (!costs || error instanceof JobEnded || isLeft) throw error
      // The error is about a request for the result, and not about the job.
      throw aborted || error instanceof UpstreamError ? undecided(handle, aborted ? reason : error) : error
    })
  }
}

/** The job continues, or has its result, which an operator can still have fetched. */
const undecided = ({ id }: JobHandle, cause: unknown): OutcomeUnknown =>
  new OutcomeUnknown(`${asSentence(messageOf(cause))} Its job is ${shortened(id)}.`)

const failedText = ({ clean, costs }: Upstream, text: string): string => {
  const message = clean(text) || 'The job failed without a message.'
  if (!costs) return message
  return `${asSentence(message)} The account at its provider shows whether it was charged.`
}

/**
 * Waits first if the job may be about to enter the queue. `keepsEnded`: leaves a job that has ended, because a cancel may
 * delete its paid result.
 */
async function cancelJob(
  server: JobServer,
  clock: Clock,
  handle: JobHandle,
  { waitMs = 0, keepsEnded = false, limitMs = CANCEL_LIMIT_MS } = {},
): Promise<CancelEnd> {
  const work = async (signal: AbortSignal): Promise<CancelEnd> => {
    if (waitMs > 0) await clock.sleep(waitMs, signal)
    const last = keepsEnded ? await server.poll(handle, signal, 1).catch(() => undefined) : undefined
    const isEnded = last?.state === 'done' || last?.state === 'failed'
    return isEnded ? 'succeeded' : await server.cancel(handle, signal)
  }
  const limit = { timeoutMs: limitMs, reason: () => new Error('too slow'), clock }
  return await withTimeout(work, limit).catch(() => 'not canceled' as const)
}

/** Keeps the URLs of the server's own origin, which get its key. */
function bounded({ urls = {}, ...handle }: JobHandle, origin: string): JobHandle {
  const own = Object.entries(urls).filter(([, url]) => URL.canParse(url) && new URL(url).origin === origin)
  const whole: JobHandle = own.length === 0 ? handle : { ...handle, urls: Object.fromEntries(own) }
  const fitting = [whole, handle].find((each) => Buffer.byteLength(JSON.stringify(each)) <= MAX_HANDLE_BYTES)
  if (fitting === undefined) throw new NoJobId("The model's server returned an id that is too long.")
  return fitting
}
