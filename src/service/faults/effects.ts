/** The effects that a fault can have, as one table: the grammar uses it, and a test compares the docs with it. */
import { usageError } from '../../errors.js'
import { parseDuration } from '../../protocol/duration.js'
import { parseByteCount, parseHeaders, parseOptionalByteCount } from './details.js'
import { type Effect, type FaultTarget, NONSENSE, type Nonsense } from './fault.js'

export interface EffectRow {
  readonly name: string
  /** The form of its detail; empty when it takes none. */
  readonly detail: string
  /** The requests that it can apply to. */
  readonly at: readonly FaultTarget[]
  /** Throws `usage` for an invalid detail. */
  parse(detail: string): Effect
}

const REQUESTS: readonly FaultTarget[] = ['create', 'status', 'output', 'any']
const DEFAULT_FAILURE = 'The service injected this fault.'

export const EFFECTS: readonly EffectRow[] = [
  {
    name: '<status>',
    detail: '[code][;name=value]...[;acted]',
    at: REQUESTS,
    parse: () => {
      throw new Error('a status is parsed by its number')
    },
  },
  { name: 'reset', detail: '[n | head=n | upload=n]', at: REQUESTS, parse: resetOf },
  { name: 'lose', detail: '', at: REQUESTS, parse: () => ({ what: 'lose' }) },
  { name: 'close', detail: '', at: REQUESTS, parse: () => ({ what: 'close' }) },
  {
    name: 'stall',
    detail: '[n]',
    at: REQUESTS,
    parse: (detail) => ({ what: 'stall', byte: parseOptionalByteCount(undefined, detail) }),
  },
  {
    name: 'truncate',
    detail: '[n]',
    at: REQUESTS,
    parse: (detail) => ({ what: 'truncate', byte: parseOptionalByteCount(undefined, detail) }),
  },
  {
    name: 'corrupt',
    detail: '[n]',
    at: REQUESTS,
    parse: (detail) => ({ what: 'corrupt', byte: parseOptionalByteCount(0, detail) }),
  },
  { name: 'nonsense', detail: `[${NONSENSE.join(' | ')}]`, at: REQUESTS, parse: nonsenseOf },
  {
    name: 'delay',
    detail: '<duration>',
    at: REQUESTS,
    parse: (detail) => ({ what: 'delay', ms: parseDuration(detail, 'delay', 'Examples: 800ms, 2s, 1m.') }),
  },
  {
    name: 'slow',
    detail: '<bytes per second>',
    at: REQUESTS,
    parse: (detail) => {
      const bytesPerSecond = parseByteCount(detail)
      if (bytesPerSecond === 0) throw usageError('The rate must be above 0. Use stall to send nothing.')
      return { what: 'slow', bytesPerSecond }
    },
  },
  { name: 'redirect', detail: '<URL>', at: REQUESTS, parse: redirectOf },
  {
    name: 'expire',
    detail: '[403 | 404 | 410]',
    at: ['output'],
    parse: expireOf,
  },
  {
    name: 'fail',
    detail: '[reason]',
    at: ['run'],
    parse: (detail) => ({ what: 'fail', message: detail === '' ? DEFAULT_FAILURE : detail }),
  },
  { name: 'never', detail: '', at: ['run'], parse: () => ({ what: 'never' }) },
]

/** `RATE_LIMITED;retry-after=3`: a code, then headers of the answer. */
export function statusEffect(status: number, detail: string): Effect {
  const [code = '', ...more] = detail.split(';').map((part) => part.trim())
  const acted = code === 'acted' || more.includes('acted')
  return {
    what: 'status',
    status,
    code: code === '' || code === 'acted' ? undefined : code,
    headers: parseHeaders(more.filter((part) => part !== 'acted')),
    acted,
  }
}

function resetOf(detail: string): Effect {
  if (detail === '') return { what: 'reset', within: 'start', byte: 0 }
  const [, within = 'body', byte = ''] = /^(?:(head|upload)=)?(.*)$/s.exec(detail) ?? []
  return { what: 'reset', within: within as 'head' | 'upload' | 'body', byte: parseByteCount(byte) }
}

function nonsenseOf(detail: string): Effect {
  const kind = detail === '' ? 'html' : NONSENSE.find((each) => each === detail)
  if (kind === undefined) throw usageError(`Unknown detail "${detail}". Use one of ${NONSENSE.join(', ')}.`)
  return { what: 'nonsense', kind: kind satisfies Nonsense }
}

const EXPIRED = ['403', '404', '410']

function expireOf(detail: string): Effect {
  if (detail === '' || EXPIRED.includes(detail)) return { what: 'expire', status: Number(detail || 410) }
  throw usageError(`Unknown detail "${detail}". Use one of ${EXPIRED.join(', ')}.`)
}

function redirectOf(url: string): Effect {
  if (url.startsWith('/') || (/^https?:/i.test(url) && URL.canParse(url))) return { what: 'redirect', url }
  throw usageError(`"${url}" is neither an http or https URL nor a path.`)
}
