/** Which addresses a service that others can reach does not fetch from: a reference must not open its network to them. */
import { BlockList, isIP, isIPv6 } from 'node:net'

/** Source: the IANA special-purpose registries. */
const PRIVATE_RANGES = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['224.0.0.0', 3],
] as const

const PRIVATE_RANGES_6 = [
  ['::', 127],
  // Forms that carry an IPv4 address: NAT64 and 6to4. Mapped ones (::ffff:0:0/96) Node checks as IPv4 by itself.
  ['64:ff9b::', 96],
  ['64:ff9b:1::', 48],
  ['2002::', 16],
  ['fc00::', 7],
  ['fe80::', 10],
  ['fec0::', 10],
  ['ff00::', 8],
] as const

const blocked = new BlockList()
for (const [network, prefix] of PRIVATE_RANGES) blocked.addSubnet(network, prefix, 'ipv4')
for (const [network, prefix] of PRIVATE_RANGES_6) blocked.addSubnet(network, prefix, 'ipv6')

/** Whether a literal address is anything but a public one. What is no address at all counts as private. */
export function isPrivateAddress(address: string): boolean {
  const plain = address.replace(/^\[|\]$/g, '').replace(/%.*$/, '')
  if (isIP(plain) === 0) return true
  return blocked.check(plain, isIPv6(plain) ? 'ipv6' : 'ipv4')
}
