/** The proxy that the environment names, checked before undici gets it: undici refuses some values with unclear errors. */
import { usageError } from '../errors.js'

type Env = Readonly<Record<string, string | undefined>>

/**
 * The proxy for addresses of this protocol (`https:`); undefined without one. Small letters go before capitals, as with curl.
 * Throws `usage`, naming the variable. The error never shows the value, which may contain a password.
 */
export function findProxy(env: Env, protocol: string): URL | undefined {
  const names = protocol === 'https:' ? ['HTTPS_PROXY', 'HTTP_PROXY'] : ['HTTP_PROXY']
  const variable = names.flatMap((name) => [name.toLowerCase(), name]).find((name) => env[name])
  const value = variable === undefined ? '' : (env[variable] ?? '').trim()
  if (variable === undefined || value === '') return undefined
  const problem = problemOf(value)
  if (problem !== undefined)
    throw usageError(
      `${variable} is not a valid proxy URL: ${problem}.`,
      'Examples: http://proxy.example.com:3128, http://user:password@proxy.example.com:3128',
    )
  return urlOf(value)
}

/** Host names that are reached without the proxy, separated by commas. */
export const noProxy = (env: Env): string => env.no_proxy || env.NO_PROXY || ''

/** Like curl, takes an address without a protocol as http. */
const urlOf = (value: string): URL | undefined => {
  const address = value.includes('://') ? value : `http://${value}`
  return URL.canParse(address) ? new URL(address) : undefined
}

/** What is wrong with it; undefined when nothing is. */
function problemOf(value: string): string | undefined {
  const scheme = /^([a-z][a-z0-9+.-]*):\/\//i.exec(value)?.[1]?.toLowerCase()
  if (/^["'`]|["'`]$/.test(value)) return 'it contains quotes'
  if (/\s/.test(value)) return 'it contains a space'
  if (/^https?:(?!\/\/)/i.test(value)) return 'two slashes are missing after the protocol'
  if (scheme !== undefined && scheme !== 'http' && scheme !== 'https')
    return `${scheme} proxies are not supported, only http and https`
  const url = urlOf(value)
  if (url === undefined) return 'host, port or user name cannot be read'
  if (!isDecodable(url.username) || !isDecodable(url.password))
    return 'its user name or password contains a "%" that is not an escape (write %25)'
  if (/["'`<>^|\\{}]/.test(url.hostname)) return 'its host name contains an invalid character'
  if (url.pathname !== '/' || url.search !== '' || url.hash !== '')
    return 'it has a path, a query or a fragment after the host (in a password, write / as %2F, ? as %3F, # as %23)'
  return undefined
}

function isDecodable(text: string): boolean {
  try {
    // The result is used: the build would drop the call otherwise.
    return decodeURIComponent(text).length <= text.length
  } catch {
    return false
  }
}
