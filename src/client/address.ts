/** Checks the address of the service. */
import { RushesError, usageError } from '../errors.js'
import { isLoopback } from '../host/http.js'

/**
 * The base address without a trailing slash, query or fragment. Throws `usage` when it is not an http(s) URL, and
 * `insecure_url` for plain http to another machine: the key would be sent unencrypted.
 */
export function parseBaseUrl(text: string, { allowHttp = false }: { allowHttp?: boolean } = {}): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || (url.protocol !== 'https:' && url.protocol !== 'http:'))
    throw usageError(
      `"${text}" is not a valid service URL.`,
      'Examples: https://api.example.com, http://127.0.0.1:7878 for a local service.',
    )
  if (url.username !== '' || url.password !== '')
    throw usageError(
      'The service URL contains a user name or a password.',
      'Set the API key with RUSHES_API_KEY or rushes login.',
    )
  if (url.protocol === 'http:' && !isLoopback(url.hostname) && !allowHttp)
    throw new RushesError(
      'insecure_url',
      `${url.origin} uses plain http: the API key would be sent unencrypted.`,
      {
        hint: 'Use https. For a network that you trust, RUSHES_ALLOW_HTTP=1 allows http.',
      },
    )
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

export const originOf = (baseUrl: string): string => new URL(baseUrl).origin
