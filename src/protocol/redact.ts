/**
 * Redacts the API key in text from a service: some services include the request in their error messages, which end up
 * in logs.
 */

/** The text that replaces the secret. */
export const REDACTED = '[API key]'

/** Minimum length of a secret that is redacted. A shorter secret would match parts of ordinary words. */
const MIN_SECRET_LENGTH = 8
/** Minimum length of a secret after its own escapes were replaced. */
const MIN_PLAIN_LENGTH = 4

/** An incomplete escape at the end of a text. */
const TORN_ESCAPE = /(?:%[\da-f]?|\\|\\?u(?:0(?:0[\da-f]?)?)?)$/i

/** Range of offsets in the text. The end is exclusive. */
type TextRange = readonly [start: number, end: number]

/** A text with its escapes decoded, and the offsets of each character in the original text. */
interface DecodedText {
  readonly codes: Uint16Array
  readonly starts: Uint32Array
  readonly ends: Uint32Array
  readonly length: number
}

/**
 * Returns a function that redacts one secret, however it is escaped. It also redacts a beginning of the secret at the
 * end of the text, because a connection may break in the middle of the secret. The time grows only linearly with the
 * length of the text.
 */
export function createRedact(secret: string): (text: string) => string {
  if (secret.length < MIN_SECRET_LENGTH) return (text) => text
  const literal = createSearch(secret)
  const { codes, length } = readWholly(secret)
  const plain = length < MIN_PLAIN_LENGTH ? secret : String.fromCharCode(...codes.subarray(0, length))
  const decoded = createSearch(plain)
  return (text) => {
    const spans = spansOf(text, readAsIs(text), literal)
    if (/[\\%]/.test(text)) spans.push(...spansOf(text, readWholly(text), decoded))
    return withoutSpans(text, spans)
  }
}

/** A secret may itself contain escapes, which `readWholly` would join with the text before it. */
function readAsIs(text: string): DecodedText {
  const { codes, starts, ends } = emptyText(text.length)
  for (let at = 0; at < text.length; at++) {
    codes[at] = text.charCodeAt(at)
    starts[at] = at
    ends[at] = at + 1
  }
  return { codes, starts, ends, length: text.length }
}

/**
 * Decodes escapes until none is left. Encoders do not encode some escapes that the secret itself contains: `URL` keeps
 * its `%41` and encodes its `"`. So both the text and the secret are decoded: `%XX` and `u00XX` become their character,
 * and `\` is removed. No two of these escapes overlap, so all spellings of the secret, with any escapes and encoded any
 * number of times, become equal.
 */
function readWholly(text: string): DecodedText {
  const { codes, starts, ends } = emptyText(text.length)
  let length = 0
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === BACKSLASH) continue
    starts[length] = text.charCodeAt(at - 1) === BACKSLASH && ESCAPED.includes(code) ? at - 1 : at
    ends[length] = at + 1
    codes[length++] = code
    for (let size = escapeAtEnd(codes, length); size > 0; size = escapeAtEnd(codes, length)) {
      const decoded = (digitOf(codes[length - 2]) << 4) + digitOf(codes[length - 1])
      length -= size
      if (decoded === BACKSLASH) break
      codes[length] = decoded
      ends[length++] = at + 1
    }
  }
  return { codes, starts, ends, length }
}

/** Returns the length of the escape at the end of the characters; 0 without an escape. */
function escapeAtEnd(codes: Uint16Array, length: number): number {
  if (digitOf(codes[length - 1]) < 0 || digitOf(codes[length - 2]) < 0) return 0
  if (codes[length - 3] === PERCENT) return 3
  const isUnicode = codes[length - 3] === ZERO && codes[length - 4] === ZERO
  return isUnicode && ((codes[length - 5] ?? 0) | 32) === LOWER_U ? 5 : 0
}

/** Returns the value of a hexadecimal digit, or -1 for any other character. */
function digitOf(code = 0): number {
  if (code >= ZERO && code <= ZERO + 9) return code - ZERO
  const letter = (code | 32) - LOWER_A
  return letter >= 0 && letter < 6 ? letter + 10 : -1
}

const emptyText = (size: number): Omit<DecodedText, 'length'> => ({
  codes: new Uint16Array(size),
  starts: new Uint32Array(size),
  ends: new Uint32Array(size),
})

const codeOf = (character: string): number => character.charCodeAt(0)
const [PERCENT, BACKSLASH, ZERO, LOWER_A, LOWER_U] = [...'%\\0au'].map(codeOf) as [
  number,
  number,
  number,
  number,
  number,
]
/** Characters that form an escape together with a `\` before them. */
const ESCAPED: readonly number[] = [...'u"/'].map(codeOf)

interface Search {
  readonly secret: string
  readonly borders: Uint32Array
}

const createSearch = (secret: string): Search => ({ secret, borders: bordersOf(secret) })

/** Finds the secret with the Knuth-Morris-Pratt algorithm, in one pass. */
function spansOf(
  text: string,
  { codes, starts, ends, length }: DecodedText,
  { secret, borders }: Search,
): TextRange[] {
  const spans: TextRange[] = []
  const last = String.fromCharCode(...codes.subarray(Math.max(0, length - 5), length))
  const torn = length - (TORN_ESCAPE.exec(last)?.[0].length ?? 0)
  let matched = 0
  for (let at = 0; at <= length; at++) {
    if (at >= torn && matched >= MIN_SECRET_LENGTH) spans.push([starts[at - matched] ?? 0, text.length])
    if (at === length) break
    matched = extended(matched, codes[at] ?? 0, secret, borders)
    if (matched < secret.length) continue
    spans.push([starts[at + 1 - matched] ?? 0, ends[at] ?? 0])
    matched = 0
  }
  return spans
}

/** Returns the number of matched characters of the secret after one more character `code`. */
function extended(matched: number, code: number, secret: string, borders: Uint32Array): number {
  let length = matched
  while (length > 0 && secret.charCodeAt(length) !== code) length = borders[length - 1] ?? 0
  return secret.charCodeAt(length) === code ? length + 1 : 0
}

/** Returns, for each beginning of the secret, the length of its longest shorter beginning that is also its end. */
function bordersOf(secret: string): Uint32Array {
  const borders = new Uint32Array(secret.length)
  for (let at = 1; at < secret.length; at++)
    borders[at] = extended(borders[at - 1] ?? 0, secret.charCodeAt(at), secret, borders)
  return borders
}

function withoutSpans(text: string, spans: readonly TextRange[]): string {
  let result = ''
  let end = 0
  for (const span of spans.toSorted(([a], [b]) => a - b)) {
    if (span[0] >= end) result += `${text.slice(end, span[0])}${REDACTED}`
    end = Math.max(end, span[1])
  }
  return result + text.slice(end)
}
