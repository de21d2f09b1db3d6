/**
 * Faults that outlast one request: runs shown with another end, and expired links. They rewrite the service's
 * responses, so that they work in front of any service; the run inside the service does not change.
 */
import { isObject } from '../../protocol/parse.js'
import { readAll } from './bytes.js'
import type { EffectOf, RequestKind } from './fault.js'
import type { FaultResponse } from './fault-response.js'
import { createResponse } from './fault-response.js'
import { linkOf, runIdOf } from './request-kind.js'

type RunEffect = EffectOf<'fail' | 'never'>

export interface LastingEffects {
  /** The link responds with this from now on; a later status shows a new link. */
  expire(path: string, effect: EffectOf<'expire'>): void
  expired(path: string): EffectOf<'expire'> | undefined
  /** Applies the lasting effects to a response about a run. */
  rewrite(kind: RequestKind, path: string, answer: FaultResponse): Promise<FaultResponse>
}

/** A query parameter that the service ignores makes a new link. */
const RENEWED = 'link'

export function createLastingEffects(takeRun: () => RunEffect | undefined): LastingEffects {
  const runs = new Map<string, RunEffect>()
  const links = new Map<string, EffectOf<'expire'>>()

  function renewed(address: unknown): unknown {
    if (typeof address !== 'string' || !URL.canParse(address)) return address
    const url = new URL(address)
    for (let number = 2; links.has(linkOf(url.href)); number++) url.searchParams.set(RENEWED, String(number))
    return url.href
  }

  function assignEffect(run: Record<string, unknown>): void {
    const effect = takeRun()
    if (effect !== undefined && typeof run.id === 'string') runs.set(run.id, effect)
  }

  return {
    expire: (path, effect) => void links.set(linkOf(path), effect),
    expired: (path) => links.get(linkOf(path)),

    async rewrite(kind, path, answer) {
      if (kind === 'output' || !isJson(answer) || answer.status >= 300) return answer
      const text = await readAll(answer.body)
      const run = parsed(text.toString())
      if (!isObject(run)) return { ...answer, body: again(text) }
      if (kind === 'create') assignEffect(run)
      const effect = runs.get(runIdOf(path) ?? '')
      const shown = withLinks(effect === undefined ? run : withEffect(run, effect), renewed)
      return createResponse(answer.status, answer.headers, JSON.stringify(shown))
    },
  }
}

async function* again(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

const isJson = ({ headers }: FaultResponse): boolean =>
  /^application\/json\b/.test(headers['content-type'] ?? '')

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Changes how a run ended; until it has ended it is shown as it is. */
function withEffect(run: Record<string, unknown>, effect: RunEffect): Record<string, unknown> {
  if (run.status !== 'succeeded' && run.status !== 'failed') return run
  if (effect.what === 'never')
    return { ...run, status: 'processing', output: null, error: null, finished_at: null }
  return {
    ...run,
    status: 'failed',
    output: null,
    error: { code: 'render_failed', message: effect.message },
  }
}

function withLinks(
  run: Record<string, unknown>,
  renewed: (address: unknown) => unknown,
): Record<string, unknown> {
  const { output } = run
  if (!isObject(output) || !Array.isArray(output.urls)) return run
  return { ...run, output: { ...output, urls: output.urls.map(renewed) } }
}
