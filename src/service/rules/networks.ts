/** IP addresses and networks in CIDR notation, and which addresses and hosts are private or public. */
import { isIP } from 'node:net'
import ipaddr from 'ipaddr.js'

type IpAddress = ipaddr.IPv4 | ipaddr.IPv6
type IpNetwork = readonly [address: IpAddress, prefix: number]

const MAPPED_BITS = 96

/**
 * Parses an address without its zone; undefined for other text. An IPv4-mapped address (`::ffff:10.0.0.1`, which a
 * socket that listens on both families reports) becomes the IPv4 address.
 */
export function parseAddress(text: string): IpAddress | undefined {
  const address = text.replace(/%.*$/, '')
  // Check with `isIP` first: ipaddr.js also accepts octal and shortened IPv4 addresses.
  return isIP(address) === 0 ? undefined : ipaddr.process(address)
}

/** Parses `10.0.0.0/8`, `2001:db8::/32` or a single address; undefined for other text. */
export function parseNetwork(text: string): IpNetwork | undefined {
  const [, written = '', bits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const address = parseAddress(written)
  if (address === undefined) return undefined
  const maxPrefix = address.kind() === 'ipv4' ? 32 : 128
  const isMapped = address.kind() === 'ipv4' && written.includes(':')
  const prefix = bits === undefined ? maxPrefix : Number(bits) - (isMapped ? MAPPED_BITS : 0)
  return prefix >= 0 && prefix <= maxPrefix ? [address, prefix] : undefined
}

const isInNetwork = (address: IpAddress, [network, prefix]: IpNetwork): boolean =>
  address.kind() === network.kind() && address.match(network, prefix)

/**
 * Returns a function that checks whether an address is in one of the networks. Text that is not an address is in none.
 */
export function createNetworkMatcher(texts: readonly string[]): (address: string) => boolean {
  const networks = texts.flatMap((text) => {
    const network = parseNetwork(text)
    return network === undefined ? [] : [network]
  })
  return (text) => {
    const address = parseAddress(text)
    return address !== undefined && networks.some((network) => isInNetwork(address, network))
  }
}

const IPV6_CLIENT_PREFIX = 64

/** Identifies one client: an IPv4 address, or an IPv6 network of 64 bits, since one client has all its addresses. */
export function clientOf(text: string): string {
  const address = parseAddress(text)
  if (address === undefined) return text
  if (address.kind() === 'ipv4') return address.toString()
  const network = ipaddr.IPv6.networkAddressFromCIDR(`${address.toNormalizedString()}/${IPV6_CLIENT_PREFIX}`)
  return `${network.toString()}/${IPV6_CLIENT_PREFIX}`
}

const PRIVATE_RANGES = ['loopback', 'private', 'uniqueLocal', 'linkLocal', 'carrierGradeNat']
const PRIVATE_NAME = /^[^.:]+$|\.(localhost|local|lan|home|internal|test|invalid|home\.arpa)$/

/**
 * Whether a host is certainly on this machine or in a private network: by its address, or by a name that only such a
 * network can have. False for every other name, also if its address is private.
 */
export function isPrivateHost(hostname: string): boolean {
  const host = hostname.toLowerCase().replace(/^\[|\]$|\.$/g, '')
  const address = parseAddress(host)
  return address === undefined ? PRIVATE_NAME.test(host) : PRIVATE_RANGES.includes(address.range())
}

/**
 * The only block of public IPv6 addresses that the IANA assigns. Addresses outside it, such as `::7f00:1`, can contain
 * IPv4 addresses.
 */
const GLOBAL_UNICAST_IPV6: IpNetwork = [ipaddr.parse('2000::'), 3]

/**
 * Whether an address is public. False for a range with a special purpose (private, loopback, tunnels, documentation …)
 * and for text that is not an address.
 */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text)
  if (address === undefined || address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' || isInNetwork(address, GLOBAL_UNICAST_IPV6)
}
