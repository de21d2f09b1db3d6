/** Whether a browser sent a request from a page of the service itself. Pure. */
import { isLoopback } from '../../host/http.js'
import { Refusal } from './refusal.js'

/** As the client sent it, also through a trusted proxy. */
export interface SeenRequest {
  /** `http` or `https`. */
  readonly scheme: string
  /** With the port, if there is one. */
  readonly host: string
  readonly origin: string | undefined
  /** The header `Sec-Fetch-Site`. */
  readonly fetchSite: string | undefined
}

const originOf = (url: string): string | undefined => (URL.canParse(url) ? new URL(url).origin : undefined)

const ownOrigins = ({ scheme, host }: SeenRequest, publicUrl: string | undefined) => [
  originOf(`${scheme}://${host}`),
  publicUrl === undefined ? undefined : originOf(publicUrl),
]

/**
 * Throws `Refusal` (403) unless the request comes from a page of the service. Browsers send `Origin` with every request that
 * can change something; `null` is that of a page without an origin, such as a file.
 */
export function checkOwnOrigin(request: SeenRequest, publicUrl: string | undefined): void {
  const { origin, fetchSite } = request
  const isOwn =
    origin !== undefined && /^https?:\/\//i.test(origin) && ownOrigins(request, publicUrl).includes(origin)
  if (!isOwn || fetchSite === 'cross-site') throw new Refusal('foreign_origin')
}

/** Whether the browser of this request is on this machine, without TLS: then a cookie cannot be `Secure`. */
export function isPlainLoopback(
  { scheme, host, origin }: SeenRequest,
  publicUrl: string | undefined,
): boolean {
  const isPlain = (url: string) => {
    const { protocol, hostname } = new URL(url)
    return protocol === 'http:' && isLoopback(hostname)
  }
  // The browser knows best; a proxy may have put its own address into `Host`.
  if (origin !== undefined && URL.canParse(origin)) return isPlain(origin)
  const url = `${scheme}://${host}`
  return URL.canParse(url) && isPlain(url) && !/^https:/i.test(publicUrl ?? '')
}

/** Throws `Refusal` (403) for a password or a link that is sent over plain HTTP from another machine. Call it after `checkOwnOrigin`. */
export function checkTransport(request: SeenRequest, publicUrl: string | undefined): void {
  if (/^http:/i.test(request.origin ?? '') && !isPlainLoopback(request, publicUrl))
    throw new Refusal('https_required')
}
