/** IP whitelists: single addresses and networks in CIDR notation, of both families. */
import { BlockList, isIP, isIPv4 } from 'node:net'

const MAPPED_BITS = 96

/**
 * An address as it is compared: without a zone, and an IPv4 address in IPv6 dress (`::ffff:10.0.0.1`, which is how a
 * socket that listens on both families reports it) as the IPv4 address that it is. Undefined: no address.
 */
export function plainAddress(text: string): string | undefined {
  const address = text.replace(/%.*$/, '')
  if (isIP(address) === 0) return undefined
  if (isIPv4(address)) return address
  // A URL writes every spelling of an IPv6 address in one form.
  const form = new URL(`http://[${address}]`).hostname.slice(1, -1)
  const [, high, low] = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(form) ?? []
  if (high === undefined || low === undefined) return form
  const bits = [high, low].map((part) => Number.parseInt(part, 16))
  return bits.flatMap((part) => [part >> 8, part & 255]).join('.')
}

export interface Network {
  readonly address: string
  readonly prefix: number
  readonly family: 'ipv4' | 'ipv6'
}

/** `10.0.0.0/8`, `2001:db8::/32`, or an address alone; undefined for anything else. */
export function networkOf(text: string): Network | undefined {
  const [, written = '', bits] = /^([^/%]+)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const address = plainAddress(written)
  if (address === undefined) return undefined
  const family = isIPv4(address) ? 'ipv4' : 'ipv6'
  const length = family === 'ipv4' ? 32 : 128
  const mapped = family === 'ipv4' && !isIPv4(written)
  const prefix = bits === undefined ? length : Number(bits) - (mapped ? MAPPED_BITS : 0)
  return prefix >= 0 && prefix <= length ? { address, prefix, family } : undefined
}

/** Whether an address is in one of the networks; what is no address is in none. Made once, asked often. */
export function within(networks: readonly string[]): (address: string) => boolean {
  const lists = { ipv4: new BlockList(), ipv6: new BlockList() }
  // A list for each family: Node would find an IPv4 address, as the mapped one, in ::/0 too.
  for (const { address, prefix, family } of networks.flatMap((text) => networkOf(text) ?? []))
    lists[family].addSubnet(address, prefix, family)
  return (address) => {
    const plain = plainAddress(address)
    if (plain === undefined) return false
    const family = isIPv4(plain) ? 'ipv4' : 'ipv6'
    return lists[family].check(plain, family)
  }
}
