/** Takes the API key out of what a service said: some echo the request in their errors, and errors end up in logs. */

/** A shorter secret would be found in ordinary words. */
const MIN_SECRET_LENGTH = 8

/**
 * The redacting function for one secret, in all its spellings: as text, in JSON (`\u0072`, `\/`) and in a URL (`%72`). At the
 * end of the text the start of the secret is redacted too: a connection may break in the middle of it.
 */
export function createRedact(secret: string): (text: string) => string {
  if (secret.length < MIN_SECRET_LENGTH) return (text) => text
  const characters = [...secret].map(spellings)
  const start = characters.slice(0, MIN_SECRET_LENGTH).join('')
  const rest = characters.slice(MIN_SECRET_LENGTH)
  const optional = rest.reduceRight((after, character) => `(?:${character}${after})?`, '')
  const pattern = new RegExp(`${characters.join('')}|${start}${optional}$`, 'g')
  return (text) => text.replace(pattern, '[API key]')
}

function spellings(character: string): string {
  const code = character.charCodeAt(0).toString(16).padStart(2, '0')
  const digits = [...code].map((digit) => `[${digit}${digit.toUpperCase()}]`).join('')
  const itself = character.replace(/[^\w]/, '\\$&')
  return `(?:${/[/"\\]/.test(character) ? '\\\\?' : ''}${itself}|\\\\u00${digits}|%${digits})`
}
