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
      `"${text}" is no service address.`,
      'An address looks like https://api.example.com; for a local service: http://127.0.0.1:7878.',
    )
  if (url.username !== '' || url.password !== '')
    throw usageError(
      'The service address holds a user name or a password.',
      'Give the key by RUSHES_API_KEY or rushes login.',
    )
  if (url.protocol === 'http:' && !isLoopback(url.hostname) && !allowHttp)
    throw new RushesError('insecure_url', `${url.origin} is plain http: the API key would travel in clear.`, {
      hint: 'Use https. In a network that you trust whole, RUSHES_ALLOW_HTTP=1 allows it.',
    })
  return `${url.origin}${url.pathname.replace(/\/+$/, '')}`
}

export const originOf = (baseUrl: string): string => new URL(baseUrl).origin
