/** The engine `replicate`: predictions of Replicate, with their results fetched at once: they are deleted after an hour. */
import { isObject } from '../../../protocol/parse.js'
import type { JobHandle } from '../engine.js'
import type { Upstream } from '../upstream/index.js'
import { acceptedJob, createJobEngine, type JobServer, type JobState } from '../upstream/jobs.js'
import type { SourceFile } from '../upstream/request-body.js'
import { UpstreamError } from '../upstream/upstream-error.js'
import type { CreateHosted, HostedParts, HostedSettings } from './index.js'
import { publishResult, type SentFiles, sentInput } from './media.js'

type Json = Readonly<Record<string, unknown>>

const POLL_STEPS_MS = [1_000, 2_000, 3_000, 5_000]
/** 256 KB as base64. */
const MAX_DATA_BYTES = 190_000

export const createReplicateEngine: CreateHosted = (settings, parts) =>
  createJobEngine(createReplicateServer(settings, parts), parts.clock)

function createReplicateServer(settings: HostedSettings, { open }: HostedParts): JobServer<undefined> {
  const [name = '', version] = settings.model.split(':')
  const upstream = open(settings.url)
  const sent: SentFiles = {
    maxDataBytes: MAX_DATA_BYTES,
    upload: (file, signal) => uploadFile(upstream, file, signal),
  }
  const pathOf = ({ id, urls }: JobHandle): string => urls?.get ?? `predictions/${encodeURIComponent(id)}`

  return {
    type: 'replicate',
    upstream,
    pollStepsMs: POLL_STEPS_MS,
    async create(job) {
      return {
        async request() {
          const input = await sentInput(job, settings, sent)
          const path = version === undefined ? `models/${name}/predictions` : 'predictions'
          const json = { ...(version !== undefined && { version }), input }
          return { method: 'POST', path, json, isQuick: true }
        },
        accept(answer) {
          const { id, urls } = isObject(answer) ? answer : {}
          const { get, cancel } = isObject(urls) ? urls : {}
          return acceptedJob(id, { get, cancel })
        },
        describe: (error) => describeRefusal(error, upstream, version === undefined),
      }
    },

    async poll(handle, signal) {
      return stateOf(await upstream.value({ method: 'GET', path: pathOf(handle) }, signal))
    },

    async outputs(_, job, handle) {
      const answer = await upstream.value({ method: 'GET', path: pathOf(handle) }, job.signal)
      return await publishResult(answer, isObject(answer) ? answer.output : undefined, upstream, job)
    },

    async cancel(handle, signal) {
      const path = handle.urls?.cancel ?? `predictions/${encodeURIComponent(handle.id)}/cancel`
      const answer = await upstream.value({ method: 'POST', path, isQuick: true, once: true }, signal)
      const { status, started_at: startedAt } = isObject(answer) ? answer : {}
      if (status === 'aborted' || (status === 'canceled' && startedAt === null)) return 'not charged'
      if (status === 'succeeded') return 'succeeded'
      return status === 'canceled' && startedAt !== undefined ? 'charged' : 'unknown'
    },
  }
}

function stateOf(answer: unknown): JobState<undefined> {
  const { status, error, output, data_removed: isRemoved } = isObject(answer) ? answer : ({} as Json)
  if (status === 'starting') return { state: 'waiting' }
  if (status === 'processing') return { state: 'running' }
  if (status === 'failed' || status === 'canceled')
    return { state: 'failed', message: textOf(error) || `Replicate reports the state "${status}".` }
  if (status === 'aborted')
    return {
      state: 'failed',
      message: textOf(error) || 'Replicate aborted the prediction before it started.',
    }
  if (status !== 'succeeded') return { state: 'unknown' }
  if (isRemoved === true && (output === null || output === undefined))
    return { state: 'failed', message: 'Replicate has deleted the result: it keeps results for an hour.' }
  return { state: 'done', result: undefined }
}

const textOf = (error: unknown): string => (typeof error === 'string' ? error.trim() : '')

/** Adds the fields that Replicate refuses, and what to do about a model without a version. */
function describeRefusal(
  error: UpstreamError,
  { clean }: Upstream,
  isLatest: boolean,
): UpstreamError | undefined {
  const { status, answer } = error
  const fields =
    isObject(answer) && Array.isArray(answer.invalid_fields) ? answer.invalid_fields.filter(isObject) : []
  const texts = fields.map(({ field, description }) => `${field}: ${description}`)
  if (texts.length > 0) return new UpstreamError(`${error.message} (${clean(texts.join('; '))})`, { status })
  if (status !== 404 || !isLatest) return undefined
  const hint = 'Only official models run without a version: set model: owner/name:version.'
  return new UpstreamError(`${error.message} ${hint}`, { status })
}

async function uploadFile(upstream: Upstream, file: SourceFile, signal: AbortSignal): Promise<string> {
  const answer = await upstream.value({ method: 'POST', path: 'files', form: [['content', file]] }, signal)
  const { urls } = isObject(answer) ? answer : {}
  if (isObject(urls) && typeof urls.get === 'string') return urls.get
  throw new UpstreamError('Replicate did not accept the upload of a reference image.')
}
