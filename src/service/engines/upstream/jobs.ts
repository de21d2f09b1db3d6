/**
 * The life of a job at the server of a model, the same for all types of servers. It is one state, stored with its run and read
 * before each decision:
 *
 *   (nothing) ──▶ intent ──▶ handle ──▶ end: done     its outputs can be fetched
 *      ▲             │          └─────▶ end: over     it ended without a result
 *      └─────────────┘ certainly refused
 *
 * A worker that takes the run over goes on from there. A type of server is a `JobServer`: what its requests are, and what
 * its answers mean.
 */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createLateSignal, withTimeout } from '../../../host/abort.js'
import type { Clock } from '../../../host/clock.js'
import { holdFolder } from '../../../host/own-folder.js'
import { retry, retryErrors, stepOf } from '../../../host/retry.js'
import { isObject } from '../../../protocol/parse.js'
import type { RunCost } from '../../../protocol/price.js'
import { asSentence, printable, shortened } from '../../../protocol/text.js'
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
import type { Upstream, UpstreamRequest } from './index.js'
import { isUncertain, newIntent, SETTLE_MS } from './outcome.js'
import { isTransient, JobEnded, UpstreamError } from './upstream-error.js'

export type JobState<Result> =
  | { readonly state: 'waiting'; readonly position?: number | undefined }
  | { readonly state: 'running'; readonly fraction?: number | undefined }
  | { readonly state: 'done'; readonly result: Result; readonly cost?: RunCost | undefined }
  | { readonly state: 'failed'; readonly message: string; readonly cost?: RunCost | undefined }
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
  /** The type of its engine, such as `fal`. */
  readonly type: string
  readonly upstream: Upstream
  /** Pauses between polls; the last one repeats. */
  readonly pollStepsMs: readonly number[]
  /** Checks the run, and sends nothing. */
  create(job: RenderJob): Promise<JobCreate>
  /** Asks for the state of the job. A 404 or 410 of the server itself counts as `missing`. */
  poll(handle: JobHandle, signal: AbortSignal, number: number): Promise<JobState<Result>>
  /** Fetches the outputs. After 403, 404, 409 or 410, it is called again with a fresh result. */
  outputs(result: Result, job: RenderJob, handle: JobHandle): Promise<readonly RenderedFile[]>
  /** Cancels this job, and never another one. Rejects if the server does not confirm it. */
  cancel(handle: JobHandle, signal: AbortSignal): Promise<Exclude<CancelEnd, 'not canceled'>>
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
/** Refusals of polls by the provider itself, in a row and over this time, after which nothing more is asked. */
const MIN_REFUSALS = 5
const REFUSED_FOR_MS = 180_000
/** An aborted engine has 3 s to stop. */
export const CANCEL_LIMIT_MS = 2_500
/** After the time limit of a run, its engine has 30 s to cancel the job, or to fetch its result. */
const LATE_CANCEL_LIMIT_MS = 10_000
const LATE_RESULT_LIMIT_MS = 9_000
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

export function createJobEngine<Result>(
  server: JobServer<Result>,
  clock: Clock,
): Required<Pick<Engine, 'render' | 'cancel'>> {
  return {
    render: (job) => render({ server, clock, job, stored: job.stored ?? {} }),
    cancel: (run) => cancel(server, clock, run),
  }
}

/** A run at its server. `stored`: what is stored with the run now; every decision reads it. */
interface JobRun<Result> {
  readonly server: JobServer<Result>
  readonly clock: Clock
  job: RenderJob
  stored: StoredJob
}

async function save<Result>(run: JobRun<Result>, stored: StoredJob): Promise<void> {
  await run.job.save?.(stored)
  run.stored = stored
}

const placeOf = <Result>({ type, upstream: { origin, costs } }: JobServer<Result>): JobPlace => ({
  ...{ type, origin, costs },
})

/** Whether the job is at another server than that of its model: the document was changed. */
function isElsewhere<Result>({ handle, intent }: StoredJob, server: JobServer<Result>): boolean {
  const { place } = handle ?? intent ?? {}
  return place !== undefined && (place.type !== server.type || place.origin !== server.upstream.origin)
}

async function render<Result>(run: JobRun<Result>): Promise<readonly RenderedFile[]> {
  const { server, job } = run
  const { costs } = server.upstream
  try {
    if (isElsewhere(run.stored, server)) throw new OutcomeUnknown('The model now has another server.')
    const handle = await handleOf(run)
    const result = await follow(run, handle)
    // From here on, a cancel would delete the paid result.
    if (costs) await save(run, { ...run.stored, end: 'done' })
    return await fetchOutputs(run, handle, result)
  } catch (error) {
    const isOver = error instanceof JobEnded && costs && run.stored.handle !== undefined
    if (isOver) await save(run, { ...run.stored, end: 'over' })
    if (!(error instanceof OutcomeUnknown)) job.signal.throwIfAborted()
    throw error
  }
}

async function handleOf<Result>(run: JobRun<Result>): Promise<JobHandle> {
  const { handle, isNamed } = run.stored
  if (handle === undefined) return await start(run)
  // Versions before stored no place.
  return handle.place === undefined && !isNamed ? await keep(run, handle) : handle
}

/** Cancels the job of a run that is not rendered any longer. */
async function cancel<Result>(
  server: JobServer<Result>,
  clock: Clock,
  { id, stored = {} }: CanceledJob,
): Promise<CancelEnd> {
  const { handle, intent, end } = stored
  const { costs } = server.upstream
  if ((handle === undefined && intent === undefined) || end === 'over') return 'not charged'
  if (end === 'done') return 'succeeded'
  const job = handle ?? server.chosen?.handleOf(id)
  if (job === undefined || isElsewhere(stored, server)) return 'not canceled'
  const canceled = await cancelJob(server, clock, job)
  return costs || canceled === 'not canceled' ? canceled : 'not charged'
}

/** Returns the job of an earlier create, or a new one. */
async function start<Result>(run: JobRun<Result>): Promise<JobHandle> {
  const { server, clock, job } = run
  // Never sent again, also if the document no longer has a cost.
  const plan = run.stored.intent === undefined ? await server.create(job) : undefined
  const chosen = server.chosen?.handleOf(job.run?.id ?? '')
  if (chosen !== undefined && (await isKnown(run, chosen))) return await keep(run, chosen)
  if (plan === undefined) throw new OutcomeUnknown('The service stopped before the response arrived.')
  // A job whose id does not arrive before the abort could not be canceled or followed.
  const lateMs = () => {
    const { reason } = job.signal
    if (reason instanceof JobDetached) return reason.graceMs
    return chosen === undefined ? CANCEL_LIMIT_MS : 0
  }
  const late = createLateSignal(job.signal, lateMs, clock)
  try {
    return await keep(run, await create(run, plan, late.signal))
  } catch (error) {
    // The request may still be in flight.
    if (chosen !== undefined && !(error instanceof JobEnded) && (await isMine(run)))
      await cancelJob(server, clock, chosen, { waitMs: SETTLE_MS })
    throw error
  } finally {
    late.end()
  }
}

/** Whether the server has the job of an earlier create of this run. Without an intent, nothing is sent before it answers. */
async function isKnown<Result>({ server, job, stored }: JobRun<Result>, chosen: JobHandle): Promise<boolean> {
  try {
    return (await server.chosen?.isKnown(chosen, job.signal)) === true
  } catch (error) {
    job.signal.throwIfAborted()
    if (stored.intent === undefined) throw error
    return false
  }
}

/** Sends the request once. */
async function create<Result>(
  run: JobRun<Result>,
  plan: JobCreate,
  sentSignal: AbortSignal,
): Promise<JobHandle> {
  const { clock, server, job } = run
  const { costs } = server.upstream
  const request = await plan.request()
  const onSend = () => save(run, { intent: { ...newIntent(request.path, clock), place: placeOf(server) } })
  const onRefused = () => save(run, {})
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

async function keep<Result>(run: JobRun<Result>, handle: JobHandle): Promise<JobHandle> {
  const kept = { ...bounded(handle, run.server.upstream.origin), place: placeOf(run.server) }
  await save(run, { handle: kept })
  return kept
}

/**
 * Whether the run may be canceled here: it still belongs to this worker, also after a pause of this process, and neither
 * another worker follows the job nor the user's cancel decides on it.
 */
async function isMine<Result>(run: JobRun<Result>): Promise<boolean> {
  const { reason } = run.job.signal
  if (reason instanceof JobDetached) return false
  return await save(run, run.stored).then(
    () => true,
    () => false,
  )
}

async function follow<Result>(run: JobRun<Result>, handle: JobHandle): Promise<Result> {
  const { server, clock, job } = run
  const { costs } = server.upstream
  try {
    return await untilDone(run, handle)
  } catch (error) {
    const isOver = error instanceof JobEnded || error instanceof OutcomeUnknown
    const isCanceled = job.signal.reason instanceof RunCanceled
    if (isOver || isCanceled || run.stored.isNamed || !(await isMine(run))) throw error
    if (costs && !job.signal.aborted) throw error instanceof UpstreamError ? undecided(handle, error) : error
    const late = { keepsResult: true, limitMs: LATE_CANCEL_LIMIT_MS, tries: 2 }
    const end = await cancelJob(server, clock, handle, costs ? late : {})
    if (costs && end === 'succeeded') return await resultAfterLimit(run, handle)
    if (costs && end === 'not canceled') throw undecided(handle, job.signal.reason)
    if (costs) await save(run, { ...run.stored, end: 'over' })
    throw error
  }
}

/** Gives a paid job that succeeded at the time limit of its run some more time for its result. */
async function resultAfterLimit<Result>(run: JobRun<Result>, handle: JobHandle): Promise<Result> {
  const { reason } = run.job.signal
  const late = new AbortController()
  run.clock.alarm(LATE_RESULT_LIMIT_MS, () => late.abort(reason))
  run.job = { ...run.job, signal: late.signal }
  return await untilDone(run, handle).catch(() => {
    throw undecided(handle, reason)
  })
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
async function untilDone<Result>(run: JobRun<Result>, handle: JobHandle): Promise<Result> {
  const { server, clock, job } = run
  const { signal } = job
  const polls = new Polls(run, handle)
  const attempt = async (number: number): Promise<{ readonly result: Result } | undefined> => {
    try {
      const state = await server.poll(handle, signal, number)
      // A job that an operator has named is the run's own from now on.
      if (run.stored.isNamed && state.state !== 'missing' && state.state !== 'unknown')
        await keep(run, handle)
      const done = polls.read(state)
      polls.answered()
      return done
    } catch (error) {
      signal.throwIfAborted()
      if (error instanceof JobEnded && run.stored.isNamed) throw notKnown(handle)
      if (error instanceof JobEnded || !(error instanceof UpstreamError)) throw error
      return polls.failed(error)
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

/** What the polls of a job have found in a row. */
class Polls<Result> {
  readonly #run: JobRun<Result>
  readonly #handle: JobHandle
  #failures = 0
  #missing = 0
  #refusals = 0
  #refusedAtMs = 0
  #progress = 0
  #position = -1

  constructor(run: JobRun<Result>, handle: JobHandle) {
    this.#run = run
    this.#handle = handle
  }

  answered(): void {
    this.#failures = 0
    this.#refusals = 0
  }

  /** Returns the result of a job that is done. */
  read(state: JobState<Result>): { readonly result: Result } | undefined {
    const { server, job } = this.#run
    const { costs } = server.upstream
    if (state.state === 'unknown') return undefined
    this.#missing = state.state === 'missing' ? this.#missing + 1 : 0
    if (costs && this.#missing >= MAX_FAILURES) throw notKnown(this.#handle)
    if (!costs && this.#missing >= MAX_MISSING)
      throw new JobEnded(
        "The model's server no longer knows this job: it was probably restarted. Run it again.",
      )
    if ('cost' in state && state.cost !== undefined) job.onCharged?.(state.cost)
    if (state.state === 'failed') throw new JobEnded(failedText(server.upstream, state.message))
    const before = state.state === 'waiting' ? state.position : Math.min(this.#position, 0)
    if (before !== undefined && before !== this.#position) {
      this.#position = before
      job.onPosition?.(before)
    }
    const fraction = state.state === 'done' ? 1 : state.state === 'running' ? Number(state.fraction) : 0
    if (fraction > this.#progress && fraction <= 1) {
      this.#progress = fraction
      job.onProgress?.(fraction)
    }
    return state.state === 'done' ? { result: state.result } : undefined
  }

  /** Throws if the poll is not repeated. */
  failed(error: UpstreamError): { readonly result: Result } | undefined {
    const { server, clock } = this.#run
    const { costs } = server.upstream
    const isOwn = isObject(error.answer)
    if (isMissing(error) && isOwn) return this.read({ state: 'missing' })
    if (costs && isRefusedKey(error)) {
      // One refusal may be a hiccup of its provider, and a page is that of a proxy: the job continues.
      if (!isOwn) return undefined
      if (++this.#refusals === 1) this.#refusedAtMs = clock.monotonic()
      const refusedForMs = clock.monotonic() - this.#refusedAtMs
      if (this.#refusals >= MIN_REFUSALS && refusedForMs >= REFUSED_FOR_MS)
        throw undecided(this.#handle, error)
      return undefined
    }
    this.#refusals = 0
    const isRepeated = isMissing(error) || isTransient(error) || (costs && isUnreachable(error))
    if (!isRepeated || (++this.#failures >= MAX_FAILURES && !costs)) throw error
    return undefined
  }
}

/** Fetches the outputs. The links of an old result may have expired: each further try has a fresh one. */
async function fetchOutputs<Result>(
  { server, clock, job }: JobRun<Result>,
  handle: JobHandle,
  first: Result,
): Promise<readonly RenderedFile[]> {
  const { costs } = server.upstream
  const { signal } = job
  let result = first
  const attempt = async (number: number): Promise<readonly RenderedFile[]> => {
    if (number > 1) {
      const state = await server.poll(handle, signal, number).catch(() => undefined)
      if (state?.state === 'done') result = state.result
    }
    try {
      return await server.outputs(result, job, handle)
    } catch (error) {
      await removeHiddenFiles(job.folder)
      throw error
    }
  }
  const pauseMs = (error: unknown, number: number): number | undefined => {
    if (!(error instanceof UpstreamError) || error instanceof JobEnded) return undefined
    // A paid result is not given up while its host is down.
    if (costs && (isTransient(error) || isUnreachable(error)))
      return number < MAX_OUTPUT_TRIES ? stepOf(OUTPUT_STEPS_MS, number) : undefined
    return [403, 404, 409, 410].includes(error.status ?? 0) ? OUTPUT_STEPS_MS[number - 1] : undefined
  }
  return await retryErrors(attempt, { pauseMs, clock, signal }).catch((error: unknown) => {
    if (!costs || error instanceof JobEnded) throw error
    const { reason } = signal
    if (reason instanceof JobDetached || reason instanceof RunCanceled) throw error
    // The error is about a request for the result, and not about the job.
    const cause = signal.aborted ? reason : error
    throw signal.aborted || error instanceof UpstreamError ? undecided(handle, cause as Error) : error
  })
}

/** Removes the files that a failed try has left. Their names begin with a dot. */
async function removeHiddenFiles(folder: string): Promise<void> {
  if (folder === '') return
  // Behind a link in the place of the folder there are files of others.
  const names = await holdFolder(folder)
    .then((own) => own.names())
    .catch(() => [])
  for (const name of names)
    if (name.startsWith('.')) await rm(join(folder, name), { force: true }).catch(() => {})
}

/**
 * Waits first if the job may be about to enter the queue. `keepsResult`: leaves a job that has succeeded, because a cancel
 * may delete its paid result.
 */
async function cancelJob<Result>(
  server: JobServer<Result>,
  clock: Clock,
  handle: JobHandle,
  { waitMs = 0, keepsResult = false, limitMs = CANCEL_LIMIT_MS, tries = 1 } = {},
): Promise<CancelEnd> {
  const work = async (signal: AbortSignal) => {
    if (waitMs > 0) await clock.sleep(waitMs, signal)
    const last = keepsResult ? await server.poll(handle, signal, 1).catch(() => undefined) : undefined
    return last?.state === 'done' ? 'succeeded' : await server.cancel(handle, signal)
  }
  const limit = { timeoutMs: limitMs, reason: () => new Error('too slow'), clock }
  const end = await withTimeout(work, limit).catch(() => 'not canceled' as const)
  if (end !== 'not canceled' || tries === 1) return end
  return await cancelJob(server, clock, handle, { keepsResult, limitMs, tries: tries - 1 })
}

const isMissing = ({ status }: UpstreamError): boolean => status === 404 || status === 410

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
