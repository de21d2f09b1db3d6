/**
 * Reads and writes JSON without changing integers of 64 bits, such as seeds: an integer that a number cannot hold is a
 * BigInt. Other numbers are read as `JSON.parse` reads them.
 */

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

/**
 * An integer that may be too long for a number, and the character before it. No lookbehind: older
 * browsers would not load the console.
 */
const LONG_INTEGER = /(^|[^\w.+-])(-?[1-9]\d{15,19})(?![\w.+-])/g

/** A string cannot begin so in JSON, except with the escape below: JSON has no control characters. */
const MARK = '\u0001'
const ESCAPED_MARK = '\\u0001'

/** Like `JSON.parse`. Throws its errors. */
export function readJson(text: string): unknown {
  const value: unknown = JSON.parse(text)
  if (text.search(LONG_INTEGER) === -1) return value
  const marked = markIntegers(text)
  if (marked === text) return value
  try {
    return JSON.parse(marked, (_, each: unknown) => {
      if (typeof each !== 'string' || !each.startsWith(MARK)) return each
      return each.startsWith(MARK, 1) ? each.slice(1) : integerOf(each.slice(1))
    })
  } catch (error) {
    // The reviver is recursive, and `JSON.parse` alone reads any depth.
    if (error instanceof RangeError) return value
    throw error
  }
}

/** Replaces long integers of valid JSON by strings that begin with the mark, and doubles the mark of other strings. */
function markIntegers(text: string): string {
  const parts: string[] = []
  for (let at = 0; at < text.length; ) {
    const quote = text.indexOf('"', at)
    const outside = text.slice(at, quote === -1 ? text.length : quote)
    parts.push(
      outside.replace(LONG_INTEGER, (written, before: string, digits: string) =>
        typeof integerOf(digits) === 'bigint' ? `${before}"${ESCAPED_MARK}${digits}"` : written,
      ),
    )
    if (quote === -1) break
    at = endOfString(text, quote)
    const string = text.slice(quote, at)
    // Names of fields are not revived.
    const isMarked = string.startsWith(`"${ESCAPED_MARK}`) && !/^\s*:/.test(text.slice(at, at + 100))
    parts.push(isMarked ? `"${ESCAPED_MARK}${string.slice(1)}` : string)
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
export function writeJson(value: unknown, options: WriteOptions = {}): string {
  const { indent = 0, replace = (each: unknown) => each } = options
  try {
    return JSON.stringify(value, (_, each: unknown) => replace(each), indent) ?? 'null'
  } catch (error) {
    if (!(error instanceof TypeError) || !error.message.includes('BigInt')) throw error
    return createWriter(indent, replace)(value, '\n')
  }
}

function createWriter(indent: number, replace: (value: unknown) => unknown) {
  /** `lineStart`: the line end before the value, and the spaces of its line. */
  return function write(given: unknown, lineStart: string): string {
    const value = replace(given)
    if (typeof value === 'bigint') return String(value)
    if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null'
    const [before, after, colon] =
      indent === 0 ? ['', '', ':'] : [`${lineStart}${' '.repeat(indent)}`, lineStart, ': ']
    const parts = Array.isArray(value)
      ? value.map((each) => write(each, before))
      : Object.entries(value).flatMap(([name, each]) =>
          each === undefined ? [] : [`${JSON.stringify(name)}${colon}${write(each, before)}`],
        )
    const [open, close] = Array.isArray(value) ? '[]' : '{}'
    return parts.length === 0
      ? `${open}${close}`
      : `${open}${before}${parts.join(`,${before}`)}${after}${close}`
  }
}
