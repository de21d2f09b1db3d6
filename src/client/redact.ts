/** Takes the API key out of what a service said: some show a request back in their errors, and errors end in logs. */

/** Whatever is shorter protects nothing, and is found in ordinary words. */
const SHORTEST_SECRET = 8

/** Also as JSON and URLs write it: `\u0072`, `\/` (PHP writes every slash so) and `%72`. */
export function concealing(secret: string): (text: string) => string {
  if (secret.length < SHORTEST_SECRET) return (text) => text
  let pattern: RegExp | undefined
  return (text) => {
    // The pattern takes longer to be compiled than everything else that is done with an answer.
    if (!/[\\%]/.test(text)) return text.replaceAll(secret, '[API key]')
    pattern ??= new RegExp([...secret].map(spellings).join(''), 'g')
    return text.replace(pattern, '[API key]')
  }
}

function spellings(character: string): string {
  const code = character.charCodeAt(0).toString(16).padStart(2, '0')
  const digits = [...code].map((digit) => `[${digit}${digit.toUpperCase()}]`).join('')
  const itself = character.replace(/[^\w]/, '\\$&')
  return `(?:${/[/"\\]/.test(character) ? '\\\\?' : ''}${itself}|\\\\u00${digits}|%${digits})`
}
