/**
 * Reads and writes JSON without changing integers of 64 bits, such as seeds: an integer that a number cannot hold is a
 * BigInt. Other numbers are read as `JSON.parse` reads them.
 */
import { randomBytes } from 'node:crypto'

/** Integers of 64 bits, signed or unsigned. */
const [MIN, MAX] = [-(2n ** 63n), 2n ** 64n - 1n]

/**
 * Returns the integer that a text is, in decimal, or as in YAML in hexadecimal or octal; undefined for other text, and
 * beyond 64 bits. A BigInt only where a number would change it.
 */
export function integerOf(text: string): number | bigint | undefined {
  // 64 bits have at most 22 octal digits. The time of `BigInt` grows quadratically.
  if (!/^([+-]?\d{1,40}|0x[\da-f]{1,40}|0o[0-7]{1,40})$/i.test(text)) return undefined
  const integer = BigInt(text)
  if (Number.isSafeInteger(Number(integer))) return Number(integer)
  return integer >= MIN && integer <= MAX ? integer : undefined
}

/** Begins the strings that stand for long integers. Random, so that no other string begins with it. */
const MARK = randomBytes(12).toString('hex')
const MARKED = new RegExp(`"${MARK}(-?\\d+)"`, 'g')

/** An integer that may be too long for a number. Bounded: a number of any length would exhaust the stack of the pattern. */
const LONG_INTEGER = /(?<![\w.+-])-?[1-9]\d{15,19}(?![\w.+-])/g

/** Like `JSON.parse`. Throws its errors. */
export function readJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (!/\d{16}/.test(text)) return value
  const marked = markIntegers(text)
  if (marked === text) return value
  try {
    return JSON.parse(marked, (_, each: unknown) =>
      typeof each === 'string' && each.startsWith(MARK) ? BigInt(each.slice(MARK.length)) : each,
    )
  } catch (error) {
    // The reviver is recursive, and `JSON.parse` alone reads any depth.
    if (error instanceof RangeError) return value
    throw error
  }
}

/** Replaces long integers of valid JSON by strings. Skips strings, of which one may be a picture or have millions of escapes. */
function markIntegers(text: string): string {
  const parts: string[] = []
  for (let at = 0; at < text.length; ) {
    const quote = text.indexOf('"', at)
    const outside = text.slice(at, quote === -1 ? text.length : quote)
    parts.push(
      outside.replace(LONG_INTEGER, (digits) =>
        typeof integerOf(digits) === 'bigint' ? `"${MARK}${digits}"` : digits,
      ),
    )
    at = quote === -1 ? text.length : endOfString(text, quote)
    if (quote !== -1) parts.push(text.slice(quote, at))
  }
  return parts.join('')
}

/** Returns the offset after the string that begins at `start`. */
function endOfString(text: string, start: number): number {
  for (let at = text.indexOf('"', start + 1); ; at = text.indexOf('"', at + 1)) {
    let escapes = 0
    while (text.charAt(at - 1 - escapes) === '\\') escapes++
    if (escapes % 2 === 0) return at + 1
  }
}

interface WriteOptions {
  /** Spaces for each level; 0 writes one line. */
  readonly indent?: number | undefined
  /** Called for each value, before it is written. */
  replace?(value: unknown): unknown
}

/** Like `JSON.stringify`, but writes a BigInt as its digits. */
export function writeJson(value: unknown, { indent = 0, replace }: WriteOptions = {}): string {
  let hasLongIntegers = false
  const write = (_: string, given: unknown): unknown => {
    const each = replace === undefined ? given : replace(given)
    if (typeof each !== 'bigint') return each
    hasLongIntegers = true
    return `${MARK}${each}`
  }
  const json = JSON.stringify(value, write, indent) ?? 'null'
  return hasLongIntegers ? json.replace(MARKED, '$1') : json
}

const QUOTE_OR_MARK = /\\[\s\S]|["{}[\],]/g

/**
 * Reads JSON from a connection that broke: the values that arrived completely, up to the last mark or the last string.
 * Undefined if there is none, and for text that is not JSON. Control characters in strings, which some services do not
 * escape, become spaces.
 */
export function readTornJson(torn: string): unknown {
  const text = torn.replace(/^\uFEFF/, '').replace(/[\u0000-\u001f]/g, ' ')
  /** Closing marks of the open values. */
  const open: string[] = []
  let isInString = false
  let endOfString = 0
  let endOfMark = 0
  for (const { 0: token, index } of text.matchAll(QUOTE_OR_MARK)) {
    if (token === '"') {
      isInString = !isInString
      if (!isInString) endOfString = index + 1
    } else if (!isInString && !token.startsWith('\\')) {
      endOfMark = token === ',' ? index : index + 1
      if (token === '{') open.push('}')
      else if (token === '[') open.push(']')
      else if (token !== ',') open.pop()
      if (open.length === 0) break
    }
  }
  const closing = open.reverse().join('')
  // The last string may be the name of a field.
  for (const end of endOfString > endOfMark ? [endOfString, endOfMark] : [endOfMark])
    try {
      return readJson(text.slice(0, end) + closing)
    } catch {}
  return undefined
}
