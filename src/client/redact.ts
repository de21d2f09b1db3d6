/** Takes the API key out of what a service said: some echo the request in their errors, and errors end up in logs. */

/** What is written in place of the secret. */
export const REDACTED = '[API key]'

/** A shorter secret would be found in ordinary words. */
const MIN_SECRET_LENGTH = 8

/**
 * What stands for another character: nothing, in JSON (`\u0072`, `\/`), in a URL (`%72`), or in both. A secret may contain `%` and `\`
 * itself, so the text is read in each of these ways.
 */
const ESCAPES: readonly RegExp[] = [
  /(?!)/y,
  /\\(?:u00([\da-f]{2})|(["\\/]))/iy,
  /%([\da-f]{2})/iy,
  /\\(?:u00([\da-f]{2})|(["\\/]))|%([\da-f]{2})/iy,
]

/** Offsets in the text, the end exclusive. */
type Span = readonly [start: number, end: number]

/**
 * The redacting function for one secret, in all its spellings. At the end of the text the start of the secret is redacted too: a
 * connection may break in the middle of it. The time grows with the length of the text alone.
 */
export function createRedact(secret: string): (text: string) => string {
  if (secret.length < MIN_SECRET_LENGTH) return (text) => text
  const borders = bordersOf(secret)
  return (text) => {
    const ways = /[\\%]/.test(text) ? ESCAPES : ESCAPES.slice(0, 1)
    return withoutSpans(
      text,
      ways.flatMap((escapePattern) => spansOf(text, { secret, borders, escapePattern })),
    )
  }
}

interface Search {
  readonly secret: string
  readonly borders: Uint32Array
  readonly escapePattern: RegExp
}

/** One pass of Knuth, Morris and Pratt over the characters of the text. */
function spansOf(text: string, { secret, borders, escapePattern }: Search): readonly Span[] {
  const spans: Span[] = []
  const starts = new Uint32Array(text.length)
  let matched = 0
  let count = 0
  for (let at = 0; at < text.length; count++) {
    starts[count] = at
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
    matched = extended(matched, code, secret, borders)
    if (matched < secret.length) continue
    spans.push([starts[count + 1 - matched] ?? 0, at])
    matched = 0
  }
  if (matched >= MIN_SECRET_LENGTH) spans.push([starts[count - matched] ?? 0, text.length])
  return spans
}

const PERCENT = '%'.charCodeAt(0)
const BACKSLASH = '\\'.charCodeAt(0)

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

function withoutSpans(text: string, spans: readonly Span[]): string {
  let left = ''
  let end = 0
  for (const span of spans.toSorted(([a], [b]) => a - b)) {
    if (span[0] >= end) left += `${text.slice(end, span[0])}${REDACTED}`
    end = Math.max(end, span[1])
  }
  return left + text.slice(end)
}
