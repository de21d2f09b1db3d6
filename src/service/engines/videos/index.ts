/**
 * The engine `videos`: servers with `POST /v1/videos`, as OpenAI, vLLM-Omni and SGLang have it. The server answers with
 * a job, which is polled until its video can be fetched.
 */
import { writeJson } from '../../../protocol/json.js'
import { isObject } from '../../../protocol/parse.js'
import type { RenderJob } from '../engine.js'
import type { ReadEngine } from '../settings.js'
import { sizeText } from '../sizes.js'
import { type Answer, readServer, type Upstream } from '../upstream/index.js'
import { acceptedJob, createJobEngine, type JobServer, type JobState } from '../upstream/jobs.js'
import { publishOutputs } from '../upstream/outputs.js'
import { type FormField, referencesOf } from '../upstream/request-body.js'
import { errorTextOf, UpstreamError } from '../upstream/upstream-error.js'

const POLL_STEPS_MS = [2_000, 3_000, 5_000, 7_000, 10_000]

export const readVideos: ReadEngine = (settings, document) => {
  const model = settings.text('model')
  const { sent, sizes, open } = readServer(settings, document, {
    kind: 'video',
    fixed: ['prompt', 'input_reference'],
    others: ['duration'],
  })

  function fieldsOf(input: RenderJob['input']): readonly FormField[] {
    const { prompt, duration } = input
    const fields: Record<string, unknown> = {
      prompt,
      model,
      ...(!sent.names.includes('duration') && { seconds: duration }),
      ...(sizes.parameters.length > 0 && { size: sizeText(sizes.sizeOf(input)) }),
      ...Object.fromEntries(sent.fieldsOf(input)),
    }
    return Object.entries(fields).flatMap(([name, value]): readonly FormField[] =>
      value === undefined ? [] : [[name, typeof value === 'object' ? writeJson(value) : String(value)]],
    )
  }

  return (parts) => createJobEngine(createVideosServer(open(parts), fieldsOf), parts.clock)
}

/** `fieldsOf`: the form of a request, without the reference. */
function createVideosServer(
  upstream: Upstream,
  fieldsOf: (input: RenderJob['input']) => readonly FormField[],
): JobServer {
  return {
    type: 'videos',
    upstream,
    pollStepsMs: POLL_STEPS_MS,
    async createRequest(job) {
      const references = await referencesOf(job, 1)
      const files = references.map((file): FormField => ['input_reference', file])
      return { method: 'POST', path: 'videos', form: [...fieldsOf(job.input), ...files], isSlow: true }
    },
    accept: (created) => acceptedJob(created.id),

    async poll({ id }, signal) {
      try {
        return stateOf(await upstream.get(pathOf(id), signal), id)
      } catch (error) {
        // vLLM-Omni describes a failed job in an answer with the status of its error. A job may also have not ended.
        if (error instanceof UpstreamError && isObject(error.answer) && error.answer.id === id)
          return stateOf(error.answer, id)
        throw error
      }
    },

    async outputs(completed, job, { id }) {
      const path = await upstream.download(`${pathOf(id)}/content`, job).catch(async (error) => {
        // SGLang does not send a video that it has put into a cloud storage.
        if (!(error instanceof UpstreamError && error.status === 400 && typeof completed.url === 'string'))
          throw error
        return await upstream.download(completed.url, job)
      })
      return await publishOutputs(job, [path])
    },

    /** Removes the job, which cancels it where the server can. */
    async cancel({ id }, signal) {
      const request = { method: 'DELETE', path: pathOf(id) } as const
      ;(await upstream.send(request, signal)).discard()
      return 'unknown'
    },
  }
}

const pathOf = (id: string): string => `videos/${encodeURIComponent(id)}`

const COMPLETED = ['completed', 'succeeded', 'success', 'done']
const FAILED = ['failed', 'error', 'cancelled', 'canceled', 'deleted', 'expired']

/** Every other status is a stage of a job that has not ended. An answer about another job tells nothing. */
function stateOf(answer: Answer, id: string): JobState {
  if ((answer.id ?? id) !== id) return { state: 'unknown' }
  const status = String(answer.status).toLowerCase()
  if (COMPLETED.includes(status)) return { state: 'done', answer }
  if (FAILED.includes(status)) return { state: 'failed', message: errorTextOf(answer) ?? '' }
  return { state: 'running', fraction: Number(answer.progress) / 100 }
}
