/** A provider that charges for each job that has started, over a network that loses requests and answers. */
import { CONNECT_TIMEOUT_MS } from '../../src/host/exchange.js'
import { HttpFailure, type HttpResponse, type ServerRequest } from '../../src/host/http.js'
import type { Charge } from '../../src/service/engines/engine.js'
import { createUpstream } from '../../src/service/engines/upstream/index.js'
import { createJobEngine } from '../../src/service/engines/upstream/jobs.js'
import { createProviderServer } from '../support/model-servers/provider.js'
import { responseOf } from '../support/responses.js'
import type { Host, Random, Timeline } from './timeline.js'

interface Job {
  readonly id: string
  readonly input: Readonly<Record<string, unknown>>
  readonly startsAtMs: number
  readonly endsAtMs: number
  readonly fails: boolean
  canceledAtMs: number | undefined
}

const MAX_ANSWER_MS = 4_000
/** Longer than the time limit of a run. */
const HANG_MS = 100_000

export function createSimulatedProvider(random: Random, timeline: Timeline) {
  const jobs: Job[] = []
  /** Requests by prompt, and those that were certainly refused. */
  const posts = new Map<string, number>()
  const refusals = new Map<string, number>()
  let isCalm = false
  const count = (counts: Map<string, number>, prompt: string) =>
    void counts.set(prompt, (counts.get(prompt) ?? 0) + 1)

  const isCharged = ({ startsAtMs, canceledAtMs = Number.POSITIVE_INFINITY, fails }: Job): boolean =>
    startsAtMs < canceledAtMs && !fails

  function accept(input: Job['input']): Job {
    const startsAtMs = timeline.nowMs + random.between(0, 6_000)
    const isLong = random.chance(0.15)
    const endsAtMs = startsAtMs + (isLong ? random.between(40_000, 90_000) : random.between(500, 20_000))
    const id = `job_${jobs.length + 1}`
    const job = { id, input, startsAtMs, endsAtMs, fails: random.chance(0.1), canceledAtMs: undefined }
    jobs.push(job)
    return job
  }

  function create(input: Job['input']): HttpResponse {
    const prompt = String(input.prompt)
    count(posts, prompt)
    const luck = isCalm ? 1 : random.next()
    if (luck < 0.08) {
      count(refusals, prompt)
      return answer(429, { detail: 'throttled' })
    }
    if (luck < 0.14) {
      count(refusals, prompt)
      throw failure('ECONNREFUSED', false)
    }
    if (luck < 0.18) {
      count(refusals, prompt)
      return answer(422, { detail: 'no' })
    }
    if (luck < 0.22) throw failure('ECONNRESET', true)
    const { id } = accept(input)
    if (luck < 0.3) throw failure('ECONNRESET', true)
    if (luck < 0.34) return answer(502, undefined)
    return answer(201, { request_id: id })
  }

  function look(id: string): HttpResponse {
    const job = jobs.find((each) => each.id === id)
    if (job === undefined) return answer(404, { status: 'NOT_FOUND' })
    const nowMs = timeline.nowMs
    if (job.canceledAtMs !== undefined) return answer(200, { request_id: id, status: 'aborted' })
    const status = nowMs < job.startsAtMs ? 'IN_QUEUE' : nowMs < job.endsAtMs ? 'IN_PROGRESS' : 'COMPLETED'
    return answer(200, { request_id: id, status: job.fails && status === 'COMPLETED' ? 'aborted' : status })
  }

  async function respond(request: ServerRequest): Promise<HttpResponse> {
    const { method, url } = request
    if (method === 'POST') return create(JSON.parse(await textOf(request)))
    if (!isCalm && random.chance(0.1)) return answer(random.chance(0.5) ? 502 : 404, undefined)
    return look(url.pathname.split('/')[2] ?? '')
  }

  /** Ends the job. Its answer may be lost. */
  function cancel(id: string): Charge | 'succeeded' {
    const job = jobs.find((each) => each.id === id)
    if (job === undefined) return 'unknown'
    if (timeline.nowMs < job.endsAtMs) job.canceledAtMs ??= timeline.nowMs
    if (!isCalm && random.chance(0.2)) return 'unknown'
    if (!isCharged(job)) return 'not charged'
    return job.canceledAtMs === undefined ? 'succeeded' : 'charged'
  }

  return {
    jobs,
    posts,
    refusals,
    isCharged,
    calm() {
      isCalm = true
    },
    /** The engine of one process. */
    createEngine(host: Host) {
      const clock = timeline.clockOf(host)
      const fetch = async (request: ServerRequest): Promise<HttpResponse> => {
        const { signal } = request
        const startedAtMs = clock.monotonic()
        await clock.sleep(random.between(0, MAX_ANSWER_MS / 2), signal)
        // A process that was suspended while it connected sends nothing (src/host/exchange.ts).
        if (clock.monotonic() - startedAtMs > CONNECT_TIMEOUT_MS + MAX_ANSWER_MS)
          throw failure('UND_ERR_CONNECT_TIMEOUT', false)
        const response = await respond(request).catch((error) => error as Error)
        const hangs = request.method === 'POST' && !isCalm && random.chance(0.05)
        await clock.sleep(hangs ? HANG_MS : random.between(0, MAX_ANSWER_MS), signal).catch(() => {
          throw failure('ABORTED', true)
        })
        if (response instanceof Error) throw response
        return response
      }
      const url = new URL('http://provider.test')
      const upstream = createUpstream({ url, hasCost: true, parts: { fetch, clock } })
      const server = {
        ...createProviderServer(upstream),
        outputs: async (_: unknown, _job: unknown, { id }: { readonly id: string }) => [
          { name: id, contentType: 'image/png' },
        ],
        async cancel({ id }: { readonly id: string }, signal: AbortSignal) {
          await clock.sleep(random.between(0, MAX_ANSWER_MS), signal)
          return cancel(id)
        },
      }
      return createJobEngine(server, clock)
    },
  }
}

const failure = (code: string, sent: boolean): HttpFailure => new HttpFailure(code, { sent, code })

const answer = (status: number, value: unknown): HttpResponse =>
  responseOf({ status, body: value === undefined ? '<html>' : value })

async function textOf({ stream, body }: ServerRequest): Promise<string> {
  if (body !== undefined) return Buffer.from(body).toString()
  const chunks: Uint8Array[] = []
  for await (const chunk of stream?.chunks() ?? []) chunks.push(chunk)
  return Buffer.concat(chunks).toString()
}
