/**
 * Redacts the API key in text from a service: some services include the request in their error messages, which end up
 * in logs. Each character of the key is found as it is, and escaped for JSON or for a URL, also more than once.
 */

/** The text that replaces the secret. */
export const REDACTED = '[API key]'

/** Minimum length of a secret that is redacted. A shorter secret would match parts of ordinary words. */
const MIN_SECRET_LENGTH = 8

/** Of a longer secret, the rest is not compared, only counted: a longer expression would take long to compile. */
const MAX_COMPARED_LENGTH = 256

/**
 * What JSON puts before a character that it escapes, up to three times over. Bounded: a service could otherwise send so many
 * backslashes that their comparison takes minutes.
 */
const ESCAPES = '\\\\{0,7}'
const ANY_SPELLING = `(?:${ESCAPES}(?:u00[\\da-fA-F]{2}|[^\\\\%])|%(?:25)*[\\da-fA-F]{2}|%)`

/** An escape that the end of the text cuts. */
const TORN_ESCAPE = '(?:%(?:25)*[\\da-f]?|\\\\+(?:u0{0,2}[\\da-f]?)?)?'

/**
 * Returns a function that redacts one secret. It also redacts a beginning of the secret at the end of the text, because a
 * connection may break in the middle of the secret.
 */
export function createRedact(secret: string): (text: string) => string {
  if (secret.length < MIN_SECRET_LENGTH) return (text) => text
  const spelled = [...secret.slice(0, MAX_COMPARED_LENGTH)].map(spellingsOf)
  const others = Math.max(0, secret.length - MAX_COMPARED_LENGTH)
  const rest = others === 0 ? '' : `(?:${ANY_SPELLING}{${others}}|\\S*$)`
  const beginning = spelled.slice(0, MIN_SECRET_LENGTH).join('')
  const more = spelled
    .slice(MIN_SECRET_LENGTH)
    .reduceRight((inner, character) => `(?:${character}${inner})?`, '')
  const whole = new RegExp(spelled.join('') + rest, 'g')
  const torn = new RegExp(`${beginning}${more}${TORN_ESCAPE}$`)
  return (text) => text.replace(whole, REDACTED).replace(torn, REDACTED)
}

function spellingsOf(character: string): string {
  const itself = character.replace(/[^\w]/, '\\$&')
  const digits = character.charCodeAt(0).toString(16).padStart(2, '0')
  const hex = [...digits].map((digit) => `[${digit}${digit.toUpperCase()}]`).join('')
  return `(?:${ESCAPES}(?:${itself}|u00${hex})|%(?:25)*${hex})`
}
