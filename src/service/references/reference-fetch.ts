/** Fetches one file over the network, without giving other users access to the service's network. */
import { lookup as systemLookup } from 'node:dns'
import type { LookupFunction } from 'node:net'
import type { Clock } from '../../host/clock.js'
import { isLoopback, type RequestStream } from '../../host/http.js'
import { decodedBody } from '../../host/response-body.js'
import type { Network } from '../../host/undici.js'
import { isPublicAddress, parseAddress } from '../rules/networks.js'

const MAX_REDIRECTS = 5

interface ReferenceFetchOptions {
  /**
   * Whether addresses that are not public are allowed. True while only users of this machine can reach the service: it
   * must not fetch for others from hosts that they cannot reach themselves.
   */
  privateAllowed(): boolean
  readonly clock: Clock
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface ReferenceFetch {
  /**
   * Returns the bytes as they arrive; undefined if the URL is not allowed or has no file. The promise and the bytes
   * reject with an `HttpFailure` or the signal's reason.
   */
  get(url: URL, signal: AbortSignal): Promise<AsyncIterable<Uint8Array> | undefined>
  /** Sends a file to a public address. Returns the status of the answer; undefined if the URL is not allowed. */
  put(
    url: URL,
    body: RequestStream & { readonly contentType: string },
    signal: AbortSignal,
  ): Promise<number | undefined>
  close(): Promise<void>
}

export function createReferenceFetch({ privateAllowed, clock, env }: ReferenceFetchOptions): ReferenceFetch {
  const networks = new Map<boolean, Promise<Network>>()

  /** Loads undici only for the first reference that needs it. */
  async function createNetworkFor(allowsPrivate: boolean): Promise<Network> {
    const { createNetwork } = await import('../../host/undici.js')
    // A proxy would resolve the name itself, so the network for public addresses uses none.
    return createNetwork(allowsPrivate ? { env, clock } : { env: {}, clock, lookup: publicLookup })
  }

  function networkFor(allowsPrivate: boolean): Promise<Network> {
    const network = networks.get(allowsPrivate) ?? createNetworkFor(allowsPrivate)
    networks.set(allowsPrivate, network)
    return network
  }

  const get: ReferenceFetch['get'] = async (start, signal) => {
    const allowsPrivate = privateAllowed()
    const { fetch } = await networkFor(allowsPrivate)
    let url = start
    for (let hop = 0; hop <= MAX_REDIRECTS; hop++) {
      if (!isHttp(url) || !(allowsPrivate || mayBePublic(url))) return undefined
      const answer = await fetch({ method: 'GET', url, headers: { accept: '*/*' }, signal })
      const location = answer.header('location')
      if (answer.status === 200) return decodedBody(answer.header, answer.body)
      answer.discard()
      if (answer.status < 300 || answer.status > 399 || location === undefined) return undefined
      url = new URL(location, url)
    }
    return undefined
  }

  return {
    get,
    async put(url, { contentType, ...stream }, signal) {
      if (!isHttp(url) || !mayBePublic(url)) return undefined
      const { fetch } = await networkFor(false)
      const headers = { 'content-type': contentType }
      const answer = await fetch({ method: 'PUT', url, headers, stream, isSlow: true, signal })
      answer.discard()
      return answer.status
    },
    async close() {
      for (const network of networks.values()) await (await network).close()
    },
  }
}

const isHttp = ({ protocol }: URL): boolean => protocol === 'http:' || protocol === 'https:'

/** Checks an IP address in a URL, which is not resolved. `publicLookup` checks the addresses of names. */
function mayBePublic({ hostname }: URL): boolean {
  const host = hostname.replace(/^\[|\]$/g, '')
  return parseAddress(host) === undefined ? !isLoopback(host) : isPublicAddress(host)
}

/** Checks the addresses that the connection uses: a second lookup could return others. */
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
