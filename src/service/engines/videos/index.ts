/**
 * The engine `videos`: servers with `POST /v1/videos`, as OpenAI, vLLM-Omni and SGLang have it. The server answers with
 * a job, which is polled until its video can be fetched.
 */
import { onAbort, withTimeout } from '../../../host/abort.js'
import type { Clock } from '../../../host/clock.js'
import { stepOf } from '../../../host/retry.js'
import { writeJson } from '../../../protocol/json.js'
import { isObject } from '../../../protocol/parse.js'
import type { Engine, RenderJob } from '../engine.js'
import type { EngineParts, ReadEngine } from '../read-engine.js'
import { readSentParameters } from '../sent-parameters.js'
import { readSizes, sizeText } from '../sizes.js'
import { createUpstream, type Upstream, type UpstreamRequest } from '../upstream/index.js'
import { describeModels } from '../upstream/model-list.js'
import { publishOutputs } from '../upstream/outputs.js'
import { pollUntilDone } from '../upstream/polling.js'
import { type FormField, referencesOf } from '../upstream/request-body.js'
import { errorTextOf, UpstreamError } from '../upstream/upstream-error.js'

const POLL_STEPS_MS = [2_000, 3_000, 5_000, 7_000, 10_000]
/** Tries for a video that is announced before it can be fetched. */
const CONTENT_STEPS_MS = [1_000, 2_000, 4_000, 8_000]
/** Polls at the beginning that may find no job. */
const MAX_MISSING = 3
/** An aborted engine has 3 s to stop. */
const CANCEL_LIMIT_MS = 2_500
const CANCEL_RETRY_MS = 500
const DEFAULT_FPS = 24

export const readVideos: ReadEngine = (settings, document) => {
  const url = settings.url('url')
  const key = settings.secret('key_env')
  const model = settings.text('model')
  const sent = readSentParameters(settings, document, ['prompt', 'input_reference'])
  const sizes = readSizes(settings, document, sent.names)
  const fps = settings.number('fps')
  const framesField = String(settings.map('send').duration ?? '')
  if (document.kind !== 'video') settings.report(['type'], 'videos is only for models of kind video')
  sent.checkRest(['prompt', 'image_urls', 'duration', ...sizes.parameters])

  function fieldsOf(input: RenderJob['input']): readonly FormField[] {
    const { prompt, duration } = input
    const fields: Record<string, unknown> = {
      prompt,
      model,
      ...(!sent.names.includes('duration') && { seconds: duration }),
      ...(sizes.parameters.length > 0 && { size: sizeText(sizes.sizeOf(input)) }),
      fps,
      ...Object.fromEntries(sent.fieldsOf(input)),
    }
    if (/frames$/.test(framesField) && duration !== undefined) {
      const frames = Math.round(Number(duration) * (fps ?? DEFAULT_FPS))
      if (!(frames > 0)) throw new Error(`The duration "${duration}" is not a number of seconds.`)
      fields[framesField] = frames
    }
    return Object.entries(fields).flatMap(([name, value]): readonly FormField[] =>
      value === undefined ? [] : [[name, typeof value === 'object' ? writeJson(value) : String(value)]],
    )
  }

  // Only a document without problems is rendered, and it has a URL.
  return (parts) =>
    createVideosEngine(createUpstream({ url: url as URL, key, parts }), parts, { model, fieldsOf })
}

interface VideosModel {
  /** What the server calls the model. */
  readonly model: string | undefined
  /** Returns the form of a request, without the reference. */
  fieldsOf(input: RenderJob['input']): readonly FormField[]
}

function createVideosEngine(
  upstream: Upstream,
  { clock }: Pick<EngineParts, 'clock'>,
  { model, fieldsOf }: VideosModel,
): Engine {
  /** Resolves with the last status, when the video can be fetched. */
  async function untilCompleted(id: string, job: RenderJob): Promise<unknown> {
    let progress = 0
    let missing = 0
    const poll = async (): Promise<unknown> => {
      const answer = await statusOf(id, job.signal)
      // Right after its creation, a job may not be known everywhere behind the address.
      if (answer === undefined && ++missing <= MAX_MISSING) return undefined
      if (answer === undefined)
        throw new JobFailed(
          "The model's server no longer knows this job: it was probably restarted. Run it again.",
        )
      missing = MAX_MISSING
      const state = stateOf(answer)
      if (state === 'failed')
        throw new JobFailed(upstream.clean(errorTextOf(answer) ?? 'The job failed without a message.'))
      const percent = isObject(answer) ? Number(answer.progress) : 0
      if (percent > progress && percent <= 100) {
        progress = percent
        job.onProgress?.(progress / 100)
      }
      return state === 'completed' ? answer : undefined
    }
    const pauseMs = (number: number) => stepOf(POLL_STEPS_MS, number)
    return await pollUntilDone(poll, { clock, signal: job.signal, pauseMs })
  }

  /** Resolves with undefined if the server does not know the job. */
  async function statusOf(id: string, signal: AbortSignal): Promise<unknown> {
    try {
      return await upstream.value({ method: 'GET', path: pathOf(id), isQuick: true }, signal)
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error
      // vLLM-Omni describes a failed job in an answer with the status of its error.
      if (stateOf(error.answer) === 'failed') return error.answer
      if (error.status === 404 || error.status === 410) return undefined
      // A job that has not ended, with an error of the server.
      if (isObject(error.answer) && error.answer.id === id) return error.answer
      throw error
    }
  }

  /** Fetches the video. Some servers announce it a moment before they have it. */
  const content = (id: string, completed: unknown, job: RenderJob): Promise<string> =>
    pollUntilDone(
      (number) =>
        upstream.file(`${pathOf(id)}/content`, job).catch(async (error) => {
          const { status = 0 } = error instanceof UpstreamError ? error : {}
          const url = isObject(completed) ? completed.url : undefined
          // SGLang does not send a video that it has put into a cloud storage.
          if (status === 400 && typeof url === 'string') return await upstream.download(url, job)
          if ([404, 409].includes(status) && number <= CONTENT_STEPS_MS.length) return undefined
          throw error
        }),
      { clock, signal: job.signal, pauseMs: (number) => stepOf(CONTENT_STEPS_MS, number), maxFailures: 1 },
    )

  return {
    async render(job) {
      const { references } = job
      if (references.length > 1)
        throw new Error(`This model takes at most one reference image; the run has ${references.length}.`)
      const [reference] = await referencesOf(job)
      const file: readonly FormField[] = reference === undefined ? [] : [['input_reference', reference]]
      const form = [...fieldsOf(job.input), ...file]
      const late = createLateSignal(job.signal, clock)
      // A job whose id does not arrive before the abort could not be removed.
      const request: UpstreamRequest = { method: 'POST', path: 'videos', form, sentSignal: late.signal }
      try {
        const id = idOf(await upstream.value(request, job.signal))
        const completed = await untilCompleted(id, job).catch(async (error) => {
          if (!(error instanceof JobFailed)) await removeJob(upstream, pathOf(id), clock, late.signal)
          throw error
        })
        return await publishOutputs(job, [await content(id, completed, job)])
      } catch (error) {
        job.signal.throwIfAborted()
        throw error
      } finally {
        late.end()
      }
    },

    check: (signal) => describeModels(upstream, model, signal),

    close: () => upstream.close(),
  }
}

const pathOf = (id: string): string => `videos/${encodeURIComponent(id)}`

function idOf(created: unknown): string {
  const id = isObject(created) ? created.id : undefined
  if (typeof id === 'string' && id !== '') return id
  throw new UpstreamError("The model's server returned no id for the job, so its result cannot be fetched.")
}

/** Returns a signal that is aborted `CANCEL_LIMIT_MS` after the other one. */
function createLateSignal(signal: AbortSignal, clock: Pick<Clock, 'alarm'>) {
  const late = new AbortController()
  let disarm = () => {}
  const forget = onAbort(signal, () => {
    disarm = clock.alarm(CANCEL_LIMIT_MS, () => late.abort(signal.reason))
  })
  const end = (): void => {
    forget()
    disarm()
  }
  return { signal: late.signal, end }
}

/** The job has ended without a result. */
class JobFailed extends UpstreamError {}

const COMPLETED = ['completed', 'succeeded', 'success', 'done']
const FAILED = ['failed', 'error', 'cancelled', 'canceled', 'deleted', 'expired']

/** Every other status is a stage of a job that has not ended. */
function stateOf(answer: unknown): 'completed' | 'failed' | undefined {
  const status = isObject(answer) ? String(answer.status).toLowerCase() : ''
  if (COMPLETED.includes(status)) return 'completed'
  return FAILED.includes(status) ? 'failed' : undefined
}

/** Removes a job that has not ended, which cancels it where the server can. 409: it is just starting. */
async function removeJob(
  upstream: Upstream,
  path: string,
  clock: Pick<Clock, 'alarm' | 'sleep'>,
  signal: AbortSignal,
): Promise<void> {
  const remove = async (signal: AbortSignal) =>
    (await upstream.send({ method: 'DELETE', path, isQuick: true }, signal)).discard()
  const work = (signal: AbortSignal): Promise<void> =>
    remove(signal).catch(async (error) => {
      if (!(error instanceof UpstreamError && error.status === 409)) throw error
      await clock.sleep(CANCEL_RETRY_MS, signal)
      await remove(signal)
    })
  // The failure that led here is the one to report.
  const timeout = { timeoutMs: CANCEL_LIMIT_MS, reason: () => new Error(), clock, signal }
  await withTimeout(work, timeout).catch(() => {})
}
