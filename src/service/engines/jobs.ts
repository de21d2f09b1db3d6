/**
 * The life of a job at the server of a model, the same for all types of servers: created once, stored with its run, then
 * polled until its outputs can be fetched. A worker that takes the run over follows the stored job. A type of server is
 * a `JobServer`: what its requests are, and what its answers mean.
 */
import { createLateSignal, withTimeout } from '../../host/abort.js'
import type { Clock } from '../../host/clock.js'
import { retry, retryErrors, stepOf } from '../../host/retry.js'
import { isObject } from '../../protocol/parse.js'
import { asSentence, printable, shortened } from '../../protocol/text.js'
import {
  type CanceledJob,
  type Charge,
  type Engine,
  JobDetached,
  type JobHandle,
  OutcomeUnknown,
  type RenderedFile,
  type RenderJob,
  RunCanceled,
} from './engine.js'
import { isUncertain, newIntent, SETTLE_MS } from './outcome.js'
import type { Upstream, UpstreamRequest } from './upstream/index.js'
import { isTransient, JobEnded, UpstreamError } from './upstream/upstream-error.js'

export type JobState<Result> =
  | { readonly state: 'waiting'; readonly position?: number | undefined }
  | { readonly state: 'running'; readonly fraction?: number | undefined }
  | { readonly state: 'done'; readonly result: Result }
  | { readonly state: 'failed'; readonly message: string }
  /** The server itself does not know the job. */
  | { readonly state: 'missing' }
  /** The answer tells nothing about the job. */
  | { readonly state: 'unknown' }

/** A run that has passed the checks of its engine. */
export interface JobCreate {
  /** Uploads the references, and returns the request that creates the job. */
  request(): UpstreamRequest | Promise<UpstreamRequest>
  /** Reads the job from the answer. Throws `NoJobId` if it names none, or another error for a refusal. */
  accept(answer: unknown): JobHandle | Promise<JobHandle>
  /** Describes an answer of the server that refuses the request. */
  describe?(error: UpstreamError): UpstreamError | undefined
}

export interface JobServer<Result> {
  readonly upstream: Upstream
  /** Pauses between polls; the last one repeats. */
  readonly pollStepsMs: readonly number[]
  /** Checks the run, and sends nothing. */
  create(job: RenderJob): Promise<JobCreate>
  /** Asks for the state of the job. A 404 or 410 of the server itself counts as `missing`. */
  poll(handle: JobHandle, signal: AbortSignal, number: number): Promise<JobState<Result>>
  /** Fetches the outputs. After 403, 404, 409 or 410, it is called again with a fresh result. */
  outputs(result: Result, job: RenderJob, handle: JobHandle): Promise<readonly RenderedFile[]>
  /** Cancels this job, and never another one. `succeeded`: it was too late, and the result is there. */
  cancel(handle: JobHandle, signal: AbortSignal): Promise<Charge | 'succeeded'>
  /** For a server where the client chooses the id: the run then always has the same job. */
  readonly chosen?: {
    handleOf(runId: string): JobHandle
    isKnown(handle: JobHandle, signal: AbortSignal): Promise<boolean>
  }
}

/** Answers in a row by which a job that costs nothing is lost. Right after its creation, it may not be known everywhere. */
const MAX_MISSING = 4
/** Failed polls in a row by which a job that costs nothing is lost, and answers by which one that costs money is not known. */
const MAX_FAILURES = 20
/** Pauses between the tries for outputs that are announced before they can be fetched. */
const OUTPUT_STEPS_MS = [1_000, 2_000, 4_000, 8_000]
/** Tries for paid outputs whose host is down: about five minutes. */
const MAX_OUTPUT_TRIES = 40
/** An aborted engine has 3 s to stop. */
export const CANCEL_LIMIT_MS = 2_500
const MAX_HANDLE_BYTES = 4_096

/** The server accepted the request, but its answer does not name the job. */
export class NoJobId extends UpstreamError {
  constructor(message = "The model's server returned no id for the job, so its result cannot be fetched.") {
    super(message)
  }
}

/** Reads the job that an answer names. Throws `NoJobId` without an id. */
export function acceptedJob(id: unknown, urls: Readonly<Record<string, unknown>> = {}): JobHandle {
  if (typeof id !== 'string' || id === '') throw new NoJobId()
  const isText = (entry: [string, unknown]): entry is [string, string] => typeof entry[1] === 'string'
  return { id, urls: Object.fromEntries(Object.entries(urls).filter(isText)) }
}

interface JobParts<Result> {
  readonly server: JobServer<Result>
  readonly clock: Clock
}

interface JobEngine<Result> extends JobParts<Result> {
  /** Charges of the runs that are rendered, and of canceled runs until `cancel` asks for them. */
  readonly charges: Map<string, Charge>
  /** By run: settles when `render` has ended, which the service stops waiting for some time after an abort. */
  readonly rendering: Map<string, Promise<unknown>>
}

export function createJobEngine<Result>(
  server: JobServer<Result>,
  clock: Clock,
): Required<Pick<Engine, 'render' | 'cancel'>> {
  const engine: JobEngine<Result> = { server, clock, charges: new Map(), rendering: new Map() }
  return {
    async render(job) {
      const { rendering } = engine
      const id = job.run?.id ?? ''
      const work = render(engine, job)
      rendering.set(id, work)
      return await work.finally(() => void (rendering.get(id) === work && rendering.delete(id)))
    },
    cancel: (job) => cancelRun(engine, job),
  }
}

async function render<Result>(engine: JobEngine<Result>, job: RenderJob): Promise<readonly RenderedFile[]> {
  try {
    return await follow(engine, await start(engine, job), job)
  } catch (error) {
    if (!(error instanceof OutcomeUnknown)) job.signal.throwIfAborted()
    throw error
  } finally {
    if (!(job.signal.reason instanceof RunCanceled)) engine.charges.delete(job.run?.id ?? '')
  }
}

async function cancelRun<Result>(engine: JobEngine<Result>, { id, stored }: CanceledJob): Promise<Charge> {
  const { charges, rendering, server } = engine
  await Promise.allSettled([rendering.get(id)])
  const known = charges.get(id)
  charges.delete(id)
  const { handle, intent } = stored ?? {}
  if (known !== undefined && (known !== 'unknown' || handle !== undefined)) return known
  // The intent is stored before the request is sent.
  if (handle === undefined && intent === undefined) return known ?? 'not charged'
  const job = handle ?? server.chosen?.handleOf(id)
  return job === undefined ? 'unknown' : chargeOf(await cancelJob(engine, job))
}

/** Returns the stored job, the job of an earlier create, or a new one. */
async function start<Result>(engine: JobEngine<Result>, job: RenderJob): Promise<JobHandle> {
  const { server, clock } = engine
  const { handle, intent } = job.stored ?? {}
  if (handle !== undefined) return handle
  // Never sent again, also if the document no longer has a cost.
  const plan = intent === undefined ? await server.create(job) : undefined
  const chosen = server.chosen?.handleOf(job.run?.id ?? '')
  if (chosen !== undefined && (await isKnown(engine, chosen, job))) return await save(engine, chosen, job)
  if (plan === undefined) throw new OutcomeUnknown('The service stopped before the answer arrived.')
  // A job whose id does not arrive before the abort could not be canceled or followed.
  const lateMs = () => {
    const { reason } = job.signal
    if (reason instanceof JobDetached) return reason.graceMs
    return chosen === undefined ? CANCEL_LIMIT_MS : 0
  }
  const late = createLateSignal(job.signal, lateMs, clock)
  try {
    return await save(engine, await create(engine, job, plan, late.signal), job)
  } catch (error) {
    // The request may still be in flight.
    if (chosen !== undefined && !(error instanceof JobEnded) && (await mayCancel(engine, chosen, job)))
      await cancelJob(engine, chosen, { waitMs: SETTLE_MS })
    throw error
  } finally {
    late.end()
  }
}

/** Whether the server has the job of an earlier create of this run. Without an intent, nothing is sent before it answers. */
async function isKnown<Result>(
  { server }: JobEngine<Result>,
  chosen: JobHandle,
  { signal, stored }: RenderJob,
): Promise<boolean> {
  try {
    return (await server.chosen?.isKnown(chosen, signal)) === true
  } catch (error) {
    signal.throwIfAborted()
    if (stored?.intent === undefined) throw error
    return false
  }
}

/** Sends the request once. */
async function create<Result>(
  engine: JobEngine<Result>,
  job: RenderJob,
  plan: JobCreate,
  sentSignal: AbortSignal,
): Promise<JobHandle> {
  const { clock, server } = engine
  const { costs } = server.upstream
  const request = await plan.request()
  const onSend = async () => {
    await job.save?.({ intent: newIntent(request.path, clock) })
    note(engine, job, 'unknown')
  }
  const onRefused = async () => {
    note(engine, job, 'not charged')
    await job.save?.({})
  }
  const hooks = costs && { onSend, onRefused }
  try {
    return await plan.accept(await server.upstream.value({ ...request, sentSignal, ...hooks }, job.signal))
  } catch (error) {
    if (!(error instanceof UpstreamError)) throw error
    const isAccepted = costs && error instanceof NoJobId
    if (error instanceof JobEnded || (!isAccepted && !isUncertain(error, costs))) {
      if (costs) await onRefused()
      throw error instanceof JobEnded
        ? error
        : new JobEnded(plan.describe?.(error)?.message ?? error.message, error)
    }
    job.signal.throwIfAborted()
    const chosen = server.chosen?.handleOf(job.run?.id ?? '')
    if (chosen !== undefined) {
      await clock.sleep(SETTLE_MS, job.signal)
      if (await server.chosen?.isKnown(chosen, job.signal).catch(() => false)) return chosen
    }
    job.signal.throwIfAborted()
    throw costs ? new OutcomeUnknown(error.message) : error
  }
}

async function save<Result>(
  engine: JobEngine<Result>,
  handle: JobHandle,
  job: RenderJob,
): Promise<JobHandle> {
  const kept = bounded(handle, engine.server.upstream.origin)
  await job.save?.({ handle: kept })
  return kept
}

async function follow<Result>(
  engine: JobEngine<Result>,
  handle: JobHandle,
  job: RenderJob,
): Promise<readonly RenderedFile[]> {
  const { server } = engine
  let isKnown = job.stored?.isNamed !== true
  const onKnown = async () => {
    if (!isKnown) await save(engine, handle, job)
    isKnown = true
  }
  let result: Result
  try {
    result = await untilDone(engine, handle, { ...job, onKnown })
  } catch (error) {
    if (!isKnown && error instanceof JobEnded) throw notKnown(handle)
    const isOver = error instanceof JobEnded || error instanceof OutcomeUnknown
    if (isKnown && !isOver && (await mayCancel(engine, handle, job))) {
      const end = await cancelJob(engine, handle, { keepsResult: server.upstream.costs && isTimedOut(job) })
      note(engine, job, chargeOf(end))
      const isLeft = end === 'succeeded' || end === 'not canceled'
      if (isLeft && isTimedOut(job)) throw undecided(handle, job.signal.reason)
    }
    throw error
  }
  // From here on, a cancel would delete the paid result.
  note(engine, job, server.upstream.costs ? 'charged' : 'not charged')
  return await fetchOutputs(engine, handle, result, job)
}

/** Whether the run still belongs to this worker: after a pause of this process, another one may follow the job. */
async function mayCancel<Result>(
  engine: JobEngine<Result>,
  handle: JobHandle,
  job: RenderJob,
): Promise<boolean> {
  if (isDetached(job)) return false
  return await save(engine, handle, job).then(
    () => true,
    () => false,
  )
}

function note<Result>({ charges }: JobEngine<Result>, { run }: RenderJob, charge: Charge): void {
  if (run) charges.set(run.id, charge)
}

interface FollowedJob extends RenderJob {
  /** Called for each state that the server reports: it knows the job. */
  onKnown(): Promise<void>
}

/** The job continues, or has its result, which an operator can still have fetched. */
const undecided = ({ id }: JobHandle, { message }: Error): OutcomeUnknown =>
  new OutcomeUnknown(`${asSentence(message)} Its job is ${shortened(printable(id))}.`)

const notKnown = ({ id }: JobHandle): OutcomeUnknown =>
  new OutcomeUnknown(`The model's server does not know the job ${shortened(printable(id))}.`)

const failedText = ({ clean, costs }: Upstream, text: string): string => {
  const message = clean(text) || 'The job failed without a message.'
  if (!costs) return message
  return `${asSentence(message)} The account at its provider shows whether it was charged.`
}

/** Resolves with the result of the job. A failed poll is repeated: the job continues, and may have been paid for. */
async function untilDone<Result>(
  { server, clock }: JobParts<Result>,
  handle: JobHandle,
  job: FollowedJob,
): Promise<Result> {
  const { signal } = job
  const { upstream } = server
  const { costs } = upstream
  let [failures, missing, progress, position] = [0, 0, 0, -1]
  const read = (state: JobState<Result>): { readonly result: Result } | undefined => {
    if (state.state === 'unknown') return undefined
    missing = state.state === 'missing' ? missing + 1 : 0
    if (costs && missing >= MAX_FAILURES) throw notKnown(handle)
    if (!costs && missing >= MAX_MISSING)
      throw new JobEnded(
        "The model's server no longer knows this job: it was probably restarted. Run it again.",
      )
    if (state.state === 'failed') throw new JobEnded(failedText(upstream, state.message))
    const before = state.state === 'waiting' ? state.position : Math.min(position, 0)
    if (before !== undefined && before !== position) {
      position = before
      job.onPosition?.(position)
    }
    const fraction = state.state === 'done' ? 1 : state.state === 'running' ? Number(state.fraction) : 0
    if (fraction > progress && fraction <= 1) {
      progress = fraction
      job.onProgress?.(progress)
    }
    return state.state === 'done' ? { result: state.result } : undefined
  }
  const attempt = async (number: number): Promise<{ readonly result: Result } | undefined> => {
    try {
      const state = await server.poll(handle, signal, number)
      if (state.state !== 'missing' && state.state !== 'unknown') await job.onKnown()
      const done = read(state)
      failures = 0
      return done
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof JobEnded || !(error instanceof UpstreamError)) throw error
      if (isOwnMissing(error)) return read({ state: 'missing' })
      if (costs && isRefusedKey(error)) throw undecided(handle, error)
      const isRepeated = isMissing(error) || isTransient(error) || (costs && isUnreachable(error))
      if (!isRepeated || (++failures >= MAX_FAILURES && !costs)) throw error
      return undefined
    }
  }
  const { result } = await retry({
    attempt,
    decide: (done, number) =>
      done === undefined ? { retryInMs: stepOf(server.pollStepsMs, number) } : { done },
    clock,
    signal,
  })
  return result
}

/** Fetches the outputs. The links of an old result may have expired: each further try has a fresh one. */
async function fetchOutputs<Result>(
  { server, clock }: JobParts<Result>,
  handle: JobHandle,
  first: Result,
  job: RenderJob,
): Promise<readonly RenderedFile[]> {
  let result = first
  const attempt = async (number: number): Promise<readonly RenderedFile[]> => {
    if (number > 1) {
      const state = await server.poll(handle, job.signal, number).catch(() => undefined)
      if (state?.state === 'done') result = state.result
    }
    return await server.outputs(result, job, handle)
  }
  /** A paid result is not given up while its host is down. */
  const isLater = (error: UpstreamError) =>
    server.upstream.costs && (isTransient(error) || isUnreachable(error))
  const pauseMs = (error: unknown, number: number): number | undefined => {
    if (!(error instanceof UpstreamError) || error instanceof JobEnded) return undefined
    if (isLater(error)) return number < MAX_OUTPUT_TRIES ? stepOf(OUTPUT_STEPS_MS, number) : undefined
    return [403, 404, 409, 410].includes(error.status ?? 0) ? OUTPUT_STEPS_MS[number - 1] : undefined
  }
  const { signal } = job
  return await retryErrors(attempt, { pauseMs, clock, signal }).catch((error: unknown) => {
    if (!server.upstream.costs) throw error
    if (isTimedOut(job)) throw undecided(handle, signal.reason)
    // The error is about a request for the result, and not about the job.
    throw error instanceof UpstreamError && !(error instanceof JobEnded) ? undecided(handle, error) : error
  })
}

/** `not canceled`: the server did not answer, or refused the cancel, so the job probably continues. */
type CancelEnd = Charge | 'succeeded' | 'not canceled'

/**
 * Waits first if the job may be about to enter the queue. `keepsResult`: leaves a job that has succeeded, because a cancel
 * may delete its paid result. Failures are ignored: the one that led here is reported.
 */
async function cancelJob<Result>(
  { server, clock }: JobParts<Result>,
  handle: JobHandle,
  { waitMs = 0, keepsResult = false } = {},
): Promise<CancelEnd> {
  const work = async (signal: AbortSignal) => {
    if (waitMs > 0) await clock.sleep(waitMs, signal)
    const last = keepsResult ? await server.poll(handle, signal, 1).catch(() => undefined) : undefined
    return last?.state === 'done' ? 'succeeded' : await server.cancel(handle, signal)
  }
  const limit = { timeoutMs: CANCEL_LIMIT_MS, reason: () => new Error('too slow'), clock }
  const end = await withTimeout(work, limit).catch(() => 'not canceled' as const)
  return server.upstream.costs ? end : 'not charged'
}

const chargeOf = (end: CancelEnd): Charge =>
  end === 'succeeded' ? 'charged' : end === 'not canceled' ? 'unknown' : end

const isDetached = ({ signal }: RenderJob): boolean => signal.aborted && signal.reason instanceof JobDetached

/** Whether the time limit of the run has passed. */
const isTimedOut = ({ signal }: RenderJob): boolean =>
  signal.aborted && !(signal.reason instanceof JobDetached || signal.reason instanceof RunCanceled)

const isMissing = ({ status }: UpstreamError): boolean => status === 404 || status === 410

/** A proxy answers with a page, with text or with nothing. */
const isOwnMissing = (error: UpstreamError): boolean => isMissing(error) && isObject(error.answer)

/** Whether the account of the key is the reason, and not the run. */
export const isRefusedKey = ({ status = 0 }: UpstreamError): boolean => [401, 402, 403].includes(status)

const isUnreachable = ({ status = 503 }: UpstreamError): boolean => status === 503 || status === 429

/** Keeps the URLs of the server's own origin, which get its key. */
function bounded({ urls = {}, ...handle }: JobHandle, origin: string): JobHandle {
  const own = Object.entries(urls).filter(([, url]) => URL.canParse(url) && new URL(url).origin === origin)
  const whole: JobHandle = own.length === 0 ? handle : { ...handle, urls: Object.fromEntries(own) }
  const fitting = [whole, handle].find((each) => Buffer.byteLength(JSON.stringify(each)) <= MAX_HANDLE_BYTES)
  if (fitting === undefined) throw new NoJobId("The model's server returned an id that is too long.")
  return fitting
}
