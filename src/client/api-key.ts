/** Checks an API key before it is put into a header. */
import { RushesError } from '../errors.js'

/** Common servers accept headers of 8 to 16 KiB; a long JWT has 4 KiB. */
export const MAX_KEY_LENGTH = 16_384

/** The key without surrounding space. Throws `no_api_key` for what an HTTP header cannot carry. `from` is where it comes from. */
export function parseApiKey(text: string, from: string): string {
  const key = typeof text === 'string' ? text.trim() : ''
  if (key === '') throw new RushesError('no_api_key', `The API key from ${from} is empty.`)
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new RushesError(
      'no_api_key',
      `The API key from ${from} contains invalid characters (a newline, a space or a quote?).`,
    )
  if (key.length > MAX_KEY_LENGTH)
    throw new RushesError(
      'no_api_key',
      `The API key from ${from} has more than ${MAX_KEY_LENGTH} characters, which no service accepts.`,
      { hint: 'Check that it is a key, and not the content of another file.' },
    )
  return key
}
