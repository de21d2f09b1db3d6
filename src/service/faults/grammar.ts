/**
 * Parses a fault: `<where>:<what>[:<detail>[:<count>]]`, or `latency:<duration>` as an abbreviation for
 * `any:delay:<duration>`. A fault without a count applies to every request: `create:lose::1` applies once,
 * `latency:800ms` applies to every response.
 */
import { RushesError, usageError } from '../../errors.js'
import { nearest } from '../../protocol/text.js'
import { parseDuration } from '../../protocol/units.js'
import { type Effect, type Fault, type FaultTarget, NONSENSE } from './fault.js'

export const FAULT_TARGETS: readonly FaultTarget[] = ['create', 'status', 'output', 'any', 'run']
const LATENCY = 'latency'

const HINT =
  'Write a fault as <where>:<what>[:<detail>[:<count>]], for example create:429:RATE_LIMITED:2 or latency:800ms.'

/** Throws `usage` for an invalid fault. The message quotes the whole fault and suggests the nearest valid word. */
export function parseFault(spec: string): Fault {
  try {
    const [where = '', ...rest] = spec.trim().split(':')
    if (where === LATENCY) return { where: 'any', ...effectAndCount('any', ['delay', ...rest]) }
    const target = FAULT_TARGETS.find((each) => each === where)
    if (target === undefined) throw unknownWord('place', where, [...FAULT_TARGETS, LATENCY])
    return { where: target, ...effectAndCount(target, rest) }
  } catch (error) {
    if (!(error instanceof RushesError)) throw error
    throw usageError(`--fault ${spec}: ${error.message}`, error.hint ?? HINT)
  }
}

function effectAndCount(where: FaultTarget, [what = '', ...rest]: readonly string[]): Omit<Fault, 'where'> {
  const { detail, count } = what === 'redirect' ? splitAfterUrl(rest.join(':')) : split(rest)
  return { effect: parseEffect(where, what, detail), count: parseCount(count) }
}

function split(rest: readonly string[]): { detail: string; count: string } {
  const [detail = '', count = '', ...more] = rest
  if (more.length > 0) throw usageError('A fault has at most four parts.')
  return { detail, count }
}

/** Splits at the last colon that is not part of the URL. A colon directly after a host starts a port, not a count. */
function splitAfterUrl(text: string): { detail: string; count: string } {
  const [, detail = text, count = ''] =
    /^((?:https?:\/\/(?:\[[^\]]*\]|[^:/]*)(?::\d+)?)?[^:]*)(?::([^:]*))?$/i.exec(text) ?? []
  return { detail, count }
}

function parseCount(text: string): number {
  if (text === '') return Number.POSITIVE_INFINITY
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw usageError(
    `"${text}" is not a valid count.`,
    'Use a whole number from 1. Without a count, the fault applies to every request.',
  )
}

function parseEffect(where: FaultTarget, what: string, detail: string): Effect {
  const rows = EFFECTS.filter(({ at }) => at.includes(where))
  const row = rows.find(({ name }) => name === (/^\d+$/.test(what) ? STATUS : what))
  if (row === undefined) {
    const elsewhere = EFFECTS.find(({ name }) => name === what && what !== STATUS)
    if (elsewhere !== undefined)
      throw usageError(`"${what}" works with ${elsewhere.at.join(', ')}, not with ${where}.`)
    const names = rows.map(({ name }) => name)
    throw unknownWord('fault', what, names)
  }
  if (detail !== '' && row.detail === '') throw usageError(`"${what}" takes no detail.`)
  return row.parse(detail, what)
}

interface EffectRow {
  readonly name: string
  /** Syntax of the detail, for messages and docs. Empty if the effect takes no detail. */
  readonly detail: string
  /** Targets that the effect can apply to. */
  readonly at: readonly FaultTarget[]
  /** Throws `usage` for an invalid detail. `what` is the name as typed; for `<status>`, the number. */
  parse(detail: string, what: string): Effect
}

const REQUESTS: readonly FaultTarget[] = ['create', 'status', 'output', 'any']
/** Placeholder name for any status number. */
const STATUS = '<status>'
const DEFAULT_FAILURE = 'The service injected this fault.'

/** All effects. */
export const EFFECTS: readonly EffectRow[] = [
  { name: STATUS, detail: '[code][;name=value]...[;acted]', at: REQUESTS, parse: statusEffect },
  { name: 'reset', detail: '[n | head=n | upload=n]', at: REQUESTS, parse: resetEffect },
  { name: 'lose', detail: '', at: REQUESTS, parse: () => ({ what: 'lose' }) },
  { name: 'close', detail: '', at: REQUESTS, parse: () => ({ what: 'close' }) },
  { name: 'stall', detail: '[n]', at: REQUESTS, parse: byteEffect },
  { name: 'truncate', detail: '[n]', at: REQUESTS, parse: byteEffect },
  {
    name: 'corrupt',
    detail: '[n]',
    at: REQUESTS,
    parse: (detail) => ({ what: 'corrupt', byte: parseByteCount(detail || '0') }),
  },
  {
    name: 'nonsense',
    detail: `[${NONSENSE.join(' | ')}]`,
    at: REQUESTS,
    parse: (detail) => ({ what: 'nonsense', kind: oneOf(detail || 'html', NONSENSE) }),
  },
  {
    name: 'delay',
    detail: '<duration>',
    at: REQUESTS,
    parse: (detail) => ({ what: 'delay', ms: parseDuration(detail, 'delay', 'Examples: 800ms, 2s, 1m.') }),
  },
  { name: 'slow', detail: '<bytes per second>', at: REQUESTS, parse: slowEffect },
  { name: 'redirect', detail: '<URL>', at: REQUESTS, parse: redirectEffect },
  {
    name: 'expire',
    detail: '[403 | 404 | 410]',
    at: ['output'],
    parse: (detail) => ({ what: 'expire', status: Number(oneOf(detail || '410', ['403', '404', '410'])) }),
  },
  {
    name: 'fail',
    detail: '[reason]',
    at: ['run'],
    parse: (detail) => ({ what: 'fail', message: detail || DEFAULT_FAILURE }),
  },
  { name: 'never', detail: '', at: ['run'], parse: () => ({ what: 'never' }) },
]

/** Parses `RATE_LIMITED;retry-after=3`: an error code, then response headers. */
function statusEffect(detail: string, text: string): Effect {
  const status = Number(text)
  if (!/^\d{3}$/.test(text) || status < 100 || status > 599)
    throw usageError(`"${text}" is not a valid HTTP status.`, 'Use a number from 100 to 599.')
  const [code = '', ...more] = detail.split(';').map((part) => part.trim())
  const acted = code === 'acted' || more.includes('acted')
  return {
    what: 'status',
    status,
    code: code === '' || code === 'acted' ? undefined : code,
    headers: Object.fromEntries(more.filter((part) => part !== 'acted').map(parseHeader)),
    acted,
  }
}

function byteEffect(detail: string, what: string): Effect {
  const byte = detail === '' ? undefined : parseByteCount(detail)
  return { what: what as 'stall' | 'truncate', byte }
}

function resetEffect(detail: string): Effect {
  if (detail === '') return { what: 'reset', within: 'start', byte: 0 }
  const [, within = 'body', byte = ''] = /^(?:(head|upload)=)?(.*)$/s.exec(detail) ?? []
  return { what: 'reset', within: within as 'head' | 'upload' | 'body', byte: parseByteCount(byte) }
}

function slowEffect(detail: string): Effect {
  const bytesPerSecond = parseByteCount(detail)
  if (bytesPerSecond > 0) return { what: 'slow', bytesPerSecond }
  throw usageError('The rate must be above 0. Use stall to send nothing.')
}

function redirectEffect(url: string): Effect {
  if (url.startsWith('/') || (/^https?:/i.test(url) && URL.canParse(url))) return { what: 'redirect', url }
  throw usageError(`"${url}" is neither an http or https URL nor a path.`)
}

const SIZE_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  kib: 1024,
  mib: 1024 ** 2,
}

/** Parses a size: `1000`, `64kB`, `1MiB`. */
function parseByteCount(text: string): number {
  const [, amount = '', unit = ''] = /^(\d{1,12})([a-z]*)$/i.exec(text) ?? []
  const factor = SIZE_UNITS[unit.toLowerCase()]
  if (amount !== '' && factor !== undefined) return Number(amount) * factor
  throw usageError(`"${text}" is not a valid size.`, 'Examples: 1000, 64kB, 1MiB.')
}

/** Parses `name=value`. Returns the name in lower case. */
function parseHeader(text: string): readonly [string, string] {
  const [, name, value] = /^([\w!#$%&'*+.^`|~-]+)=([\t\x20-\x7e\x80-\xff]*)$/.exec(text) ?? []
  if (name !== undefined && value !== undefined) return [name.toLowerCase(), value.trim()]
  throw usageError(
    `"${text}" is not a valid option.`,
    'Use ;<header>=<value>, for example ;retry-after=3, or ;acted.',
  )
}

function oneOf<Word extends string>(text: string, words: readonly Word[]): Word {
  const found = words.find((word) => word === text)
  if (found !== undefined) return found
  throw usageError(`Unknown detail "${text}". Use one of ${words.join(', ')}.`)
}

function unknownWord(kind: string, word: string, words: readonly string[]): RushesError {
  const near = nearest(word, words)
  const meant = near === undefined || word === '' ? '' : ` Did you mean "${near}"?`
  const problem = word === '' ? `Missing ${kind}` : `Unknown ${kind} "${word}"`
  return usageError(`${problem}. Use one of ${words.join(', ')}.${meant}`)
}
