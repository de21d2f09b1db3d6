/** Fetches one reference image over the network, without giving others access to the service's own network. */

import { lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import ipaddr from 'ipaddr.js'
import type { Clock } from '../../host/clock.js'
import { type Fetch, isLoopback } from '../../host/http.js'
import { type IpNetwork, isInNetwork, parseAddress } from '../rules/networks.js'

const MAX_REDIRECTS = 5

interface ReferenceFetchOptions {
  /**
   * Allows addresses that are not public, while only users of this machine reach the service. For others it must not fetch
   * what they cannot reach themselves.
   */
  privateAllowed(): boolean
  readonly clock: Pick<Clock, 'alarm' | 'monotonic'>
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface ReferenceFetch {
  /**
   * The bytes as they arrive; undefined for a URL that is not allowed or has no such image. Rejects, as the bytes do, with an
   * `HttpFailure` or the signal's reason.
   */
  get(url: URL, signal: AbortSignal): Promise<AsyncIterable<Uint8Array> | undefined>
  close(): Promise<void>
}

export function createReferenceFetch({ privateAllowed, clock, env }: ReferenceFetchOptions): ReferenceFetch {
  const closers: (() => Promise<void>)[] = []
  const networks = new Map<boolean, Promise<Fetch>>()

  /** Loads undici with the first reference that needs it. */
  async function createNetworkFor(open: boolean): Promise<Fetch> {
    const { createNetwork } = await import('../../host/undici.js')
    // A proxy would resolve the name itself, so the guarded network uses none.
    const network = createNetwork(open ? { env, clock } : { env: {}, clock, lookup: publicLookup })
    closers.push(() => network.close())
    return network.fetch
  }

  function networkFor(open: boolean): Promise<Fetch> {
    const network = networks.get(open) ?? createNetworkFor(open)
    networks.set(open, network)
    return network
  }

  const get: ReferenceFetch['get'] = async (start, signal) => {
    const open = privateAllowed()
    const fetch = await networkFor(open)
    let url = start
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      if (!isHttp(url) || !(open || mayBePublic(url))) return undefined
      const answer = await fetch({
        method: 'GET',
        url,
        headers: { accept: 'image/*', 'accept-encoding': 'identity' },
        signal,
      })
      const location = answer.header('location')
      if (answer.status === 200) return answer.body
      answer.discard()
      if (answer.status < 300 || answer.status > 399 || location === undefined) return undefined
      url = new URL(location, url)
    }
    return undefined
  }

  return {
    get,
    close: async () => {
      await Promise.all(closers.map((close) => close()))
    },
  }
}

const isHttp = ({ protocol }: URL): boolean => protocol === 'http:' || protocol === 'https:'

/** Checks a literal address, which is not resolved. `publicLookup` checks names when they are resolved. */
function mayBePublic({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, '')
  return isIP(host) === 0 ? !isLoopback(host) : isPublicAddress(host)
}

/** Checks the addresses used for the connection: a second lookup could return others. */
const publicLookup: LookupFunction = (hostname, options, callback) => {
  systemLookup(hostname, { ...options, all: true }, (error, addresses) => {
    if (error) return callback(error, [])
    if (!addresses.every(({ address }) => isPublicAddress(address)))
      return callback(new Error('the address is not public'), [])
    const [first] = addresses
    if (options.all || first === undefined) return callback(null, addresses)
    return callback(null, first.address, first.family)
  })
}

/** The only block of public IPv6 addresses that the IANA assigns. Outside it, `::7f00:1` and others carry IPv4 addresses. */
const GLOBAL_UNICAST_IPV6: IpNetwork = [ipaddr.parse('2000::'), 3]

/** False for a range with a special purpose (private, loopback, tunnels, documentation …) and for other text. */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text.replace(/^\[|\]$/g, ''))
  if (address === undefined || address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' || isInNetwork(address, GLOBAL_UNICAST_IPV6)
}
