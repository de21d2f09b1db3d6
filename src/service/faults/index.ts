/**
 * Injects faults between a client and the service, to test error paths: `serve --fault`, and the proxy of the tests. The
 * grammar and the effect of each fault: docs/faults.md.
 *
 *   fault.ts        a fault as a value, and its description
 *   grammar.ts      text to fault
 *   apply-fault.ts  one fault on one request, over any transport
 *
 * Limit: no sockets. A transport passes in an `Exchange` and performs the `FaultOutcome`.
 */

import type { Clock } from '../../host/clock.js'
import { RUNS_PATH } from '../../protocol/id.js'
import { isObject } from '../../protocol/parse.js'
import { OUTPUTS_PATH } from '../stored-run.js'
import {
  applyFault,
  createResponse,
  type Exchange,
  type FaultOutcome,
  type FaultResponse,
  type MatchingEffects,
  readAll,
  singleChunk,
} from './apply-fault.js'
import { describeEffect, type EffectOf, type Fault, type RequestKind } from './fault.js'

export interface FaultsOptions {
  /** In order of precedence. Read at each request, so the caller may add faults. */
  readonly faults: readonly Fault[]
  readonly clock: Pick<Clock, 'sleep'>
  /** Called for each fault that is applied, with text such as `create answered 429`. */
  onFault?(text: string): void
}

export interface Faults {
  /** Undefined for a request that faults never affect. */
  intercept(request: InterceptedRequest): Interception | undefined
}

export interface InterceptedRequest {
  readonly method: string
  /** With its query. */
  readonly path: string
  /** Whether the connection has carried a request before. */
  readonly reused: boolean
}

export interface Interception {
  /** False: the response is the service's own, apart from lasting effects of earlier faults. */
  readonly isAffected: boolean
  /** Rejects with the signal's reason once it is aborted, and when `ask` rejects. */
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
  /** The link responds with this from now on; a later status shows a new link. */
  expire(path: string, effect: EffectOf<'expire'>): void
  expired(path: string): EffectOf<'expire'> | undefined
  /** Applies the effects to a response about a run. */
  rewrite(kind: RequestKind, path: string, response: FaultResponse): Promise<FaultResponse>
}

/** A query parameter that the service ignores makes a new link. */
const RENEWED = 'link'

/**
 * Effects that outlast one request: runs shown with another end, and expired links. They rewrite the service's responses, so that
 * they work in front of any service; the run inside the service does not change.
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
      const bytes = await readAll(response.body)
      const run = parseJson(bytes.toString())
      if (!isObject(run)) return { ...response, body: singleChunk(bytes) }
      const accepted = kind === 'create' ? takeRunEffect() : undefined
      if (accepted !== undefined && typeof run.id === 'string') runs.set(run.id, accepted)
      const effect = runs.get(runIdOf(path) ?? '')
      const shown = withLinks(effect === undefined ? run : withEffect(run, effect), renewed)
      return createResponse(response.status, response.headers, JSON.stringify(shown))
    },
  }
}

const isJson = ({ headers }: FaultResponse): boolean =>
  /^application\/json\b/.test(headers['content-type'] ?? '')

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Changes how a run ended; a run that has not ended stays as it is. */
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

/** Not anchored at the start: a reverse proxy may add a path before the service's. */
const RUNS = new RegExp(`${RUNS_PATH}/?$`)
const ONE_RUN = new RegExp(`${RUNS_PATH}/([^/]+)$`)
const OUTPUT = new RegExp(`${OUTPUTS_PATH}/[^/]+/.+$`)

const withoutQuery = (path: string): string => path.replace(/\?.*$/s, '')

/** By method and path, which is all that a proxy knows. Undefined for requests that faults never affect. */
export function requestKindOf(method: string, path: string): RequestKind | undefined {
  const bare = withoutQuery(path)
  if (method === 'POST') return RUNS.test(bare) ? 'create' : undefined
  if (method !== 'GET' && method !== 'HEAD') return undefined
  if (ONE_RUN.test(bare)) return 'status'
  return OUTPUT.test(bare) ? 'output' : undefined
}

function runIdOf(path: string): string | undefined {
  const [, id] = ONE_RUN.exec(withoutQuery(path)) ?? []
  if (id === undefined) return undefined
  try {
    return decodeURIComponent(id)
  } catch {
    return id
  }
}

/** A link without the host and the path that a reverse proxy adds, so that it is the same inside and outside. */
function linkOf(address: string): string {
  const { pathname, search } = new URL(address, 'http://service.invalid')
  return `${pathname.slice(Math.max(0, pathname.indexOf(`${OUTPUTS_PATH}/`)))}${search}`
}
