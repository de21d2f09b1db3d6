/** Checks the service URL and the API key. */
import { RushesError, usageError } from '../errors.js'
import { isLoopback } from '../host/http.js'
import { isQuoted } from '../protocol/text.js'

/** The path of the interface, which people copy with the URL. */
const API_PATH = /\/api(\/v1(\/runs)?)?$/

/** A URL in a message: without what may be a key. */
const shownUrl = (text: string): string => text.replace(/^(https?:\/\/)?.*@/is, '$1…@').replace(/\?.*/s, '?…')

/**
 * Returns the base URL without a trailing slash, a fragment and the path of the interface. Throws `usage` if it is not an http(s) URL or has a query,
 * and `insecure_url` for plain http to another machine, because the key would be sent unencrypted.
 */
export function parseBaseUrl(text: string, { allowHttp = false }: { allowHttp?: boolean } = {}): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw usageError(
      `"${shownUrl(text)}" is not a valid service URL.`,
      'Examples: https://api.example.com, http://127.0.0.1:7878 for a local service.',
    )
  if (url.username !== '' || url.password !== '')
    throw usageError(
      'The service URL contains a user name or a password.',
      'Set the API key with `rushes login` or RUSHES_API_KEY.',
    )
  if (url.search !== '')
    // Without the query itself, which may contain a key.
    throw usageError(
      `The service URL ${url.origin}${url.pathname} contains a query.`,
      'Requests would be sent without it. Use the URL without "?" and the text after it.',
    )
  if (url.protocol === 'http:' && !isLoopback(url.hostname) && !allowHttp)
    throw new RushesError(
      'insecure_url',
      `${url.origin} uses plain http: the API key would be sent unencrypted.`,
      {
        hint: 'Use https. For a network that you trust, RUSHES_ALLOW_HTTP=1 allows http.',
      },
    )
  return `${url.origin}${url.pathname.replace(/\/+$/, '').replace(API_PATH, '')}`
}

/** Maximum length of an API key: common servers accept headers of 8 to 16 KiB, and a long JWT has 4 KiB. */
export const MAX_KEY_LENGTH = 16_384

/**
 * Returns the key without surrounding space. Throws `no_api_key` if an HTTP header cannot contain it. `from`: source of
 * the key, for messages.
 */
export function parseApiKey(text: string, from: string): string {
  const key = typeof text === 'string' ? text.trim() : ''
  if (key === '')
    throw new RushesError('no_api_key', `The API key from ${from} is empty.`, { hint: 'Copy the key again.' })
  if (isQuoted(key))
    throw new RushesError('no_api_key', `The API key from ${from} has quotes around it.`, {
      hint: 'Remove the quotes: they would be sent as a part of the key.',
    })
  if (!/^[\x21-\x7e]+$/.test(key))
    throw new RushesError(
      'no_api_key',
      `The API key from ${from} contains invalid characters (a newline, a space or a quote?).`,
      { hint: 'Copy the key again: it is one word of ASCII characters.' },
    )
  if (key.length > MAX_KEY_LENGTH)
    throw new RushesError(
      'no_api_key',
      `The API key from ${from} has more than ${MAX_KEY_LENGTH} characters, which no service accepts.`,
      { hint: 'Check that it is a key, and not the content of another file.' },
    )
  return key
}
