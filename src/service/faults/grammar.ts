/**
 * How a fault is written: `<where>:<what>[:<detail>[:<count>]]`, or `latency:<duration>` for `any:delay:<duration>`.
 * Without a count it applies every time: `create:lose::1` applies once, `latency:800ms` to every response.
 */
import { RushesError, usageError } from '../../errors.js'
import { nearest } from '../../protocol/nearest.js'
import { parseHttpStatus } from './details.js'
import { EFFECTS, statusEffect } from './effects.js'
import type { Effect, Fault, FaultTarget } from './fault.js'

export const WHERES: readonly FaultTarget[] = ['create', 'status', 'output', 'any', 'run']
const LATENCY = 'latency'

const HINT =
  'Write a fault as <where>:<what>[:<detail>[:<count>]], for example create:429:RATE_LIMITED:2 or latency:800ms.'

/** Throws `usage`, quoting the whole fault and suggesting the nearest word. */
export function parseFault(spec: string): Fault {
  try {
    const [where = '', ...rest] = spec.trim().split(':')
    if (where === LATENCY) return { where: 'any', ...effectAndCount('any', ['delay', ...rest]) }
    const known = WHERES.find((each) => each === where)
    if (known === undefined) throw usageError(noSuch('place', where, [...WHERES, LATENCY]))
    return { where: known, ...effectAndCount(known, rest) }
  } catch (error) {
    if (!(error instanceof RushesError)) throw error
    throw usageError(`--fault ${spec}: ${error.message}`, error.hint ?? HINT)
  }
}

function effectAndCount(where: FaultTarget, [what = '', ...rest]: readonly string[]): Omit<Fault, 'where'> {
  const { detail, count } = what === 'redirect' ? splitAfterUrl(rest.join(':')) : split(rest)
  return { effect: effectOf(where, what, detail), count: countOf(count) }
}

function effectOf(where: FaultTarget, what: string, detail: string): Effect {
  const rows = EFFECTS.filter(({ at }) => at.includes(where))
  const isStatus = /^\d+$/.test(what) && rows.some(({ name }) => name === '<status>')
  if (isStatus) return statusEffect(parseHttpStatus(what), detail)
  const row = rows.find(({ name }) => name === what)
  if (row === undefined) {
    const elsewhere = EFFECTS.find(({ name }) => name === what && what !== '<status>')
    if (elsewhere !== undefined)
      throw usageError(`"${what}" works with ${elsewhere.at.join(', ')}, not with ${where}.`)
    throw usageError(
      noSuch(
        'fault',
        what,
        rows.map(({ name }) => name),
      ),
    )
  }
  if (detail !== '' && row.detail === '') throw usageError(`"${what}" takes no detail.`)
  return row.parse(detail)
}

function split(rest: readonly string[]): { detail: string; count: string } {
  const [detail = '', count = '', ...more] = rest
  if (more.length > 0) throw usageError('A fault has at most four parts.')
  return { detail, count }
}

/** A URL contains colons itself; one after a host without a port starts a port. */
function splitAfterUrl(text: string): { detail: string; count: string } {
  const [, detail = text, count = ''] =
    /^((?:https?:\/\/(?:\[[^\]]*\]|[^:/]*)(?::\d+)?)?[^:]*)(?::([^:]*))?$/i.exec(text) ?? []
  return { detail, count }
}

function countOf(text: string): number {
  if (text === '') return Number.POSITIVE_INFINITY
  if (/^[1-9]\d{0,8}$/.test(text)) return Number(text)
  throw usageError(
    `"${text}" is not a valid count.`,
    'Use a whole number from 1. Without a count, the fault applies to every request.',
  )
}

function noSuch(kind: string, word: string, words: readonly string[]): string {
  const near = nearest(word, words)
  const meant = near === undefined || word === '' ? '' : ` Did you mean "${near}"?`
  return `${word === '' ? `Missing ${kind}` : `Unknown ${kind} "${word}"`}. Use one of ${words.join(', ')}.${meant}`
}
