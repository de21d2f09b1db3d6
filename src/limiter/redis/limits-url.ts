/** Parses the URL of the Redis server that stores a rate limit for several machines. Pure. */

export interface RedisAddress {
  readonly host: string
  readonly port: number
  readonly username: string | undefined
  readonly password: string | undefined
  readonly database: number
  readonly isTls: boolean
}

const IS_TLS: Readonly<Record<string, boolean>> = {
  'redis:': false,
  'valkey:': false,
  'rediss:': true,
  'valkeys:': true,
}
const DEFAULT_PORT = 6379

/**
 * Returns undefined unless the URL has the form `redis://[[user]:password@]host[:port][/database]`, with any of the
 * schemes above.
 */
export function parseLimitsUrl(text: string): RedisAddress | undefined {
  try {
    const url = new URL(text)
    const isTls = IS_TLS[url.protocol]
    const [, database] = /^\/?(\d*)$/.exec(url.pathname) ?? []
    const isWhole = url.search === '' && url.hash === '' && (url.username === '' || url.password !== '')
    if (isTls === undefined || url.hostname === '' || database === undefined || !isWhole) return undefined
    return {
      host: url.hostname.replace(/^\[|\]$/g, ''),
      port: url.port === '' ? DEFAULT_PORT : Number(url.port),
      username: decodeURIComponent(url.username) || undefined,
      password: decodeURIComponent(url.password) || undefined,
      database: Number(database),
      isTls,
    }
  } catch {
    return undefined
  }
}

/** Returns the URL without user and password, for messages and lists. */
export function maskLimitsUrl(text: string): string {
  if (parseLimitsUrl(text) === undefined) return '***'
  return text.replace(/\/\/.*@/, '//***@')
}
