/** The engine `replicate`: predictions of Replicate, with their results fetched at once: they are deleted after an hour. */
import { isObject } from '../../../protocol/parse.js'
import type { Engine } from '../engine.js'
import type { Answer } from '../upstream/index.js'
import { acceptedJob, createJobEngine, type JobServer, type JobState } from '../upstream/jobs.js'
import { UpstreamError } from '../upstream/upstream-error.js'
import { type HostedModel, publishResult, type SentFiles, sentInput } from './index.js'

const POLL_STEPS_MS = [1_000, 2_000, 3_000, 5_000]
/** 256 KB as base64. */
const MAX_DATA_BYTES = 190_000

export const createReplicateEngine = (model: HostedModel): Engine =>
  createJobEngine(createReplicateServer(model), model.clock)

function createReplicateServer(model: HostedModel): JobServer {
  const { upstream } = model
  const [name = '', version] = model.model.split(':')
  const pathOf = (id: string): string => `predictions/${encodeURIComponent(id)}`
  const files: SentFiles = {
    maxDataBytes: MAX_DATA_BYTES,
    async upload(file, signal) {
      const form = [['content', file]] as const
      const { urls } = await upstream.value({ method: 'POST', path: 'files', form, isSlow: true }, signal)
      if (isObject(urls) && typeof urls.get === 'string') return urls.get
      throw new UpstreamError('Replicate did not accept the upload of a reference image.')
    },
  }

  return {
    type: 'replicate',
    upstream,
    pollStepsMs: POLL_STEPS_MS,
    async createRequest(job) {
      const input = await sentInput(job, model, files)
      const path = version === undefined ? `models/${name}/predictions` : 'predictions'
      return { method: 'POST', path, json: { version, input } }
    },
    accept: (answer) => acceptedJob(answer.id),
    /** Adds the fields that Replicate refuses, and what to do about a model without a version. */
    describeRefusal({ message, status, answer }) {
      const { invalid_fields: fields } = isObject(answer) ? answer : {}
      const texts = (Array.isArray(fields) ? fields.filter(isObject) : []).map(
        ({ field, description }) => `${field}: ${description}`,
      )
      if (texts.length > 0) return `${message} (${upstream.clean(texts.join('; '))})`
      return status === 404 && version === undefined
        ? `${message} Only official models run without a version: set model: owner/name:version.`
        : undefined
    },

    async poll({ id }, signal) {
      return stateOf(await upstream.get(pathOf(id), signal))
    },

    outputs: (answer, job) => publishResult(answer, answer.output, upstream, job),

    async cancel({ id }, signal) {
      const answer = await upstream.value({ method: 'POST', path: `${pathOf(id)}/cancel` }, signal)
      const { status, started_at: startedAt } = answer
      if (status === 'aborted' || (status === 'canceled' && startedAt === null)) return 'not charged'
      if (status === 'succeeded') return 'succeeded'
      return status === 'canceled' && startedAt !== undefined ? 'charged' : 'unknown'
    },
  }
}

function stateOf(answer: Answer): JobState {
  const { status, error, output, data_removed: isRemoved } = answer
  if (status === 'starting') return { state: 'waiting' }
  if (status === 'processing') return { state: 'running' }
  if (/^(failed|canceled|aborted)$/.test(`${status}`)) {
    const text = typeof error === 'string' ? error.trim() : ''
    return { state: 'failed', message: text || `Replicate reports the state "${status}".` }
  }
  if (status !== 'succeeded') return { state: 'unknown' }
  if (isRemoved === true && (output === null || output === undefined))
    return { state: 'failed', message: 'Replicate has deleted the result: it keeps results for an hour.' }
  return { state: 'done', answer }
}
