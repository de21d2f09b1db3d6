/** Which addresses a service that others can reach may fetch from, so that a reference gives nobody access to its network. */

import ipaddr from 'ipaddr.js'
import { type IpNetwork, isInNetwork, parseAddress } from '../rules/networks.js'

/** The only block of which the IANA gives public IPv6 addresses; `::7f00:1` and others outside it carry IPv4 addresses. */
const GLOBAL_UNICAST_IPV6: IpNetwork = [ipaddr.parse('2000::'), 3]

/** False for each range with a special purpose (private, loopback, tunnels, documentation …) and for what is not an address. */
export function isPublicAddress(text: string): boolean {
  const address = parseAddress(text.replace(/^\[|\]$/g, ''))
  if (address === undefined || address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' || isInNetwork(address, GLOBAL_UNICAST_IPV6)
}
