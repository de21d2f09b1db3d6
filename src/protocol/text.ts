/**
 * Prepares text for users: makes it printable, shortens it, and suggests corrections of mistyped words. Control characters (C0, DEL, C1) could control the terminal, and bidirectional overrides and isolates could
 * show text in another order.
 */
import leven from 'leven'
import { writeJson } from './json.js'

const CONTROL = /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g

/**
 * Returns one printable line: line ends and tabs become a space; other control characters and overrides are removed.
 */
export const printable = (text: string): string => text.replace(/[\t\n\r]+/g, ' ').replace(CONTROL, '')

/** Removes control characters and overrides, but keeps tabs, and line ends as `\n`. */
export const withoutControls = (text: string): string =>
  text
    .replace(/\r\n?/g, '\n')
    .replace(CONTROL, (character) => (character === '\n' || character === '\t' ? character : ''))

/** Joins several lines into one. */
export const onOneLine = (text: string): string =>
  text
    .trim()
    .replace(/([.:;,!?])?\s*\n\s*/g, (_, end: string | undefined) => (end === undefined ? '; ' : `${end} `))

/** Returns JSON without control characters and overrides. `JSON.stringify` escapes C0; the others are escaped here. */
export const printableJson = (value: unknown, indent?: number): string =>
  escapeControls(jsonOf(value, indent))

/** Escapes control characters and overrides that `JSON.stringify` leaves as they are. */
const escapeControls = (json: string): string =>
  json.replace(
    /[\u007f-\u009f\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )

const MAX_LEVELS = 200

/**
 * Serializes a value. V8 parses JSON of any depth but serializes only about 4,000 levels: deeper values are cut to
 * MAX_LEVELS.
 */
function jsonOf(value: unknown, indent: number | undefined): string {
  try {
    return writeJson(value, { indent })
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    return writeJson(withinLevels(value, MAX_LEVELS), { indent })
  }
}

/** Replaces values below `levels` levels by null. */
function withinLevels(value: unknown, levels: number): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (levels === 0) return null
  if (Array.isArray(value)) return value.map((each) => withinLevels(each, levels - 1))
  return Object.fromEntries(
    Object.entries(value).map(([name, each]) => [name, withinLevels(each, levels - 1)]),
  )
}

export const capitalized = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`

/** Ends a text with a full stop, unless it ends with another mark. */
export const asSentence = (text: string): string => (/[.!?]$/.test(text) ? text : `${text}.`)

/** Cuts a long text to `maxLength` characters, with an ellipsis. */
export const withEllipsis = (text: string, maxLength: number): string =>
  text.length <= maxLength ? text : `${text.slice(0, maxLength - 1)}…`

/** Returns one printable line, cut to `maxLength` characters. */
export const shortened = (text: string, maxLength = 300): string => withEllipsis(printable(text), maxLength)

/** `fox, hen and 3 more` */
export function listNames(names: readonly string[], maxNames = 10): string {
  const more = names.length > maxNames ? ` and ${names.length - maxNames} more` : ''
  return `${names.slice(0, maxNames).map(printable).join(', ')}${more}`
}

/** Maximum number of pairs of letters that one search compares: about a millisecond. */
export const MAX_COMPARED = 100_000

/**
 * Returns the candidate closest to a mistyped word; undefined if none is close. The word and the candidates may be of
 * any size: compares them only while `MAX_COMPARED` lasts.
 */
export function nearest(word: string, candidates: readonly string[]): string | undefined {
  const typed = word.toLowerCase()
  let best: { readonly candidate: string; readonly distance: number } | undefined
  let compared = 0
  for (const candidate of candidates) {
    const name = candidate.toLowerCase()
    const minDistance = Math.abs(typed.length - name.length)
    if (minDistance > looseDistance(candidate) || (best !== undefined && minDistance >= best.distance))
      continue
    compared += typed.length * name.length
    if (compared > MAX_COMPARED) break
    const distance = leven(typed, name)
    if (distance <= maxDistance(word, candidate) && (best === undefined || distance < best.distance))
      best = { candidate, distance }
  }
  return best?.candidate
}

/** Joins values for a sentence: `bash, zsh or fish`. */
export const orList = (values: readonly string[]): string =>
  values.length < 2 ? values.join('') : `${values.slice(0, -1).join(', ')} or ${values.at(-1)}`

/** Returns ` Did you mean "list"?`, or an empty text if no candidate is close. */
export function didYouMean(word: string, candidates: readonly string[]): string {
  const near = nearest(word, candidates)
  return near === undefined ? '' : ` Did you mean "${near}"?`
}

/**
 * Returns the maximum edit distance of a suggestion. In a short word, two changed letters make a different word (logs,
 * login), but two swapped or missing letters do not (lsit, hi).
 */
function maxDistance(word: string, candidate: string): number {
  const isShort = Math.min(word.length, candidate.length) <= 4
  const isSame = () => lettersOf(word) === lettersOf(candidate) || candidate.startsWith(word)
  return isShort && !isSame() ? 1 : looseDistance(candidate)
}

const looseDistance = (candidate: string): number => Math.max(2, candidate.length * 0.4)

const lettersOf = (word: string): string => [...word.toLowerCase()].sort().join('')

/** Decodes a part of a URL. Returns one that is not valid as it is. */
export function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** Whether a value has quotes around it, such as those of an env file, which not every program removes. */
export const isQuoted = (value: string): boolean => /^(["']).*\1$/s.test(value)

/** Cuts a text to at most `maxBytes` bytes of UTF-8, without splitting a character. */
export function cutToBytes(text: string, maxBytes: number): string {
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(maxBytes))
  return text.slice(0, read)
}

// Labels: texts that group the runs of the journal. They are never sent to a service.

export const MAX_LABELS = 20
const MAX_LABEL_LENGTH = 100

/** Returns the form in which a label is stored and compared: without spaces at its ends, in Unicode's form NFC. */
export const asLabel = (text: string): string => text.normalize('NFC').trim()

/** Returns the problem of a label in the form of `asLabel`, if any. */
export function labelProblem(label: string): string | undefined {
  if (label === '') return 'a label must not be empty'
  // Format characters are allowed: emoji and some scripts are written with them. Half of a pair has no UTF-8.
  if (printable(label) !== label || /\p{Cs}/u.test(label))
    return 'a label must not contain control characters'
  return [...label].length > MAX_LABEL_LENGTH
    ? `a label must have at most ${MAX_LABEL_LENGTH} characters`
    : undefined
}
