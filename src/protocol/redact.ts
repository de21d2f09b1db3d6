/**
 * Redacts the API key in text from a service: some services include the request in their error messages, which end up
 * in logs. It is found as it is, as JSON has it, and as a URL has it.
 */

/** The text that replaces the secret. */
export const REDACTED = '[API key]'

/** Minimum length of a secret that is redacted. A shorter secret would match parts of ordinary words. */
const MIN_SECRET_LENGTH = 8

/**
 * Returns a function that redacts one secret. It also redacts a beginning of the secret at the end of the text, because a
 * connection may break in the middle of the secret.
 */
export function createRedact(secret: string): (text: string) => string {
  if (secret.length < MIN_SECRET_LENGTH) return (text) => text
  const spellings = spellingsOf(secret)
  return (text) => {
    const redacted = spellings.reduce((rest, spelling) => rest.replaceAll(spelling, REDACTED), text)
    const torn = Math.max(...spellings.map((spelling) => tornAtEnd(redacted, spelling)))
    return torn === 0 ? redacted : `${redacted.slice(0, -torn)}${REDACTED}`
  }
}

/** Returns the secret as it is and as encoders write it, the longest first: one may contain another. */
function spellingsOf(secret: string): readonly string[] {
  const json = JSON.stringify(secret).slice(1, -1)
  const urls = [encodeURI, encodeURIComponent].map((encode) => encode(secret.toWellFormed()))
  const inLowerCase = urls.map((url) => url.replace(/%../g, (escaped) => escaped.toLowerCase()))
  const all = new Set([secret, json, json.replaceAll('/', '\\/'), ...urls, ...inLowerCase])
  return [...all].sort((a, b) => b.length - a.length)
}

/** Returns the length of the beginning of the spelling with which the text ends; 0 for a shorter one than any secret. */
function tornAtEnd(text: string, spelling: string): number {
  for (let length = spelling.length - 1; length >= MIN_SECRET_LENGTH; length--)
    if (text.endsWith(spelling.slice(0, length))) return length
  return 0
}
