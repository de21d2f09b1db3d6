/**
 * Injects faults between a client and the service, to test how clients handle errors. Used by `serve --fault` and by
 * the proxy of the tests. docs/faults.md describes the grammar and each effect.
 *
 *   fault.ts        types and descriptions of faults
 *   grammar.ts      parses a fault
 *   apply-fault.ts  applies faults to one request, over any transport
 *
 * This folder does not use sockets: a transport passes in an `Exchange` and performs the `FaultOutcome`.
 */
import { buffer } from 'node:stream/consumers'
import type { Clock } from '../../host/clock.js'
import { RUNS_PATH } from '../../protocol/id.js'
import { writeJson } from '../../protocol/json.js'
import { isObject, parseJson } from '../../protocol/parse.js'
import { percentDecoded } from '../../protocol/text.js'
import { OUTPUTS_PATH } from '../stored-run.js'
import {
  applyFault,
  createResponse,
  type Exchange,
  type FaultOutcome,
  type FaultResponse,
  type MatchingEffects,
  singleChunk,
} from './apply-fault.js'
import { describeEffect, type EffectOf, type Fault, type RequestKind } from './fault.js'

export interface FaultsOptions {
  /** Faults in order of precedence. Read at each request, so the caller may add faults to the array. */
  readonly faults: readonly Fault[]
  readonly clock: Clock
  /** Called for each applied fault, with text such as `create answered 429`. */
  onFault?(text: string): void
}

export interface Faults {
  /** Returns undefined for a request that faults cannot apply to. */
  intercept(request: InterceptedRequest): Interception | undefined
}

export interface InterceptedRequest {
  readonly method: string
  /** Path with the query. */
  readonly path: string
  /** Whether an earlier request used the same connection. */
  readonly reused: boolean
}

export interface Interception {
  /** If false, only lasting effects of earlier faults can change the response. */
  readonly isAffected: boolean
  /** Rejects with the signal's reason when aborted, and with the error of `ask`. */
  respond(exchange: Exchange): Promise<FaultOutcome>
}

export function createFaults({ faults, clock, onFault = () => {} }: FaultsOptions): Faults {
  const uses = new Map<Fault, number>()
  const lasting = createLastingEffects(takeRunEffect)

  const usesOf = (fault: Fault): number => uses.get(fault) ?? 0
  const available = (): readonly Fault[] => faults.filter((fault) => usesOf(fault) < fault.count)
  const use = (fault: Fault): void => void uses.set(fault, usesOf(fault) + 1)

  function takeRunEffect(): RunEffect | undefined {
    const fault = available().find(({ where }) => where === 'run')
    if (fault === undefined) return undefined
    use(fault)
    onFault(describeEffect('run', fault.effect))
    return fault.effect as RunEffect
  }

  function takeEffects(kind: RequestKind, { path, reused }: InterceptedRequest): MatchingEffects {
    const expired = kind === 'output' ? lasting.expired(path) : undefined
    if (expired !== undefined) return { effect: expired, delays: [], pace: undefined }
    const delays: EffectOf<'delay'>[] = []
    let effect: MatchingEffects['effect']
    let pace: MatchingEffects['pace']
    for (const fault of available()) {
      const { where, effect: next } = fault
      if ((where !== kind && where !== 'any') || (next.what === 'close' && !reused)) continue
      if (next.what === 'delay') delays.push(next)
      else if (next.what === 'slow' && pace === undefined) pace = next
      else if (next.what !== 'slow' && effect === undefined) effect = next
      else continue
      use(fault)
    }
    if (effect?.what === 'expire') lasting.expire(path, effect)
    return { effect, delays, pace }
  }

  return {
    intercept(request) {
      const kind = requestKindOf(request.method, request.path)
      if (kind === undefined) return undefined
      const matching = takeEffects(kind, request)
      const { effect, delays, pace } = matching
      const effects = [effect, ...delays, pace].filter((each) => each !== undefined)
      for (const each of effects) onFault(describeEffect(kind, each))
      return {
        isAffected: effects.length > 0,
        respond(exchange) {
          const ask = async () => lasting.rewrite(kind, request.path, await exchange.ask())
          return applyFault(matching, kind, { ...exchange, ask }, clock)
        },
      }
    },
  }
}

type RunEffect = EffectOf<'fail' | 'never'>

interface LastingEffects {
  /** Makes a link expire: requests to it get this effect, and later statuses show a new link. */
  expire(path: string, effect: EffectOf<'expire'>): void
  expired(path: string): EffectOf<'expire'> | undefined
  /** Applies the lasting effects to a response that contains a run. */
  rewrite(kind: RequestKind, path: string, response: FaultResponse): Promise<FaultResponse>
}

/** Query parameter that makes a new link to the same output. The service ignores it. */
const RENEWED = 'link'

/**
 * Effects that last longer than one request: runs that are shown as failed or never finished, and expired links. They
 * change only the service's responses, so they work with any service. The run in the service does not change.
 */
function createLastingEffects(takeRunEffect: () => RunEffect | undefined): LastingEffects {
  const runs = new Map<string, RunEffect>()
  const links = new Map<string, EffectOf<'expire'>>()

  function renewed(address: unknown): unknown {
    if (typeof address !== 'string' || !URL.canParse(address)) return address
    const url = new URL(address)
    for (let number = 2; links.has(linkOf(url.href)); number++) url.searchParams.set(RENEWED, String(number))
    return url.href
  }

  return {
    expire: (path, effect) => void links.set(linkOf(path), effect),
    expired: (path) => links.get(linkOf(path)),

    async rewrite(kind, path, response) {
      if (kind === 'output' || !isJson(response) || response.status >= 300) return response
      const bytes = await buffer(response.body)
      const parsed = parseJson(bytes.toString())
      if (!parsed.ok || !isObject(parsed.value)) return { ...response, body: singleChunk(bytes) }
      const run = parsed.value
      const accepted = kind === 'create' ? takeRunEffect() : undefined
      if (accepted !== undefined && typeof run.id === 'string') runs.set(run.id, accepted)
      const effect = runs.get(runIdOf(path) ?? '')
      const rewritten = withLinks(effect === undefined ? run : withEffect(run, effect), renewed)
      return createResponse(response.status, response.headers, writeJson(rewritten))
    },
  }
}

const isJson = ({ headers }: FaultResponse): boolean =>
  /^application\/json\b/.test(headers['content-type'] ?? '')

/** Changes the result of a finished run. Returns an unfinished run unchanged. */
function withEffect(run: Record<string, unknown>, effect: RunEffect): Record<string, unknown> {
  if (run.status !== 'succeeded' && run.status !== 'failed') return run
  if (effect.what === 'never')
    return { ...run, status: 'processing', output: null, error: null, finished_at: null }
  const error = { code: 'render_failed', message: effect.message }
  return { ...run, status: 'failed', output: null, error }
}

function withLinks(
  run: Record<string, unknown>,
  renewed: (address: unknown) => unknown,
): Record<string, unknown> {
  const { output } = run
  if (!isObject(output) || !Array.isArray(output.urls)) return run
  return { ...run, output: { ...output, urls: output.urls.map(renewed) } }
}

/** Not anchored at the start, because a reverse proxy may add a path prefix. */
const RUNS = new RegExp(`${RUNS_PATH}/?$`)
const ONE_RUN = new RegExp(`${RUNS_PATH}/([^/]+)$`)
const OUTPUT = new RegExp(`${OUTPUTS_PATH}/[^/]+/.+$`)

const withoutQuery = (path: string): string => path.replace(/\?.*$/s, '')

/**
 * Determines the kind from method and path, because a proxy knows nothing else. Returns undefined for requests that
 * faults cannot apply to.
 */
export function requestKindOf(method: string, path: string): RequestKind | undefined {
  const pathname = withoutQuery(path)
  if (method === 'POST') return RUNS.test(pathname) ? 'create' : undefined
  if (method !== 'GET' && method !== 'HEAD') return undefined
  if (ONE_RUN.test(pathname)) return 'status'
  return OUTPUT.test(pathname) ? 'output' : undefined
}

function runIdOf(path: string): string | undefined {
  const [, id] = ONE_RUN.exec(withoutQuery(path)) ?? []
  return id === undefined ? undefined : percentDecoded(id)
}

/**
 * Returns path and query of a link, without the path prefix of a reverse proxy. The result is the same on both sides of
 * the proxy.
 */
function linkOf(address: string): string {
  const { pathname, search } = new URL(address, 'http://service.invalid')
  return `${pathname.slice(Math.max(0, pathname.indexOf(`${OUTPUTS_PATH}/`)))}${search}`
}
