/**
 * `serve --fault`: lets the next requests go wrong, so that a script's error paths can be tried. `run:fail` fails a render
 * instead.
 */
import { STATUS_CODES } from 'node:http'
import { Socket } from 'node:net'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { usageError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import { RUNS_PATH } from '../../protocol/id.js'
import { problemOf } from '../../protocol/problems.js'
import { parseDuration } from '../../protocol/units.js'
import type { Engine } from '../engines/engine.js'
import { OUTPUTS_PATH } from '../store/run.js'

export interface Fault {
  /** `any`: creates, status requests and downloads. */
  readonly where: 'create' | 'status' | 'output' | 'any' | 'run'
  /** A status code, or the name of an effect. */
  readonly what: number | 'reset' | 'lose' | 'stall' | 'latency' | 'fail'
  /** The error code of a status, or the milliseconds of a latency. */
  readonly detail?: string | number
  /** Number of requests, or runs. Infinity: all. */
  readonly times: number
}

const FORM = /^(create|status|output|run):([1-5]\d\d|reset|lose|stall|fail)(?::([a-z_]*))?(?::(\d{1,9}))?$/i
const HINT =
  'Write create, status or output, then a status code with an error code, reset, lose or stall, then how often: ' +
  'create:429:RATE_LIMITED:2, output:reset:1. Or latency:800ms, run:fail.'

/** Throws `usage` for an invalid fault. */
export function parseFault(spec: string): Fault {
  const [, latency] = /^latency:(.*)$/.exec(spec) ?? []
  if (latency !== undefined) {
    const detail = parseDuration(latency, `--fault ${spec}`, 'Examples: 800ms, 2s, 1m.')
    return { where: 'any', what: 'latency', detail, times: Number.POSITIVE_INFINITY }
  }
  const [, where, word = '', detail = '', times = Number.POSITIVE_INFINITY] = FORM.exec(spec) ?? []
  const isStatus = /\d/.test(word)
  if (where === undefined || (where === 'run') !== (word === 'fail') || (detail !== '' && !isStatus))
    throw usageError(`--fault ${spec} is not a valid fault.`, HINT)
  const what = (isStatus ? Number(word) : word) as Fault['what']
  return { where: where as Fault['where'], what, detail, times: Number(times) }
}

export interface Faults {
  /** Returns the faults that apply now, each used once: the first of `where`, and every latency. */
  take(where: Fault['where']): readonly Fault[]
  readonly clock: Clock
}

/** `onFault` gets text such as `create answered 429`. */
export function createFaults(given: readonly Fault[], clock: Clock, onFault: (text: string) => void): Faults {
  const left = given.map((fault) => ({ fault, times: fault.times }))
  return {
    clock,
    take(where) {
      const first = left.find((each) => each.fault.where === where && each.times > 0)
      if (first !== undefined) first.times--
      const latencies = where === 'run' ? [] : given.filter(({ what }) => what === 'latency')
      const taken = first === undefined ? latencies : [first.fault, ...latencies]
      for (const fault of taken) onFault(`${where} ${describe(fault)}`)
      return taken
    },
  }
}

const TEXTS = {
  reset: 'was reset before the service acted',
  lose: 'lost its response after the service acted',
  stall: 'stalled without a response',
  fail: 'will end as failed',
}

function describe({ what, detail }: Fault): string {
  if (typeof what === 'number') return ['answered', what, detail].filter(Boolean).join(' ')
  return what === 'latency' ? `delayed by ${detail} ms` : TEXTS[what]
}

/** Fails the runs of `run:fail` before anything is sent. */
export const withFailures = <Any extends Engine>(engine: Any, faults: Faults): Any => ({
  ...engine,
  async render(job) {
    if (faults.take('run').length > 0) throw new Error('The service injected this fault.')
    return await engine.render(job)
  },
})

/** Call it before the routes are registered. Faults apply only to requests over a real connection. */
export function addFaultHooks(app: FastifyInstance, { take, clock }: Faults): void {
  const taken = new WeakMap<FastifyRequest, readonly Fault[]>()
  const closing = new AbortController()
  app.addHook('preClose', async () => closing.abort())

  app.addHook('onRequest', async (request, reply) => {
    const { socket } = request.raw
    const where = whereOf(request)
    if (where === undefined || !(socket instanceof Socket)) return
    const faults = take(where)
    taken.set(request, faults)
    const { what, detail } = faults[0] ?? {}
    if (what === 'reset' || what === 'stall') {
      reply.hijack()
      if (what === 'reset') socket.resetAndDestroy()
      else closing.signal.addEventListener('abort', () => socket.destroy())
    } else if (typeof what === 'number') {
      const message =
        problemOf(`${detail}`)?.cause ?? STATUS_CODES[what] ?? 'The service injected this fault.'
      return reply.code(what).send({ error: { message, ...(detail && { code: detail }) } })
    }
  })

  app.addHook('onSend', async (request, reply, payload) => {
    const faults = taken.get(request) ?? []
    for (const { what, detail } of faults)
      if (what === 'latency') await clock.sleep(Number(detail), closing.signal).catch(() => {})
    if (faults[0]?.what !== 'lose') return payload
    if (payload instanceof Readable) payload.destroy()
    reply.removeHeader('content-length')
    request.raw.socket.resetAndDestroy()
    return ''
  })
}

function whereOf({ method, url }: FastifyRequest): Fault['where'] | undefined {
  const path = url.replace(/\?.*$/s, '')
  if (method === 'POST' && path === RUNS_PATH) return 'create'
  if (method !== 'GET' && method !== 'HEAD') return undefined
  if (path.startsWith(`${RUNS_PATH}/`)) return 'status'
  return path.startsWith(`${OUTPUTS_PATH}/`) ? 'output' : undefined
}
