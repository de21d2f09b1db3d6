import { expect, test } from 'vitest'
import { networkOf, plainAddress, within } from '../../../src/service/rules/networks.js'

test.each([
  ['10.0.0.1', '10.0.0.1'],
  ['::ffff:10.0.0.1', '10.0.0.1'],
  ['::FFFF:0a00:0001', '10.0.0.1'],
  ['0:0:0:0:0:ffff:10.0.0.1', '10.0.0.1'],
  ['fe80::1%eth0', 'fe80::1'],
  ['2001:DB8:0::1', '2001:db8::1'],
  ['::1', '::1'],
  ['10.0.0.1:80', undefined],
  ['[::1]', undefined],
  ['010.0.0.1', undefined],
  ['unknown', undefined],
  ['', undefined],
])('%s is the address %s', (text, plain) => {
  expect(plainAddress(text)).toBe(plain)
})

test.each([
  ['10.0.0.0/8', { address: '10.0.0.0', prefix: 8, family: 'ipv4' }],
  ['10.0.0.7', { address: '10.0.0.7', prefix: 32, family: 'ipv4' }],
  ['0.0.0.0/0', { address: '0.0.0.0', prefix: 0, family: 'ipv4' }],
  ['2001:db8::/32', { address: '2001:db8::', prefix: 32, family: 'ipv6' }],
  ['::ffff:10.0.0.0/104', { address: '10.0.0.0', prefix: 8, family: 'ipv4' }],
  ['10.0.0.0/33', undefined],
  ['2001:db8::/129', undefined],
  ['::ffff:10.0.0.0/90', undefined],
  ['10.0.0.0/', undefined],
  ['10.0.0.0/-1', undefined],
  ['10.0.0.0/8/8', undefined],
  ['10.0.0', undefined],
  ['example.com', undefined],
  ['none', undefined],
])('%s is the network %o', (text, network) => {
  expect(networkOf(text)).toEqual(network)
})

test.each([
  ['10.1.2.3', ['10.0.0.0/8'], true],
  ['::ffff:10.1.2.3', ['10.0.0.0/8'], true],
  ['10.1.2.3', ['::ffff:10.0.0.0/104'], true],
  ['11.1.2.3', ['10.0.0.0/8'], false],
  ['11.1.2.3', ['10.0.0.0/8', '11.1.2.3'], true],
  ['2001:db8::5', ['2001:db8::/32'], true],
  ['2001:db9::5', ['2001:db8::/32'], false],
  ['::1', ['127.0.0.1'], false],
  ['10.1.2.3', ['::/0'], false],
  ['10.1.2.3', ['0.0.0.0/0'], true],
  ['nobody', ['0.0.0.0/0', '::/0'], false],
  ['10.1.2.3', [], false],
])('%s within %o: %s', (address, networks, isIn) => {
  expect(within(networks)(address)).toBe(isIn)
})
