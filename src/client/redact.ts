/** Redacts the API key in text from a service: some echo the request in their errors, and errors end up in logs. */

/** Replaces the secret. */
export const REDACTED = '[API key]'

/** A shorter secret would be found in ordinary words. */
const MIN_SECRET_LENGTH = 8
/** The same bound for a secret whose own escapes are replaced. */
const MIN_PLAIN_LENGTH = 4

/**
 * Escapes for another character: none, in JSON (`\u0072`, `\/`), in a URL (`%72`), or in both. A secret may
 * contain `%` and `\` itself, so the text is read in each of these ways.
 */
const ESCAPES: readonly RegExp[] = [
  /(?!)/y,
  /\\(?:u00([\da-f]{2})|(["\\/]))/iy,
  /%([\da-f]{2})/iy,
  /\\(?:u00([\da-f]{2})|(["\\/]))|%([\da-f]{2})/iy,
]

/** The beginning of an escape, at the end of a text. */
const TORN_ESCAPE = /(?:%[\da-f]?|\\|\\?u(?:0(?:0[\da-f]?)?)?)$/i

/** Offsets in the text, the end exclusive. */
type TextRange = readonly [start: number, end: number]

/** A text without its escapes, and where each character is written. */
interface DecodedText {
  readonly codes: Uint16Array
  readonly starts: Uint32Array
  readonly ends: Uint32Array
  readonly length: number
}

/**
 * The redacting function for one secret, in all its spellings. At the end of the text the start of the secret is
 * redacted too: a connection may break in the middle of it. The time grows with the length of the text alone.
 */
export function createRedact(secret: string): (text: string) => string {
  if (secret.length < MIN_SECRET_LENGTH) return (text) => text
  const literal = createSearch(secret)
  const { codes, length } = readWholly(secret)
  const plain =
    length < MIN_PLAIN_LENGTH ? undefined : createSearch(String.fromCharCode(...codes.subarray(0, length)))
  return (text) => {
    const hasEscapes = /[\\%]/.test(text)
    const ways = hasEscapes ? ESCAPES : ESCAPES.slice(0, 1)
    const spans = ways.flatMap((escapePattern) => spansOf(text, readOnce(text, escapePattern), literal))
    if (hasEscapes && plain !== undefined) spans.push(...spansOf(text, readWholly(text), plain))
    return withoutSpans(text, spans)
  }
}

/** Each escape is replaced once. */
function readOnce(text: string, escapePattern: RegExp): DecodedText {
  const decodedText = emptyText(text.length)
  let length = 0
  for (let at = 0; at < text.length; length++) {
    decodedText.starts[length] = at
    let code = text.charCodeAt(at++)
    if (code === PERCENT || code === BACKSLASH) {
      escapePattern.lastIndex = at - 1
      const found = escapePattern.exec(text)
      if (found !== null) {
        const [whole, json, itself, url] = found
        code = itself?.charCodeAt(0) ?? Number.parseInt(json ?? url ?? '', 16)
        at += whole.length - 1
      }
    }
    decodedText.codes[length] = code
    decodedText.ends[length] = at
  }
  return { ...decodedText, length }
}

/**
 * Encoders leave some of the escapes that a secret contains itself as they are: `URL` keeps its `%41` and encodes its
 * `"`. So escapes are replaced, in the text as in the secret, until none is left: `%XX` and `u00XX` by their character,
 * and `\` by nothing. No two of these overlap; so every spelling of the secret, with any escapes, encoded any number of
 * times, becomes the same.
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

/** How many of the characters at the end are an escape; 0 where they are none. */
function escapeAtEnd(codes: Uint16Array, length: number): number {
  if (digitOf(codes[length - 1]) < 0 || digitOf(codes[length - 2]) < 0) return 0
  if (codes[length - 3] === PERCENT) return 3
  const isUnicode = codes[length - 3] === ZERO && codes[length - 4] === ZERO
  return isUnicode && ((codes[length - 5] ?? 0) | 32) === LOWER_U ? 5 : 0
}

/** The value of a hexadecimal digit; -1 for any other character. */
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
/** What may follow a `\` that belongs to it. */
const ESCAPED: readonly number[] = [...'u"/'].map(codeOf)

interface Search {
  readonly secret: string
  readonly borders: Uint32Array
}

const createSearch = (secret: string): Search => ({ secret, borders: bordersOf(secret) })

/** One pass of Knuth, Morris and Pratt. */
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

/** How many characters of the secret end with `code`, after `matched` of them were found. */
function extended(matched: number, code: number, secret: string, borders: Uint32Array): number {
  let length = matched
  while (length > 0 && secret.charCodeAt(length) !== code) length = borders[length - 1] ?? 0
  return secret.charCodeAt(length) === code ? length + 1 : 0
}

/** For each beginning of the secret, the length of the longest shorter one that it ends with. */
function bordersOf(secret: string): Uint32Array {
  const borders = new Uint32Array(secret.length)
  for (let at = 1; at < secret.length; at++)
    borders[at] = extended(borders[at - 1] ?? 0, secret.charCodeAt(at), secret, borders)
  return borders
}

function withoutSpans(text: string, spans: readonly TextRange[]): string {
  let left = ''
  let end = 0
  for (const span of spans.toSorted(([a], [b]) => a - b)) {
    if (span[0] >= end) left += `${text.slice(end, span[0])}${REDACTED}`
    end = Math.max(end, span[1])
  }
  return left + text.slice(end)
}
