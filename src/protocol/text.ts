/**
 * Text for people: printable, shortened, quoted for a shell, with suggestions for mistyped words. Control
 * characters (C0, DEL, C1) could control the terminal, and bidirectional overrides and isolates could show a text
 * in another order than it has.
 */
import leven from 'leven'

const CONTROL = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

/** One printable line: line ends and tabs become a space, other control characters and overrides are removed. */
export const printable = (text: string): string => text.replace(/[\t\n\r]+/g, ' ').replace(CONTROL, '')

/** Text of several lines without control characters and overrides; line ends and tabs stay. */
export const withoutControls = (text: string): string =>
  text.replace(CONTROL, (character) => (character === '\n' || character === '\t' ? character : ''))

/** Several lines as one. */
export const onOneLine = (text: string): string =>
  text
    .trim()
    .replace(/([.:;,!?])?\s*\n\s*/g, (_, end: string | undefined) => (end === undefined ? '; ' : `${end} `))

/** JSON without control characters and overrides: C0 is escaped by JSON itself, the others here. */
export const printableJson = (value: unknown, indent?: number): string =>
  escapeControls(jsonOf(value, indent))

/** Escapes what JSON does not escape. */
export const escapeControls = (json: string): string =>
  json.replace(
    /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

const MAX_LEVELS = 200

/** V8 parses JSON of any depth and writes about 4,000 levels: deeper values are cut to MAX_LEVELS. */
function jsonOf(value: unknown, indent: number | undefined): string {
  try {
    return JSON.stringify(value, null, indent) ?? 'null'
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return JSON.stringify(withinLevels(value, MAX_LEVELS), null, indent)
  }
}

/** Deeper values become null. */
function withinLevels(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (levels === 0) return null
  if (Array.isArray(value)) return value.map((each) => withinLevels(each, levels - 1))
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, withinLevels(each, levels - 1)]),
  )
}

/** The start of a long text, with an ellipsis. */
export const shortened = (text: string, maxLength = 300): string =>
  text.length <= maxLength ? text : `${text.slice(0, maxLength - 1)}…`

/** The candidate that a mistyped word most likely means; undefined when none is close. */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const scored = candidates
    .map((candidate) => ({ candidate, distance: leven(word.toLowerCase(), candidate.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)
  const best = scored[0]
  return best !== undefined && best.distance <= maxDistance(word, best.candidate) ? best.candidate : undefined
}

/** ` Did you mean "list"?`, or nothing when no candidate is close. */
export function didYouMean(word: string, candidates: readonly string[]): string {
  const near = nearest(word, candidates)
  return near === undefined ? '' : ` Did you mean "${near}"?`
}

/** In a short word two other letters make another word (logs, login); two swapped or missing ones do not (lsit, hi). */
function maxDistance(word: string, candidate: string): number {
  const isShort = Math.min(word.length, candidate.length) <= 4
  const isSame = lettersOf(word) === lettersOf(candidate) || candidate.startsWith(word)
  return isShort && !isSame ? 1 : Math.max(2, candidate.length * 0.4)
}

const lettersOf = (word: string): string => [...word.toLowerCase()].sort().join('')

/** A word as a POSIX shell reads it back. */
export const quoteWord = (word: string): string => {
  if (/^[\w.:/@%+-]+$/.test(word) && !word.startsWith('-')) return word
  return printable(word) === word ? `'${word.replaceAll("'", `'\\''`)}'` : ansiQuoted(word)
}

/** For bash, zsh and ksh: the bytes of a word with characters that are not printed. */
const ansiQuoted = (word: string): string =>
  `$'${[...new TextEncoder().encode(word)].map((byte) => `\\x${byte.toString(16).padStart(2, '0')}`).join('')}'`
