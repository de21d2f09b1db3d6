/** Fetches one reference image over the network. Whatever goes wrong, the run has no such image. */
import { lookup as systemLookup } from 'node:dns'
import { isIP, type LookupFunction } from 'node:net'
import type { Clock } from '../../host/clock.js'
import { type Fetch, isLoopback } from '../../host/http.js'
import { isPublicAddress } from './public-address.js'

const MAX_REDIRECTS = 5

export interface ReferenceFetchOptions {
  /**
   * Whether addresses that are not public may be fetched from: only while nobody but this machine's own users reaches
   * the service, which must not fetch for a stranger what the stranger cannot reach.
   */
  privateAllowed(): boolean
  readonly clock: Pick<Clock, 'alarm' | 'monotonic'>
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface ReferenceFetch {
  /**
   * The bytes as they arrive; undefined when it cannot be fetched. Rejects with an `HttpFailure`, as the bytes do, or with the
   * signal's reason.
   */
  get(url: URL, signal: AbortSignal): Promise<AsyncIterable<Uint8Array> | undefined>
  close(): Promise<void>
}

export function createReferenceFetch({ privateAllowed, clock, env }: ReferenceFetchOptions): ReferenceFetch {
  const closers: (() => Promise<void>)[] = []
  const networks = new Map<boolean, Promise<Fetch>>()

  /** undici is loaded for the first reference that needs it. */
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

/** Names are checked when they are resolved (`publicLookup`); a literal address is not resolved, so it is checked here. */
function mayBePublic({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, '')
  return isIP(host) === 0 ? !isLoopback(host) : isPublicAddress(host)
}

/** Checks the addresses that are connected to: a second lookup could give others. */
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
